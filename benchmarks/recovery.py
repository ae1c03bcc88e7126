"""How long after a `kill -9` the work goes on, and which steps are done again.

Every system does 60 toy steps (recovery_child.py); the process kills itself in step 50, and once it
is dead another is started, as a supervisor would. A step's effect is a line in a ledger that no
system knows of, so the ledger says what was really done. `recovery_s` is from the death to the
first step that no process had begun before: the start of Python, imports, finding out that the
owner is dead, everything that is done again. `lost_steps` were done before the kill and were done
again, `repeated_steps` are those and the one in flight. The provider's import, which a real model
adds to it once, is printed apart: `ollama_import_ms`, `openai_import_ms` (mostly its own SDK).
Ours is the whole of `holdfast resume`: store, leases, git workspace and agent loop, where a step is
a model call and a tool call, with a model that answers from memory.

    make bench-setup                                  # the peers, once
    .venv/bin/python benchmarks/recovery.py [--json] [--quick] [--only SYSTEMS]
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

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

CHILD = FOLDER / "recovery_child.py"
SYSTEMS = ("holdfast", "langgraph", "langgraph_default", "dbos")
IMPORTS = {
    "ollama_import_ms": "from holdfast.adapters.models import ollama",
    "openai_import_ms": "from holdfast.adapters.models import openai",
}
WAIT_S = 60.0


@dataclass(frozen=True)
class Sizes:
    steps: int
    kill_at: int
    repeats: int


FULL = Sizes(steps=60, kill_at=50, repeats=9)
QUICK = Sizes(steps=6, kill_at=3, repeats=1)


@dataclass(frozen=True)
class Recovery:
    """What the ledger of one kill says; see the module."""

    seconds: float
    lost: int
    repeated: int


def recover(system: str, sizes: Sizes) -> Recovery:
    """Let a system die in the middle and go on in a new process."""
    folder = Path(tempfile.mkdtemp(prefix=".recovery-", dir=FOLDER))
    try:
        _repository(folder / "repo")
        first = _life(system, folder, sizes.steps, sizes.kill_at)
        died = time.monotonic()
        if first != -signal.SIGKILL:
            raise SystemExit(f"{system} was not killed: {first}")
        done = len(_ledger(folder))
        if _life(system, folder, sizes.steps) != 0:
            raise SystemExit(f"{system} did not go on")
        lines = _ledger(folder)
    finally:
        shutil.rmtree(folder)
    return judge(lines[:done], lines[done:], sizes.steps, died)


def judge(
    before: Sequence[tuple[int, float]],
    after: Sequence[tuple[int, float]],
    steps: int,
    died: float,
) -> Recovery:
    """What was done again, and when the first new step began. Refuses a run that left a gap."""
    if {number for number, _ in [*before, *after]} != set(range(steps)):
        raise SystemExit("steps are missing altogether")
    begun, in_flight = {number for number, _ in before}, before[-1][0]
    again = {number for number, _ in after if number in begun}
    first_new = next(at for number, at in after if number not in begun)
    return Recovery(seconds=first_new - died, lost=len(again - {in_flight}), repeated=len(again))


def _life(system: str, folder: Path, *words: int) -> int:
    python = sys.executable if system == "holdfast" else str(PEER_PYTHON)
    command = [python, str(CHILD), system, str(folder), *map(str, words)]
    return subprocess.run(
        command, stdout=subprocess.DEVNULL, timeout=WAIT_S, check=False, cwd=folder
    ).returncode


def _ledger(folder: Path) -> list[tuple[int, float]]:
    lines = (folder / "ledger").read_text(encoding="ascii").splitlines()
    return [(int(number), float(at)) for number, at in (line.split() for line in lines)]


def _repository(folder: Path) -> None:
    """A small repository with one commit, for the one system that works in one."""
    folder.mkdir()
    (folder / "README.md").write_text("# Steps\n", encoding="utf-8")
    person = ("-c", "user.name=Person", "-c", "user.email=person@localhost")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *person, *words], cwd=folder, check=True)


def imports(repeats: int) -> list[Row]:
    rows = []
    for metric, statement in IMPORTS.items():
        code = f"from time import perf_counter as t; a = t(); {statement}; print(t() - a)"
        found = [
            float(subprocess.check_output([sys.executable, "-c", code], text=True)) * 1000
            for _ in range(repeats + 1)
        ]
        rows.append(spread("holdfast", metric, found[1:], "ms"))  # the first writes byte code
    return rows


def measure(sizes: Sizes, systems: list[str]) -> list[Row]:
    rows: list[Row] = []
    for system in systems:
        note(f"{system} …")
        found = [recover(system, sizes) for _ in range(sizes.repeats + 1)][1:]
        rows += [
            spread(system, "recovery_s", [each.seconds for each in found], "s"),
            Row(system, "lost_steps", tidy(median(each.lost for each in found)), ""),
            Row(system, "repeated_steps", tidy(median(each.repeated for each in found)), ""),
        ]
    return rows + (imports(sizes.repeats) if "holdfast" in systems else [])


def main() -> None:
    chosen = arguments(__doc__, only="systems to run, with commas")
    where = machine()
    systems = chosen.only.split(",") if chosen.only else list(SYSTEMS)
    if set(systems) - {"holdfast"} and not peers_ready():
        systems = ["holdfast"]
    show(measure(QUICK if chosen.quick else FULL, systems), as_json=chosen.json, where=where)


if __name__ == "__main__":
    main()
