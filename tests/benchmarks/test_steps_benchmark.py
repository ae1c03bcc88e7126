"""The step benchmark runs and says what it promises; how fast anything is belongs to its table."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PATH_ENTRY = str(BENCHMARKS)

PROMISED = {
    "step_ctl",
    "step_async_ctl",
    "written_kb_per_step",
    "file_kb_per_step",
    "parallel_steps_per_s",
    "parallel_vs_bare",
    "import_ms",
    "help_ms",
    "peak_rss_mb",
    "claim_settle_per_s",
}


@pytest.fixture
def common(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PATH_ENTRY)
    import common

    return common


def run(*words: str) -> str:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / "steps.py"), "--quick", "--only", "holdfast", *words],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.slow
def test_one_json_object_holds_machine_commit_and_every_promised_row() -> None:
    found = json.loads(run("--json"))
    assert set(found) == {"machine", "commit", "rows"}
    assert found["machine"]["cores"] >= 1
    metrics = {row["metric"]: row for row in found["rows"] if row["system"] == "holdfast"}
    assert set(metrics) >= PROMISED
    assert metrics["step_ctl"]["unit"] == "ctl"
    assert all(row["value"] > 0 for row in metrics.values())
    assert {row["system"] for row in found["rows"]} == {"bare", "holdfast"}
    assert not list(BENCHMARKS.glob(".steps-*")), "the stores it measured on are left behind"


def test_a_repeated_number_is_shown_as_median_and_range(common: Any) -> None:
    row = common.spread("a", "step_us", [3.0, 1.0, 2.00004], "µs")
    assert (row.value, row.min, row.max) == (2.0, 1.0, 3.0)
    once = common.Row("b", "step_us", 5.0, "µs")
    assert "min" not in once.as_json()
    assert common.table([row, once]).splitlines() == [
        "| metric | unit | a | b |",
        "| --- | --- | --- | --- |",
        "| step_us | µs | 2 (1–3) | 5 |",
    ]


def test_the_steps_of_a_run_all_stand_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is measured is a real step: intended, done, spent, with its event, in a settled task."""
    monkeypatch.syspath_prepend(PATH_ENTRY)
    import steps_child

    engine = steps_child.open_engine(tmp_path)
    steps_child.submit_tasks(engine, 1)
    steps_child.run_task(engine, 3, lambda: None)

    def look(tx: Any) -> tuple[list[str], int, list[str]]:
        rows = tx.all("step.of_take", task=1, take=1)
        attempt = tx.one("attempt.get", task=1, attempt=1)
        kinds = [row["kind"] for row in tx.all("log.page.goal", goal=1, after=0, limit=100)]
        return [row["state"] for row in rows], attempt["tokens_out"], kinds

    states, tokens_out, kinds = engine.read(look)
    engine.close()
    assert states == ["done"] * 3
    assert tokens_out == 3 * 40
    assert kinds.count("llm_call") == 3
