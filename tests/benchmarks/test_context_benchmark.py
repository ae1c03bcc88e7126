"""The context benchmark runs and says what it promises; who is best belongs to its table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "context.py"


def run(*words: str) -> dict[tuple[str, str], float]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--quick", "--json", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = json.loads(done.stdout)["rows"]
    assert all({"system", "metric", "value", "unit"} <= row.keys() for row in rows)
    return {(row["system"], row["metric"]): row["value"] for row in rows}


def test_the_engine_finds_what_a_docstring_came_from_and_chance_does_not() -> None:
    rows = run("--only", "docs")
    assert rows["holdfast", "docs_recall_1k"] > rows["random", "docs_recall_1k"]
    assert {system for system, _ in rows} >= {"holdfast", "plain_bm25", "fts5", "aider_map"}
    assert all(0 <= value <= 1 for value in rows.values())


@pytest.mark.slow
def test_the_timings_are_measured() -> None:
    rows = run("--only", "speed")
    for metric in ("bundle_p50_ms", "index_update_ms", "map_cold_s", "map_warm_ms"):
        assert rows["holdfast", metric] > 0
