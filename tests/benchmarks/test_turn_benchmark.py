"""The turn benchmark runs and says what it promises; how fast anything is belongs to its table."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import turn

    return turn


@pytest.mark.slow
def test_one_json_object_holds_our_turns_kept_and_not() -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(BENCHMARKS / "turn.py"), "--quick", "--json"),
            *("--only", "holdfast,holdfast_unkept"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert set(found) == {"machine", "commit", "rows"}
    rows = {(row["system"], row["metric"]): row for row in found["rows"]}
    for system, durable in (("holdfast", 1), ("holdfast_unkept", 0)):
        assert rows[system, "turn_us"]["unit"] == "µs"
        assert rows[system, "turn_us"]["value"] > 0
        assert rows[system, "durable"]["value"] == durable
    assert not list(BENCHMARKS.glob(".turn-*")), "the stores it measured on are left behind"


def test_each_is_compared_with_the_fastest_other_of_each_kind(turn: Any) -> None:
    took = {"holdfast": 10.0, "langgraph": 40.0, "pydantic_ai_dbos": 50.0, "smolagents": 5.0}
    took |= {"mini_swe_agent": 8.0, "holdfast_unkept": 1.0}
    rows = [turn.Row(system, "turn_us", value, "µs") for system, value in took.items()]
    found = {(row.system, row.metric): row.value for row in turn.beside(rows)}
    assert found["holdfast", "turn_vs_durable"] == 0.25
    assert found["holdfast", "turn_vs_unkept"] == 2.0
    assert found["smolagents", "turn_vs_unkept"] == 0.625
    assert found["langgraph", "turn_vs_durable"] == 4.0


def test_a_system_that_did_less_than_asked_is_not_measured(
    turn: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lazy = tmp_path / "lazy.py"
    lazy.write_text('for _ in range(2): print(\'{"seconds": 0.1, "calls": 3}\')')
    monkeypatch.setattr(turn, "CHILD", lazy)
    with pytest.raises(SystemExit, match="other work than asked"):
        turn.turns_us("holdfast", 4, 1)


def test_every_turn_of_ours_stands_in_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is called durable is: model calls and tool calls done, in a settled task."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import sqlite3

    import turn_child

    turn_child.holdfast(tmp_path, 3, 1)
    assert json.loads(capsys.readouterr().out)["calls"] == 3
    reader = sqlite3.connect(tmp_path / "holdfast.db")
    steps = reader.execute("SELECT kind, state, count(*) FROM steps GROUP BY 1, 2").fetchall()
    state = reader.execute("SELECT state FROM tasks").fetchone()
    reader.close()
    assert steps == [("model", "done", 4), ("tool", "done", 3)]
    assert state == ("succeeded",)
