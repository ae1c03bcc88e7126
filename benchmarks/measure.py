"""What every benchmark shares: medians with spread, one row format, the machine, two outputs."""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
Row = dict[str, Any]


def timed(
    system: str,
    metric: str,
    work: Callable[[], object],
    *,
    rounds: int = 30,
    prepare: Callable[[], object] | None = None,
    per: int = 1,
) -> Row:
    """The median of `rounds` runs in milliseconds, divided by `per`, with 10th and 90th percentile.

    `prepare` runs before each round and is not measured.
    """
    taken = []
    for _ in range(rounds):
        if prepare is not None:
            prepare()
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1e3 / per)
    return row(system, metric, taken)


def row(system: str, metric: str, taken: list[float], unit: str = "ms") -> Row:
    taken = sorted(taken)
    return {
        "system": system,
        "metric": metric,
        "value": round(statistics.median(taken), 4),
        "unit": unit,
        "p10": round(taken[len(taken) // 10], 4),
        "p90": round(taken[(len(taken) * 9) // 10], 4),
        "n": len(taken),
    }


def report(rows: list[Row], *, as_json: bool) -> str:
    """One JSON object, or a Markdown table of metrics by system."""
    if as_json:
        return json.dumps({"machine": machine(), "commit": commit(), "rows": rows})
    systems = list(dict.fromkeys(each["system"] for each in rows))
    cells = {(each["metric"], each["system"]): each for each in rows}
    lines = [
        f"{machine()}, commit {commit()}; median (10th to 90th percentile)",
        "",
        "| metric | " + " | ".join(systems) + " |",
        "|---" * (len(systems) + 1) + "|",
    ]
    for metric in dict.fromkeys(each["metric"] for each in rows):
        found = [_cell(cells.get((metric, system))) for system in systems]
        lines.append(f"| {metric} | " + " | ".join(found) + " |")
    return "\n".join(lines)


def machine() -> str:
    name = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            break
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def peers(script: str) -> list[Row]:
    """Run a script of this folder in the peers' environment; it prints one JSON list of rows."""
    python = Path(__file__).parent / ".peers" / "bin" / "python"
    if not python.exists():
        sys.stderr.write("no peers: `make bench-setup` installs them\n")
        return []
    done = subprocess.run(
        [str(python), str(Path(__file__).parent / script)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr}")
    found: list[Row] = json.loads(done.stdout)
    return found


def _cell(each: Row | None) -> str:
    if each is None:
        return "–"
    if each["value"] is None:
        return str(each["note"])
    return f"{each['value']:g} ({each['p10']:g}–{each['p90']:g}) {each['unit']}"
