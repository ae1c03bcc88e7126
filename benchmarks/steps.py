"""What a durable step costs: bare sqlite3, this engine, LangGraph and DBOS on the same steps.

The unit is `ctl`: one bare fsynced commit of sqlite3 (WAL, synchronous=FULL) over the same number
of commits on a store that also begins empty. Each system runs in a process of its own on the same
disk (steps_child.py), bare commits before, between and after its runs; a run is divided by the mean
of its two neighbours. A commit costs less once the WAL stops growing and is overwritten in place,
which bare commits reach only after a thousand: `last_fifth_vs_steady` and `parallel_vs_steady`
compare with that lower cost. fsyncs are counted by strace in runs of their own, which are not
timed; bytes written are `wchar` of /proc/self/io, file growth is what the closed store holds more
than an empty one. Runs that are repeated give the median and their range.

    make bench-setup                                  # the peers, once
    .venv/bin/python benchmarks/steps.py [--json] [--quick] [--only SYSTEMS]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

from common import (
    FOLDER,
    PEER_PYTHON,
    ROOT,
    Row,
    arguments,
    machine,
    note,
    peers_ready,
    show,
    spread,
    tidy,
)

CHILD = FOLDER / "steps_child.py"
TASKS = 20
IMPORTS = {
    "holdfast": "from holdfast.engine import Engine",
    "langgraph": "import langgraph.graph, langgraph.checkpoint.sqlite",
    "dbos": "import dbos",
}


@dataclass(frozen=True)
class Sizes:
    """How much is run: `repeats` of `steps` in five parts, and of 20 tasks of `task_steps`."""

    steps: int
    repeats: int
    task_steps: int
    starts: int


FULL = Sizes(steps=1000, repeats=5, task_steps=200, starts=7)
QUICK = Sizes(steps=20, repeats=1, task_steps=2, starts=1)
PARTS = 5


class Child:
    """One system's process, driven part by part over its standard streams."""

    def __init__(self, system: str, work: str, folder: Path, count: int, parts: int) -> None:
        self._process = subprocess.Popen(
            command(system, work, folder, count, parts),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def part(self) -> float:
        """Let it do its next part; returns the seconds it took."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return float(self._hear()["seconds"])

    def close(self) -> dict[str, Any]:
        """Its last word, once its work is done."""
        found = self._hear()
        self._process.communicate()
        return found

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args} ended early: {self._process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


def command(system: str, work: str, folder: Path, count: int, parts: int) -> list[str]:
    python = PEER_PYTHON if system in ("langgraph", "dbos") else sys.executable
    words = (CHILD, system, work, folder, count, parts)
    return [str(python), *(str(word) for word in words)]


@contextmanager
def store() -> Iterator[Path]:
    """An empty folder on the disk of this checkout: a temporary directory may live in memory."""
    folder = Path(tempfile.mkdtemp(prefix=".steps-", dir=FOLDER))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@dataclass(frozen=True)
class Bare:
    """Seconds of one bare commit: on a store that begins empty, and once its WAL is overwritten."""

    fresh: float
    steady: float

    @staticmethod
    def measure(commits: int) -> Bare:
        fresh, steady = alone("bare", "steps", 2 * commits, 2)[0]
        return Bare(fresh / commits, steady / commits)


@dataclass(frozen=True)
class Run:
    """Seconds of the parts of one run, the child's last word, and bare commits around it."""

    parts: list[float]
    end: dict[str, Any]
    before: Bare
    after: Bare

    @property
    def ctl(self) -> float:
        return mean((self.before.fresh, self.after.fresh))

    @property
    def steady(self) -> float:
        return mean((self.before.steady, self.after.steady))


def alone(system: str, work: str, count: int, parts: int) -> tuple[list[float], dict[str, Any]]:
    """One process on an empty store: seconds of each part, and its last word."""
    with store() as folder:
        child = Child(system, work, folder, count, parts)
        return [child.part() for _ in range(parts)], child.close()


def interleaved(system: str, work: str, count: int, parts: int, sizes: Sizes) -> list[Run]:
    """Runs on empty stores with bare commits before, between and after."""
    runs, bare = [], Bare.measure(sizes.steps)
    for _ in range(sizes.repeats):
        found, end = alone(system, work, count, parts)
        before, bare = bare, Bare.measure(sizes.steps)
        runs.append(Run(found, end, before, bare))
    return runs


def sequential(system: str, metric: str, sizes: Sizes) -> list[Row]:
    """One task after another: cost of a step in ctl, whether it grows, bytes and memory."""
    runs = interleaved(system, "steps", sizes.steps, PARTS, sizes)
    fifth = sizes.steps / PARTS
    name = system.removesuffix("_async")
    rows = [
        spread(name, f"{metric}_ctl", [sum(r.parts) / sizes.steps / r.ctl for r in runs], "ctl"),
        spread(name, f"{metric}_us", [sum(r.parts) / sizes.steps * 1e6 for r in runs], "µs"),
    ]
    if metric == "step":
        rows += [
            spread(name, "first_fifth_us", [r.parts[0] / fifth * 1e6 for r in runs], "µs"),
            spread(name, "last_fifth_us", [r.parts[-1] / fifth * 1e6 for r in runs], "µs"),
            spread(
                name, "last_fifth_vs_steady", [r.parts[-1] / fifth / r.steady for r in runs], "×"
            ),
            Row(name, "written_kb_per_step", kb(median_of(runs, "written_bytes"), sizes), "KB"),
            Row(name, "peak_rss_mb", tidy(median_of(runs, "peak_rss_mb")), "MB"),
        ]
    return rows + beside(runs)


def beside(runs: list[Run]) -> list[Row]:
    """The bare commits measured around these runs, for the column of the unit."""
    around = [bare for run in runs for bare in (run.before, run.after)]
    return [
        spread("bare", "step_us", [bare.fresh * 1e6 for bare in around], "µs"),
        spread("bare", "last_fifth_us", [bare.steady * 1e6 for bare in around], "µs"),
    ]


def parallel(system: str, sizes: Sizes) -> list[Row]:
    """20 tasks at once, against the rate of bare commits measured around them."""
    steps = TASKS * sizes.task_steps
    runs = interleaved(system, "parallel", sizes.task_steps, 1, sizes)
    rates = [(steps / run.parts[0], run) for run in runs]
    return [
        spread(system, "parallel_steps_per_s", [rate for rate, _ in rates], "1/s"),
        spread(system, "parallel_vs_bare", [rate * run.ctl for rate, run in rates], "×"),
        spread(system, "parallel_vs_steady", [rate * run.steady for rate, run in rates], "×"),
        *beside(runs),
    ]


def pairs(sizes: Sizes) -> list[Row]:
    """Claim and settle alone, 20 workers at once, 400 tasks a round."""
    found = alone("holdfast", "pairs", 0, sizes.repeats)[0]
    rates = [TASKS * TASKS / seconds for seconds in found]
    return [spread("holdfast", "claim_settle_per_s", rates, "1/s")]


def per_step(system: str, sizes: Sizes) -> list[Row]:
    """fsyncs and growth of the closed store a step: a whole run less a run of no steps."""
    some, none = (_left(system, count) for count in (sizes.steps, 0))
    rows = [Row(system, "file_kb_per_step", kb(some[1] - none[1], sizes), "KB")]
    if some[0] is not None and none[0] is not None:
        fsyncs = (some[0] - none[0]) / sizes.steps
        rows.insert(0, Row(system, "fsync_per_step", tidy(fsyncs), ""))
    return rows


def _left(system: str, count: int) -> tuple[int | None, int]:
    """(fsyncs of the whole process or None without strace, bytes in its folder afterwards)."""
    strace = shutil.which("strace")
    with store() as folder, store() as aside:
        traced = ["strace", "-f", "-o", str(aside / "calls"), "-e", "trace=fsync,fdatasync"]
        words = [*command(system, "steps", folder, count, PARTS), "free"]
        subprocess.run([*(traced if strace else []), *words], stdout=subprocess.DEVNULL, check=True)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        if strace is None:
            note("no strace, so fsyncs are not counted: apt-get install strace")
            return None, size
        calls = (aside / "calls").read_text(encoding="ascii", errors="replace").splitlines()
        return sum("fsync(" in line or "fdatasync(" in line for line in calls), size


def starts(system: str, sizes: Sizes) -> list[Row]:
    """Milliseconds of the import that the work needs, inside a fresh process."""
    python = sys.executable if system == "holdfast" else str(PEER_PYTHON)
    code = f"from time import perf_counter as t; a = t(); {IMPORTS[system]}; print(t() - a)"
    once = [python, "-c", code]
    subprocess.run(once, capture_output=True, check=True)  # byte code is written and the disk warm
    found = [
        float(subprocess.run(once, capture_output=True, text=True, check=True).stdout) * 1000
        for _ in range(sizes.starts)
    ]
    return [spread(system, "import_ms", found, "ms")]


def help_ms(sizes: Sizes) -> Row:
    """Milliseconds of a whole `holdfast --help`, interpreter included."""
    found = []
    for _ in range(sizes.starts):
        since = perf_counter()
        subprocess.run(
            [sys.executable, "-m", "holdfast", "--help"], cwd=ROOT, capture_output=True, check=True
        )
        found.append((perf_counter() - since) * 1000)
    return spread("holdfast", "help_ms", found, "ms")


def bare_rows(sizes: Sizes, around: list[Row]) -> list[Row]:
    """The unit itself, over every bare run of this benchmark."""
    end = alone("bare", "steps", sizes.steps, 1)[1]
    whole = [
        Row(
            "bare", metric, median(row.value for row in same), "µs", min=least(same), max=most(same)
        )
        for metric in ("step_us", "last_fifth_us")
        if (same := [row for row in around if row.metric == metric])
    ]
    return [
        Row("bare", "step_ctl", 1.0, "ctl"),
        *whole,
        *per_step("bare", sizes),
        Row("bare", "written_kb_per_step", kb(end["written_bytes"], sizes), "KB"),
        Row("bare", "peak_rss_mb", tidy(end["peak_rss_mb"]), "MB"),
        Row("bare", "parallel_vs_bare", 1.0, "×"),
        Row("bare", "parallel_steps_per_s", tidy(1e6 / whole[0].value), "1/s"),
    ]


def least(rows: list[Row]) -> float:
    return min(row.min for row in rows if row.min is not None)


def most(rows: list[Row]) -> float:
    return max(row.max for row in rows if row.max is not None)


def kb(size: float, sizes: Sizes) -> float:
    return tidy(size / sizes.steps / 1024)


def median_of(runs: list[Run], name: str) -> float:
    return median(float(run.end[name]) for run in runs)


def measure(sizes: Sizes, systems: list[str]) -> list[Row]:
    rows: list[Row] = []
    for system in systems:
        note(f"{system} …")
        rows += sequential(system, "step", sizes)
        if system == "holdfast":
            rows += sequential("holdfast_async", "step_async", sizes)
        rows += per_step(system, sizes)
        rows += parallel(system, sizes)
        rows += starts(system, sizes)
    if "holdfast" in systems:
        rows += [help_ms(sizes), *pairs(sizes)]
    around = [row for row in rows if row.system == "bare"]
    return [*bare_rows(sizes, around), *(row for row in rows if row.system != "bare")]


def main() -> None:
    chosen = arguments(__doc__, only="systems to run beside the bare commits, with commas")
    where = machine()
    systems = chosen.only.split(",") if chosen.only else list(IMPORTS)
    if set(systems) - {"holdfast"} and not peers_ready():
        systems = ["holdfast"]
    rows = measure(QUICK if chosen.quick else FULL, systems)
    show(rows, as_json=chosen.json, where=where)


if __name__ == "__main__":
    main()
