"""A failed goal that is reopened: what goes on, what stays, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from desk import POLICY, Budget, Desk, task
from holdfast.context.retrieve import search
from holdfast.domain.model import CheckResult, GoalSpec, Planning, PlanSpec
from holdfast.domain.ports import Usage
from holdfast.engine import cancel, compensate, reject, reopen, submit
from holdfast.engine.outlook import goal_result
from holdfast.engine.undo import trees_to_undo
from holdfast.errors import NotFound, Refused

PASSED = {"checks": (CheckResult(command="true", verdict="pass"),)}
LOGIC = {"failure": "logic", "reason": "checks_failed"}
ONE_TAKE = replace(POLICY, max_takes=1)
GOAL = GoalSpec(text="g", repository="/r", base_commit="c0", base_tree="t0", model="scripted:x")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def failed(desk: Desk, **values: object) -> int:
    """A goal whose first task succeeded, whose second failed, and whose third waits for that."""
    goal = desk.goal(
        task("a", policy=ONE_TAKE),
        task("b", policy=ONE_TAKE, requires=("a",)),
        task("c", policy=ONE_TAKE, requires=("b",)),
        **values,
    )
    desk.work("passed", commit="c1", parent="c0", **PASSED)
    desk.work("failed", commit="k1", parent="c1", **LOGIC)
    assert desk.state("goals", goal) == "failed"
    return goal


def states(desk: Desk) -> list[str]:
    return [row["state"] for row in desk.rows("SELECT state FROM tasks ORDER BY id")]


def test_what_failed_is_ready_for_a_new_take_and_what_succeeded_stays(desk: Desk) -> None:
    goal = failed(desk)
    plan = desk.call(reopen, goal, reason="the server is back")
    assert states(desk) == ["succeeded", "ready", "blocked"]
    assert (desk.state("goals", goal), desk.state("plans", 1)) == ("executing", "failed")
    assert (plan, desk.state("plans", plan)) == (2, "running")
    assert {row["plan_id"] for row in desk.rows("SELECT plan_id FROM tasks")} == {plan}
    again = desk.claim()
    assert (again.fence.session, again.fence.take, again.base_commit) == ("2.2", 2, "c1")
    desk.settle(again, "passed", commit="c2", parent="c1", **PASSED)
    desk.work("passed", **PASSED)
    result = desk.engine.read(goal_result, goal)
    assert (result["state"], result["outcome"], result["commit"]) == ("complete", "passed", "c2")
    assert result["reason"] == ""


def test_what_was_found_out_before_is_found_again_by_who_goes_on(desk: Desk) -> None:
    goal = desk.goal(task("a", policy=ONE_TAKE))
    desk.work("failed", detail="the pool leaks sockets", **LOGIC)
    before = desk.engine.read(search, "sockets", plan=1, k=5)
    assert [hit.source for hit in before] == ["1.1"]
    plan = desk.call(reopen, goal)
    assert desk.engine.read(search, "sockets", plan=plan, k=5) == before
    assert desk.engine.read(search, "sockets", plan=1, k=5) == []


def test_reopening_again_changes_nothing_until_the_goal_moves(desk: Desk) -> None:
    goal = failed(desk)
    assert desk.call(reopen, goal) == desk.call(reopen, goal) == 2
    assert len(desk.rows("SELECT 1 FROM plans")) == 2
    desk.work("failed", **LOGIC)
    assert desk.call(reopen, goal) == 3


def test_a_reopened_task_has_one_take_and_its_strikes_count_anew(desk: Desk) -> None:
    goal = desk.goal(task("a", policy=replace(POLICY, max_attempts=2)))
    lost = {"failure": "transient", "reason": "http_503"}
    desk.work("failed", **lost)
    desk.clock.advance(10_000)
    desk.work("failed", **lost)
    assert desk.engine.read(goal_result, goal)["reason"] == "exhausted"
    desk.call(reopen, goal)
    third = desk.claim()
    told = desk.settle(third, "failed", **lost)
    assert (told.event, told.strikes, third.fence.take) == ("retry", 1, 2)
    assert desk.settle(third, "failed", **lost) == told, "a report that comes twice"
    desk.clock.advance(10_000)
    desk.work("failed", **LOGIC)
    assert desk.state("goals", goal) == "failed", "each reopening is worth one take"


@pytest.mark.parametrize("how", ["executing", "complete", "dropped", "missing"])
def test_only_a_failed_goal_is_reopened(desk: Desk, how: str) -> None:
    goal = desk.goal()
    if how == "complete":
        desk.work()
    elif how == "dropped":
        desk.call(cancel, goal)
    error = NotFound if how == "missing" else Refused
    with pytest.raises(error, match="no goal 7" if how == "missing" else f"goal 1 is {how}"):
        desk.call(reopen, 7 if how == "missing" else goal)


def test_a_goal_that_is_undone_or_being_undone_stays_as_it_is(desk: Desk) -> None:
    goal = failed(desk)
    desk.call(compensate, goal)
    with pytest.raises(Refused, match="is being undone"):
        desk.call(reopen, goal)
    for _ in range(2):
        desk.work("unverified")
    with pytest.raises(Refused, match="goal 1 is undone; there is nothing left"):
        desk.call(reopen, goal)


def test_a_rejected_plan_or_a_cancelled_task_cannot_go_on(desk: Desk) -> None:
    rejected = desk.call(submit, GOAL, PlanSpec(tasks=(task(),), source="person"), review=True)
    desk.call(reject, 1, reason="no")
    with pytest.raises(Refused, match="its plan is rejected, and that is final"):
        desk.call(reopen, rejected)
    goal = desk.goal(task("a", policy=ONE_TAKE), task("b", policy=ONE_TAKE))
    desk.work("failed", **LOGIC)
    desk.work("cancelled", failure="cancelled", reason="unwanted")
    with pytest.raises(Refused, match=r"task 3 \(b\) was cancelled"):
        desk.call(reopen, goal)


def test_a_goal_without_budget_is_given_more_or_stays(desk: Desk) -> None:
    goal = desk.goal(budget=Budget(tokens=100, usd=1.0))
    granted = desk.claim()
    desk.intend(granted)
    desk.done(granted, usage=Usage(tokens_in=100, cost_nusd=10**9))
    desk.settle(granted, "partial", failure="budget", reason="tokens")
    with pytest.raises(Refused, match=r"spent 100 tokens and \$1\.0000"):
        desk.call(reopen, goal)
    with pytest.raises(Refused, match="all of its budget"):
        desk.call(reopen, goal, budget=Budget(tokens=200))
    desk.call(reopen, goal, budget=Budget(tokens=200, usd=2.0))
    assert desk.claim().budget == Budget(tokens=200, usd=2.0)


@pytest.mark.parametrize("review", [True, False])
def test_a_goal_that_failed_while_it_was_planned_is_planned_again(desk: Desk, review: bool) -> None:
    asks = task("planning", kind="plan", planning=Planning(review=review))
    goal = desk.call(submit, GOAL, PlanSpec(tasks=(asks,), source="planning"))
    desk.work("failed", failure="policy", reason="plan_cycle", detail="a → b → a")
    desk.call(reopen, goal)
    assert desk.call(reopen, goal) == 2
    assert desk.state("goals", goal) == "decomposing"
    desk.work("passed", tasks=(task("a"),), **PASSED)
    if review:
        desk.call(reject, 3, reason="too coarse")
        desk.work("passed", tasks=(task("b"),), **PASSED)
        return
    desk.work("passed", **PASSED)
    assert desk.state("goals", goal) == "complete"


def test_a_task_whose_requirement_is_missing_waits_again(desk: Desk) -> None:
    goal = failed(desk)
    desk.execute("INSERT INTO task_links (from_id, to_id, kind) VALUES (2, 3, 'requires')")
    desk.execute("DELETE FROM task_links WHERE from_id = 3")
    desk.call(reopen, goal)
    assert states(desk) == ["succeeded", "blocked", "blocked"]


def test_kept_work_stays_on_the_branch_until_other_work_is_accepted(desk: Desk) -> None:
    goal = failed(desk)
    desk.call(reopen, goal)
    assert desk.engine.read(goal_result, goal)["commit"] == "k1"
    desk.work("passed", **PASSED)  # this time nothing had to be changed
    desk.work("passed", **PASSED)
    assert desk.engine.read(goal_result, goal)["commit"] == "c1"


def test_kept_work_of_an_earlier_take_can_be_undone_after_a_later_one_left_none(desk: Desk) -> None:
    goal = failed(desk)
    desk.call(reopen, goal)
    desk.work("failed", **LOGIC)
    assert desk.engine.read(goal_result, goal)["commit"] == "k1"
    desk.call(compensate, goal)
    undone = desk.rows("SELECT key FROM tasks WHERE key LIKE 'undo%' ORDER BY position")
    assert [row["key"] for row in undone] == ["undo-b", "undo-a"]
    _, commit, back = desk.engine.read(trees_to_undo, 2)
    assert (commit, back) == ("k1", "c1")
