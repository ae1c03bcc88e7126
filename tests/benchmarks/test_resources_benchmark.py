"""The benchmark of sizes runs small and says what it promises; how flat, its notes say."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PROMISED = {
    "goals_4": {"goal_ms_last_vs_first", "peak_rss_mb", "open_files", "goals_per_s"},
    "steps_40": {"turn_ms_last_vs_first", "peak_rss_mb", "store_kb_per_step"},
    "writes_20": {"writing_turn_ms_last_vs_first", "peak_rss_mb"},
    "repo_1": {"first_goal_s", "grown_mb", "peak_rss_mb"},
    "curated_1": {"first_goal_s", "second_goal_s", "grown_mb"},
    "output_1": {"lines_ms", "one_line_ms", "written_file_ms", "grown_mb"},
    "store_2": {"step_ms_vs_new", "claim_settle_ms_vs_new", "goal_show_ms", "care_grown_mb"},
}


def run(*words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "resources.py"), "--json", *words],
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_every_size_is_measured_as_rows_of_system_metric_value_and_unit() -> None:
    found = run("--quick", "--store", "2")
    assert set(found) == {"machine", "commit", "rows"}
    metrics = {row["metric"]: row for row in found["rows"]}
    for work, names in PROMISED.items():
        assert {f"{work}.{name}" for name in names} <= set(metrics)
    assert {row["system"] for row in found["rows"]} == {"holdfast"}
    assert metrics["steps_40.turn_ms_last_vs_first"]["unit"] == "×"
    assert metrics["steps_40.turn_ms_first_tenth"]["unit"] == "ms"
    assert metrics["goals_4.peak_rss_mb"]["unit"] == "MB"
    assert metrics["goals_4.rss_after_all_mb"]["unit"] == "MB"
    assert not [row for row in found["rows"] if row["value"] < 0]
    assert not list(BENCHMARKS.glob(".resources-*")), "what it measured on is left behind"


def test_a_size_nobody_knows_is_refused() -> None:
    line = [sys.executable, str(BENCHMARKS / "resources.py"), "--only", "goals,moons"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no such size: moons" in done.stderr
