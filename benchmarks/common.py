"""What every benchmark shares: rows, spread, the machine and the commit, one way to print them.

A benchmark gathers `Row`s and hands them to `show`, which prints a table or, with `--json`, one
object `{"machine": …, "commit": …, "rows": [{"system", "metric", "value", "unit"}, …]}`. A row that
was measured more than once is the median and also carries `min` and `max`. Nothing here measures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
PEER_PYTHON = FOLDER / ".peers" / "bin" / "python"


@dataclass(frozen=True)
class Row:
    """One number of one system. `min` and `max` are None when it was measured once."""

    system: str
    metric: str
    value: float
    unit: str
    min: float | None = None
    max: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {name: part for name, part in asdict(self).items() if part is not None}


def spread(system: str, metric: str, values: Sequence[float], unit: str) -> Row:
    """The median of repeated measurements with what it ranged over."""
    return Row(
        system,
        metric,
        tidy(statistics.median(values)),
        unit,
        min=tidy(min(values)),
        max=tidy(max(values)),
    )


def tidy(value: float) -> float:
    """Four significant digits: more would be noise."""
    return float(f"{value:.4g}")


def arguments(description: str | None, **extra: str) -> argparse.Namespace:
    """The flags of every benchmark: `--json`, `--quick` and options of its own (name=help)."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs")
    for name, text in extra.items():
        parser.add_argument(f"--{name}", help=text)
    return parser.parse_args()


def peers_ready() -> bool:
    """Whether `make bench-setup` made the peers' environment; says so on stderr when it did not."""
    if not PEER_PYTHON.exists():
        note("no peers: `make bench-setup` makes benchmarks/.peers")
    return PEER_PYTHON.exists()


def machine() -> dict[str, Any]:
    """Where the numbers come from, and how busy it was when they were taken (1 min load)."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "load": round(os.getloadavg()[0], 2),
    }


def commit() -> str:
    """The commit measured, with `+` when tracked files differ from it; empty outside git."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()

    head = git("rev-parse", "--short=12", "HEAD")
    return head + ("+" if head and git("status", "--porcelain", "-uno") else "")


def show(rows: Sequence[Row], *, as_json: bool, where: dict[str, Any] | None = None) -> None:
    """Print everything once. `where` is `machine()` taken before the work raised the load."""
    where = where or machine()
    if as_json:
        found = {"machine": where, "commit": commit(), "rows": [row.as_json() for row in rows]}
        print(json.dumps(found, ensure_ascii=False))
        return
    print(", ".join(f"{name} {value}" for name, value in where.items()) + f", commit {commit()}\n")
    print(table(rows))


def table(rows: Sequence[Row]) -> str:
    """A Markdown table: a line a metric, a column a system, `min–max` behind repeated numbers."""
    systems = list(dict.fromkeys(row.system for row in rows))
    metrics = list(dict.fromkeys((row.metric, row.unit) for row in rows))
    cells = {(row.system, row.metric): _cell(row) for row in rows}
    lines = [["metric", "unit", *systems], ["---"] * (len(systems) + 2)]
    for metric, unit in metrics:
        lines.append([metric, unit, *(cells.get((system, metric), "") for system in systems)])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def note(text: str) -> None:
    """A word to the person at the terminal; never part of the result."""
    sys.stderr.write(text + "\n")


def _cell(row: Row) -> str:
    value = f"{row.value:g}" if abs(row.value) < 10_000 else f"{row.value:,.0f}"
    return value if row.min is None else f"{value} ({row.min:g}–{row.max:g})"


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
