"""Reading the nouns: what `list` and `show` print follows from the rows."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from desk import Desk, task
from holdfast.domain.ports import Usage
from holdfast.engine import expire, listing
from holdfast.errors import NotFound


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def test_goals_plans_and_tasks_are_listed_for_one_goal_or_all(desk: Desk) -> None:
    one, other = desk.goal(task("a"), task("b", requires=("a",))), desk.goal(task("c"))
    assert [row["goal"] for row in desk.engine.read(listing.goals)] == [one, other]
    assert [row["plan"] for row in desk.engine.read(listing.plans)] == [1, 2]
    assert [row["plan"] for row in desk.engine.read(listing.plans, other)] == [2]
    assert [row["key"] for row in desk.engine.read(listing.tasks)] == ["a", "b", "c"]
    found = desk.engine.read(listing.tasks, one)
    assert found[1]["blocked_by"] == [{"task": 1, "key": "a", "state": "ready"}]
    assert found[0]["blocked_by"] == []
    assert [spec.key for spec in desk.engine.read(listing.plan_specs, 1)] == ["a", "b"]


def test_a_goal_is_shown_with_its_result_and_everything_below_it(desk: Desk) -> None:
    goal = desk.goal()
    desk.work(answer="ok")
    shown = desk.engine.read(listing.goal, goal)
    assert (shown["type"], shown["state"], shown["outcome"]) == ("goal", "complete", "unverified")
    assert shown["plans"][0]["tasks"][0]["attempts"][0]["outcome"] == "unverified"
    json.dumps(shown)
    with pytest.raises(NotFound):
        desk.engine.read(listing.goal, 9)


def test_an_attempt_is_shown_with_its_journal_and_its_cost(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim(bundle=b'{"items":[]}')
    desk.intend(granted)
    desk.done(granted, usage=Usage(tokens_in=5, cost_nusd=3))
    desk.intend(granted, "later", position=2)
    shown = desk.engine.read(listing.attempt, 1, 1)
    assert [(row["key"], row["state"], row["result"]) for row in shown["journal"]] == [
        ("s", "done", "did"),
        ("later", "intended", None),
    ]
    assert (shown["tokens"], shown["cost_usd"], shown["detail"]) == (5, 3e-9, "")


def test_what_waits_is_listed_with_its_evidence_and_the_key_of_the_answer(desk: Desk) -> None:
    desk.goal(task("a"), task("b"), task("c"))
    granted = desk.claim()
    desk.intend(granted, "pay", effect="irreversible")
    desk.call(expire, granted.fence, reason="died")
    again = desk.claim()
    from holdfast.engine import step
    from holdfast.engine.journal import Lose, StepName

    desk.call(step, again.fence, [Lose(step=StepName(key="pay"))])
    desk.settle(again, "waiting", reason="undecided", detail="pay#1: r")
    desk.work("waiting", reason="approval")
    lost, approval = desk.engine.read(listing.waiting)
    assert (lost["task"], lost["step"], lost["generation"], lost["evidence"]) == (
        1,
        "pay",
        1,
        "pay#1: r",
    )
    assert (approval["task"], approval["reason"], approval["step"]) == (2, "approval", "")
