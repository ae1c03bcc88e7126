"""A program over the engine's store: recorded before it answers, found by the next attempt."""

from pathlib import Path

import pytest

from holdfast.adapters.clock import SystemClock
from holdfast.agent.program_journal import ProgramJournal
from holdfast.domain.model import GoalSpec, PlanSpec, TaskSpec
from holdfast.engine import Engine, claim, expire, steps_of, submit
from holdfast.errors import Stale
from holdfast.lang.recorder import Recorder
from holdfast.lang.run import run

PROGRAM = '(def a (tool/add {:a 1 :b 2})) (task "charge" (tool/add {:a a :b 10}))'


class Counting:
    def __init__(self, die_at: int = 0) -> None:
        self.calls: list[dict] = []
        self.die_at = die_at

    def add(self, args: dict) -> int:
        self.calls.append(args)
        if len(self.calls) == self.die_at:
            raise RuntimeError("the line went dead")
        return args["a"] + args["b"]


@pytest.fixture
def engine(tmp_path: Path):
    made = Engine(tmp_path / "holdfast.db", SystemClock())
    made.call(
        submit,
        GoalSpec(text="g", repository="/r", base_commit="c", base_tree="t"),
        PlanSpec(tasks=(TaskSpec(key="k", prompt="p"),)),
    )
    yield made
    made.close()


def attempt(engine: Engine, tools: Counting):
    granted = engine.call(claim, "w", lease_s=5.0)
    journal = ProgramJournal(engine, granted.fence, granted.steps)
    host = Recorder(journal, {"add": tools.add})
    return granted, host


def test_what_was_recorded_before_a_death_is_not_called_again(engine: Engine) -> None:
    dying = Counting(die_at=2)
    granted, host = attempt(engine, dying)
    assert not run(PROGRAM, host=host, tools=["add"]).ok
    engine.call(expire, granted.fence)
    tools = Counting()
    _, host = attempt(engine, tools)
    result = run(PROGRAM, host=host, tools=["add"])
    assert result.value == 13
    assert tools.calls == [{"a": 3, "b": 10}]
    again = Counting()
    engine.call(expire, engine.read(lambda tx: _open(tx)))
    _, host = attempt(engine, again)
    assert run(PROGRAM, host=host, tools=["add"]).value == 13
    assert again.calls == []


def test_a_reset_opens_a_generation_and_the_old_row_stays(engine: Engine) -> None:
    granted, _ = attempt(engine, Counting())
    journal = ProgramJournal(engine, granted.fence, granted.steps)
    journal.put("task", "x", {"value": None})
    assert journal.get("task", "x") == {"value": None}
    journal.reset("task", "x")
    assert journal.get("task", "x") is None
    journal.put("task", "x", {"value": 2})
    rows = engine.read(steps_of, granted.fence.task, granted.fence.take)
    kept = [(row.key, row.generation) for row in rows if row.kind == "program"]
    assert kept == [("program/task/x", 1), ("program/task/x", 2)]
    found = ProgramJournal(engine, granted.fence, rows)
    assert found.get("task", "x") == {"value": 2}
    assert found.generation("task", "x") == 1
    assert (found.rows("task"), found.rows("tool")) == ({"x": {"value": 2}}, {})


def test_no_task_id_is_taken_for_the_reset_of_another(engine: Engine) -> None:
    granted, _ = attempt(engine, Counting())
    journal = ProgramJournal(engine, granted.fence, granted.steps)
    journal.put("task", "x", {"value": 1})
    journal.reset("task", "x")
    for id in ("x/reset", "reset/x", "reset/program/task/x"):
        assert journal.get("task", id) is None
        journal.put("task", id, {"value": id})
    assert sorted(journal.rows("task")) == ["reset/program/task/x", "reset/x", "x/reset"]


def test_a_program_that_lost_its_lease_records_nothing(engine: Engine) -> None:
    granted, _ = attempt(engine, Counting())
    journal = ProgramJournal(engine, granted.fence, granted.steps)
    engine.call(expire, granted.fence)
    with pytest.raises(Stale):
        journal.put("task", "x", {"value": 1})
    assert journal.get("task", "x") is None


def _open(tx):
    from holdfast.engine import holders

    return holders(tx)[0][1]
