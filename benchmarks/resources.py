"""What size does to Holdfast: many goals, long attempts, a large repository, outputs and store.

Each size runs in a process of its own (resources_child.py) with an instant model, so that peak
memory and latency are ours. `…_last_vs_first` and `…_vs_new` are ratios: 1 is flat. `peak_rss_mb`
is the process's own, `grown_mb` what the work added to it; git and sandboxed commands are processes
of their own and bounded by themselves.

    .venv/bin/python benchmarks/resources.py [--json] [--quick] [--only goals,steps] [--goals 100]
        [--steps 1000] [--writes 1000] [--repo 200] [--curated 200] [--output 50] [--store 1000]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from common import FOLDER, Row, arguments, machine, note, show, tidy

CHILD = FOLDER / "resources_child.py"
# Size of each work: as the issue has it, and for a look that it runs.
SIZES = {
    "goals": (100, 4, "goals in one process"),
    "steps": (1000, 40, "steps of one attempt, half of them reads"),
    "writes": (1000, 20, "steps of one attempt, half of them writes"),
    "repo": (200, 1, "megabytes of repository"),
    "curated": (200, 1, "megabytes of repository, with curated context"),
    "output": (50, 1, "megabytes that a command prints"),
    "store": (1000, 1, "megabytes of store"),
}
UNITS = (("_ms", "ms"), ("_s", "s"), ("_mb", "MB"), ("_kb_per_step", "KB"), ("per_s", "1/s"))


def main() -> None:
    flags = {name: f"size: {text}" for name, (_, _, text) in SIZES.items()}
    given = arguments(__doc__, only=f"of {', '.join(SIZES)}", **flags)
    where = machine()
    wanted = given.only.split(",") if given.only else list(SIZES)
    unknown = sorted(set(wanted) - set(SIZES))
    if unknown:
        raise SystemExit(f"no such size: {', '.join(unknown)}; there are {', '.join(SIZES)}")
    rows: list[Row] = []
    for work in wanted:
        whole, quick, text = SIZES[work]
        size = int(getattr(given, work) or (quick if given.quick else whole))
        note(f"{work}: {size} {text}")
        rows += measured(work, size)
    show(rows, as_json=given.json, where=where)


def measured(work: str, size: int) -> list[Row]:
    """The facts of one work as rows of the system `holdfast`, named after work and size."""
    with tempfile.TemporaryDirectory(prefix=".resources-", dir=FOLDER) as folder:
        done = subprocess.run(
            [sys.executable, str(CHILD), work, str(Path(folder) / "work"), str(size)],
            stdout=subprocess.PIPE,
            check=True,
        )
    facts = json.loads(done.stdout.splitlines()[-1])
    return [
        Row("holdfast", f"{work}_{size}.{name}", tidy(value), unit(name))
        for name, value in facts.items()
    ]


def unit(name: str) -> str:
    if name.endswith(("_vs_first", "_vs_new")):
        return "×"
    if name == "open_files":
        return ""
    name = name.removesuffix("_first_tenth").removesuffix("_last_tenth")
    return next((unit for end, unit in UNITS[::-1] if name.endswith(end)), "")


if __name__ == "__main__":
    main()
