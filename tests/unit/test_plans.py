"""Plans proposed, approved, rejected, replaced, and what a planning task or a gap asks for."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from desk import POLICY, Desk, task
from holdfast.domain.model import CheckResult, GoalSpec, Planning, PlanSpec, TaskSpec
from holdfast.engine import approve, cancel, compensate, pause, reject, replace_plan, submit
from holdfast.engine.listing import task_row, waiting
from holdfast.engine.outlook import goal_result
from holdfast.errors import IllegalTransition, Refused

PASSED = {"checks": (CheckResult(command="true", verdict="pass"),)}
FAILED = {"checks": (CheckResult(command="true", verdict="fail", exit_code=1),)}
GOAL = GoalSpec(text="g", repository="/r", base_commit="c0", base_tree="t0", model="scripted:x")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def planning(*, review: bool = False) -> PlanSpec:
    asks = task("planning", kind="plan", planning=Planning(review=review))
    return PlanSpec(tasks=(asks,), source="planning")


def plan(desk: Desk, *tasks: TaskSpec, review: bool = False) -> int:
    """A goal whose planning task proposed these tasks."""
    goal: int = desk.call(submit, GOAL, planning(review=review))
    desk.work("passed", tasks=tasks or (task("a"), task("b", requires=("a",))), **PASSED)
    return goal


def states(desk: Desk) -> tuple[str, list[str]]:
    plans = [
        f"{row['source']} {row['state']}" for row in desk.rows("SELECT * FROM plans ORDER BY id")
    ]
    return desk.state("goals", 1), plans


def test_a_goal_is_decomposing_until_its_planning_task_has_proposed_its_tasks(desk: Desk) -> None:
    desk.call(submit, GOAL, planning())
    assert states(desk) == ("decomposing", ["planning running"])
    desk.work("passed", tasks=(task("a"), task("b", requires=("a",))), **PASSED)
    assert states(desk) == ("executing", ["planning succeeded", "model running"])
    assert [row["state"] for row in desk.rows("SELECT state FROM tasks ORDER BY id")] == [
        "succeeded",
        "ready",
        "blocked",
    ]
    desk.work("passed", **PASSED)
    desk.work("passed", **PASSED)
    assert states(desk) == ("complete", ["planning succeeded", "model succeeded"])


def test_a_planning_task_that_fails_fails_the_goal_and_leaves_no_empty_plan(desk: Desk) -> None:
    desk.call(submit, GOAL, planning())
    desk.work("failed", failure="policy", reason="plan_cycle", detail="a → b → a")
    assert states(desk) == ("failed", ["planning failed"])
    assert desk.rows("SELECT reason FROM goals")[0]["reason"] == "plan_cycle"
    assert desk.engine.read(goal_result, 1)["tasks"][0]["detail"] == "a → b → a"


def test_a_reviewed_plan_waits_until_it_is_approved_and_approving_twice_is_once(desk: Desk) -> None:
    plan(desk, review=True)
    assert states(desk) == ("decomposing", ["planning succeeded", "model proposed"])
    found = desk.engine.read(goal_result, 1)
    assert (found["outcome"], found["proposed_plan"]) == ("waiting", 2)
    assert desk.call(approve, 2) == desk.call(approve, 2) == 1
    assert states(desk) == ("executing", ["planning succeeded", "model running"])
    with pytest.raises(IllegalTransition, match="cannot approve"):
        desk.call(approve, 1)


def test_a_rejected_plan_is_planned_again(desk: Desk) -> None:
    plan(desk, review=True)
    with pytest.raises(Refused, match="needs a reason"):
        desk.call(reject, 2, reason=" ")
    assert desk.call(reject, 2, reason="too coarse") == 1
    assert states(desk) == (
        "decomposing",
        ["planning succeeded", "model rejected", "planning running"],
    )
    assert {row["state"] for row in desk.rows("SELECT state FROM tasks WHERE plan_id = 2")} == {
        "cancelled"
    }
    desk.work("passed", tasks=(task("c"),), **PASSED)
    assert states(desk)[1][-1] == "model proposed", "the next one is reviewed as well"
    assert [row["key"] for row in desk.engine.read(goal_result, 1)["tasks"]] == [
        "planning",
        "planning",
        "c",
    ]


def test_a_persons_plan_can_be_reviewed_too_and_fails_its_goal_when_rejected(desk: Desk) -> None:
    goal = desk.call(submit, GOAL, PlanSpec(tasks=(task(),), source="person"), review=True)
    assert states(desk) == ("decomposing", ["person proposed"])
    desk.call(reject, 1, reason="no")
    assert states(desk) == ("failed", ["person rejected"])
    assert desk.engine.read(goal_result, goal)["outcome"] == "failed"


def test_a_persons_plan_takes_the_place_of_the_proposed_one(desk: Desk) -> None:
    goal = plan(desk, review=True)
    mine = PlanSpec(tasks=(task("mine"),), source="person")
    assert desk.call(replace_plan, goal, mine, review=True) == 3
    assert states(desk)[1] == ["planning succeeded", "model superseded", "person proposed"]
    assert desk.call(replace_plan, goal, mine) == 4
    assert states(desk) == (
        "executing",
        ["planning succeeded", "model superseded", "person superseded", "person running"],
    )
    assert desk.claim().spec.key == "mine"
    with pytest.raises(Refused, match="is executing; only a goal that is being planned"):
        desk.call(replace_plan, goal, mine)


def test_a_plan_is_not_taken_from_under_a_planner_at_work(desk: Desk) -> None:
    goal = desk.call(submit, GOAL, planning())
    granted = desk.claim()
    mine = PlanSpec(tasks=(task("mine"),), source="person")
    with pytest.raises(Refused, match=r"task 1 \(planning\) is running"):
        desk.call(replace_plan, goal, mine)
    desk.call(pause, goal)
    desk.settle(granted, "cancelled", failure="cancelled", reason="interrupted")
    desk.call(replace_plan, goal, mine)
    assert states(desk) == ("executing", ["planning superseded", "person running"])


def test_a_proposed_plan_is_dropped_with_its_goal(desk: Desk) -> None:
    goal = plan(desk, review=True)
    desk.call(cancel, goal)
    assert states(desk) == ("dropped", ["planning succeeded", "model cancelled"])


def verified(desk: Desk, takes: int) -> None:
    """A goal at its last task, its checks, which have so many takes."""
    last = task("verify", kind="verify", requires=("a",), checks=("true",))
    desk.goal(task("a"), replace(last, policy=replace(POLICY, max_takes=takes)))
    desk.work("passed", **PASSED)


def test_a_goal_is_verifying_while_its_checks_run(desk: Desk) -> None:
    verified(desk, 1)
    assert desk.state("goals", 1) == "executing"
    granted = desk.claim()
    assert desk.state("goals", 1) == "verifying"
    desk.settle(granted, "passed", **PASSED)
    assert desk.state("goals", 1) == "complete"


def test_a_gap_brings_the_goal_back_and_its_checks_wait_for_the_follow_up(desk: Desk) -> None:
    verified(desk, 2)
    gap = {"failure": "logic", "reason": "checks_failed", "detail": "true: failed"}
    desk.work("failed", tasks=(task("mend"),), **gap, **FAILED)
    assert (desk.state("goals", 1), desk.state("tasks", 2)) == ("executing", "blocked")
    granted = desk.claim()
    assert granted.spec.key == "mend"
    desk.settle(granted, "passed", **PASSED)
    again = desk.claim()
    assert (again.spec.key, again.fence.take) == ("verify", 2)
    assert desk.state("goals", 1) == "verifying"
    desk.settle(again, "failed", **gap, **FAILED)
    assert (desk.state("goals", 1), desk.state("plans", 1)) == ("failed", "failed")


def test_a_task_that_failed_gets_no_tasks_it_asked_for(desk: Desk) -> None:
    verified(desk, 1)
    gap = {"failure": "logic", "reason": "checks_failed"}
    desk.work("failed", tasks=(task("mend"),), **gap, **FAILED)
    assert [row["key"] for row in desk.rows("SELECT key FROM tasks ORDER BY id")] == ["a", "verify"]
    assert desk.state("goals", 1) == "failed"


def test_a_gap_that_is_left_waits_for_a_person_under_a_key_of_its_own(desk: Desk) -> None:
    verified(desk, 2)
    desk.work("waiting", reason="gap", detail="true: failed after 2 follow-ups")
    (row,) = desk.engine.read(waiting)
    assert (row["step"], row["generation"], row["reason"]) == ("gap", 1, "gap")
    assert desk.engine.read(goal_result, 1)["outcome"] == "waiting"


def test_conflicting_work_succeeds_unaccepted_and_its_merge_stands_before_who_waits(
    desk: Desk,
) -> None:
    desk.goal(task("a"), task("b"), task("c", requires=("b",)))
    one, other = desk.claim(), desk.claim()
    desk.settle(one, "passed", commit="c1", parent="c0", **PASSED)
    merge = task("merge-b", requires=("b",), refers=("a",), merges=2)
    desk.settle(other, "passed", commit="c2", parent="c0", tasks=(merge,), **PASSED)
    assert [desk.state("tasks", key) for key in (2, 3, 4)] == ["succeeded", "blocked", "ready"]
    row = desk.rows("SELECT tip_commit, branch_commit FROM goals")[0]
    assert tuple(row) == ("c1", "c1"), "what conflicts is not on the branch"
    assert desk.rows("SELECT commit_id FROM tasks WHERE id = 2")[0]["commit_id"] == ""
    assert [row["key"] for row in desk.engine.read(task_row, 3)["blocked_by"]] == ["merge-b"]
    granted = desk.claim()
    assert (granted.spec.key, granted.base_commit) == ("merge-b", "c1")
    desk.settle(granted, "passed", commit="c3", parent="c1", **PASSED)
    assert desk.state("tasks", 3) == "ready"
    desk.work("passed", **PASSED)
    assert desk.state("goals", 1) == "complete"
    desk.call(compensate, 1)
    undone = desk.rows("SELECT key FROM tasks WHERE plan_id = 2 ORDER BY position")
    assert [row["key"] for row in undone] == ["undo-merge-b", "undo-a"], "b was never accepted"


def test_a_report_of_conflicting_work_sent_twice_makes_one_merge(desk: Desk) -> None:
    desk.goal(task("a"), task("b"))
    one, other = desk.claim(), desk.claim()
    desk.settle(one, "passed", commit="c1", parent="c0", **PASSED)
    report = {"commit": "c2", "parent": "c0", "tasks": (task("merge-b", merges=2),), **PASSED}
    first = desk.settle(other, "passed", **report)
    assert desk.settle(other, "passed", **report) == first
    assert len(desk.rows("SELECT 1 FROM tasks")) == 3
