"""What one turn of an agent costs apart from the model: our loop beside those of other agents.

Every system does the same 50 turns (turn_child.py): the model answers at once from memory and asks
for one call of a tool, the tool returns a line at once, the agent shows it to the model; then a
last answer. Seconds of a whole run over its turns are `turn_us`, so start and end are in it. Each
system runs in processes of its own, on the disk of this checkout: in each of three rounds of all
systems nine times, after a warm-up. `longer_turn_us` is the same with 200 turns: what grows with
the conversation shows there. `durable` is 1 where each answered call survives a kill (ours is
stored before the next one begins, 5 ms later at most); the tool of `holdfast_effect` has an effect,
which costs a second commit. The `…_vs_durable` and `…_vs_unkept` compare every system with the
fastest other one that keeps each step, and that keeps nothing.

    make bench-setup                                  # the peers, once
    .venv/bin/python benchmarks/turn.py [--json] [--quick] [--only SYSTEMS]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common import (
    FOLDER,
    PEER_PYTHON,
    Row,
    arguments,
    machine,
    note,
    peers_ready,
    show,
    spread,
    tidy,
)

CHILD = FOLDER / "turn_child.py"
# Whether each keeps every step: a model call and a tool call that were answered survive a kill.
SYSTEMS = {
    "holdfast": True,
    "holdfast_effect": True,
    "holdfast_unkept": False,
    "pydantic_ai": False,
    "pydantic_ai_dbos": True,
    "langgraph": True,
    "langgraph_unkept": False,
    "smolagents": False,
    "mini_swe_agent": False,
}


@dataclass(frozen=True)
class Sizes:
    turns: int
    longer: int
    repeats: int
    rounds: int


FULL = Sizes(turns=50, longer=200, repeats=9, rounds=3)
QUICK = Sizes(turns=4, longer=8, repeats=1, rounds=1)


def turns_us(system: str, turns: int, repeats: int) -> list[float]:
    """Microseconds a turn of each run after the warm-up; every run's tool calls are counted."""
    python = sys.executable if system.startswith("holdfast") else str(PEER_PYTHON)
    folder = Path(tempfile.mkdtemp(prefix=".turn-", dir=FOLDER))
    try:
        done = subprocess.run(
            [python, str(CHILD), system, str(folder), str(turns), str(repeats + 1)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=_quiet(folder),
        )
    finally:
        shutil.rmtree(folder)
    runs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"seconds"')]
    if len(runs) != repeats + 1 or any(run["calls"] != turns for run in runs):
        raise SystemExit(f"{system} did other work than asked: {runs}")
    return [run["seconds"] / turns * 1e6 for run in runs[1:]]


def _quiet(folder: Path) -> dict[str, str]:
    """An environment in which a peer finds no settings of anyone's and writes none."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "DBOS_LOG_LEVEL": "ERROR",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_GLOBAL_CONFIG_DIR": str(folder),
    }


def measure(sizes: Sizes, systems: list[str]) -> list[Row]:
    """Every system in each round, so that a slow minute of the machine is nobody's alone."""
    short: dict[str, list[float]] = {system: [] for system in systems}
    longer: dict[str, list[float]] = {system: [] for system in systems}
    for number in range(1, sizes.rounds + 1):
        for system in systems:
            note(f"round {number} of {sizes.rounds}: {system} …")
            short[system] += turns_us(system, sizes.turns, sizes.repeats)
            longer[system] += turns_us(system, sizes.longer, max(1, sizes.repeats // 3))
    rows: list[Row] = []
    for system in systems:
        rows.append(spread(system, "turn_us", short[system], "µs"))
        rows.append(spread(system, "longer_turn_us", longer[system], "µs"))
        rows.append(Row(system, "durable", float(SYSTEMS[system]), ""))
    return rows + beside(rows)


def beside(rows: list[Row]) -> list[Row]:
    """Each system over the fastest of the others that keep every step, and that keep nothing.

    Ours in other arrangements are no systems of their own, so nothing is measured against them.
    """
    found = []
    for metric, label in (("turn_us", "turn"), ("longer_turn_us", "longer_turn")):
        took = {row.system: row.value for row in rows if row.metric == metric}
        for keeps, kind in ((True, "durable"), (False, "unkept")):
            for system, value in took.items():
                others = [
                    other
                    for name, other in took.items()
                    if SYSTEMS[name] is keeps
                    and name != system
                    and not name.startswith("holdfast_")
                ]
                if others:
                    found.append(Row(system, f"{label}_vs_{kind}", tidy(value / min(others)), "×"))
    return found


def main() -> None:
    chosen = arguments(__doc__, only="systems to run, with commas")
    where = machine()
    systems = chosen.only.split(",") if chosen.only else list(SYSTEMS)
    if not all(system.startswith("holdfast") for system in systems) and not peers_ready():
        systems = [system for system in systems if system.startswith("holdfast")]
    show(measure(QUICK if chosen.quick else FULL, systems), as_json=chosen.json, where=where)


if __name__ == "__main__":
    main()
