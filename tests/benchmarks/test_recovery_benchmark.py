"""The recovery benchmark kills, resumes and counts right; how fast anything is is for its table."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def recovery(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import recovery

    return recovery


@pytest.mark.slow
def test_ours_goes_on_with_the_step_in_flight_again_and_no_other() -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(BENCHMARKS / "recovery.py")),
            *("--quick", "--json", "--only", "holdfast"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert set(found) == {"machine", "commit", "rows"}
    rows = {row["metric"]: row for row in found["rows"]}
    assert rows["recovery_s"]["unit"] == "s"
    assert rows["recovery_s"]["value"] > 0
    assert (rows["lost_steps"]["value"], rows["repeated_steps"]["value"]) == (0, 1)
    assert rows["ollama_import_ms"]["value"] > 0
    assert not list(BENCHMARKS.glob(".recovery-*")), "what it measured on is left behind"


def test_lost_and_repeated_steps_are_told_apart(recovery: Any) -> None:
    before = [(0, 1.0), (1, 1.1), (2, 1.2)]
    kept = recovery.judge(before, [(2, 2.1), (3, 2.2)], 4, 2.0)
    assert (round(kept.seconds, 3), kept.lost, kept.repeated) == (0.2, 0, 1)
    lost = recovery.judge(before, [(0, 2.1), (1, 2.2), (2, 2.3), (3, 2.4)], 4, 2.0)
    assert (round(lost.seconds, 3), lost.lost, lost.repeated) == (0.4, 2, 3)


def test_a_run_that_leaves_a_step_out_is_not_measured(recovery: Any) -> None:
    with pytest.raises(SystemExit, match="missing"):
        recovery.judge([(0, 1.0), (1, 1.1)], [(3, 2.1)], 4, 2.0)
