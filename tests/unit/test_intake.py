"""Submit, steer and end work: refusals leave nothing behind, steering is idempotent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desk import Desk, task
from holdfast.domain.model import PlanSpec
from holdfast.engine import add_plan, cancel, force, pause, renew, resume, signal, submit
from holdfast.errors import NotFound, Refused


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("tasks", "code", "words"),
    [
        ((), "plan_empty", "at least one task"),
        ((task("a"), task("a")), "plan_duplicate", "names 'a' twice"),
        ((task("a", requires=("a",)),), "plan_cycle", "requires itself"),
        ((task("a", requires=("z",)),), "plan_missing", "'z', which is not in the plan"),
        (
            (task("a", requires=("b",)), task("b", requires=("a",))),
            "plan_cycle",
            "a → b → a",
        ),
        ((task("a", refers=("z",)),), "refused", "refers to 'z'"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_and_leaves_nothing(
    desk: Desk, tasks: tuple[object, ...], code: str, words: str
) -> None:
    from holdfast.domain.model import GoalSpec

    goal = GoalSpec(text="g", repository="/r", base_commit="c", base_tree="t")
    with pytest.raises(Refused, match=words) as refused:
        desk.call(submit, goal, PlanSpec(tasks=tasks))  # type: ignore[arg-type]
    assert refused.value.code == code
    for table in ("goals", "plans", "tasks", "task_links", "log"):
        assert not desk.rows(f"SELECT 1 FROM {table}"), f"{table} kept something"


def test_a_submitted_goal_executes_its_plan_on_a_branch_of_its_own(desk: Desk) -> None:
    goal = desk.goal(task("a"), task("b", requires=("a",), refers=("a",)))
    row = desk.rows("SELECT * FROM goals")[0]
    assert (row["state"], row["branch"]) == ("executing", f"holdfast/goal-{goal}")
    assert (row["tip_commit"], row["branch_commit"], row["shown_commit"]) == ("c0", "c0", "c0")
    assert [desk.state("tasks", key) for key in (1, 2)] == ["ready", "blocked"]
    assert {row["kind"] for row in desk.rows("SELECT kind FROM task_links")} == {
        "requires",
        "refers",
    }


def test_a_second_revision_gets_the_next_number(desk: Desk) -> None:
    goal = desk.goal()
    desk.call(add_plan, goal, PlanSpec(tasks=(task("later"),)))
    assert [row["revision"] for row in desk.rows("SELECT * FROM plans ORDER BY id")] == [1, 2]


def test_a_forced_task_starts_without_the_requirement_it_may_ignore(desk: Desk) -> None:
    desk.goal(task("a"), task("b", requires=("a",)))
    desk.call(force, 2, 1, reason="it is fine")
    desk.call(force, 2, 1, reason="said twice")
    assert desk.state("tasks", 2) == "ready"
    assert [row["reason"] for row in desk.rows("SELECT * FROM task_forces")] == ["it is fine"]


def test_a_force_needs_a_reason_and_tasks_that_exist(desk: Desk) -> None:
    desk.goal(task("a"), task("b", requires=("a",)))
    with pytest.raises(Refused, match="needs a reason"):
        desk.call(force, 2, 1, reason="  ")
    with pytest.raises(Refused, match="does not require 9"):
        desk.call(force, 2, 9, reason="x")
    with pytest.raises(NotFound, match="no task 9"):
        desk.call(force, 9, 1, reason="x")


def test_forcing_one_of_two_requirements_does_not_start_a_task(desk: Desk) -> None:
    desk.goal(task("a"), task("b"), task("c", requires=("a", "b")))
    desk.call(force, 3, 1, reason="x")
    assert desk.state("tasks", 3) == "blocked"


def test_cancelling_ends_open_attempts_and_drops_goal_plan_and_tasks(desk: Desk) -> None:
    goal = desk.goal(task("a"), task("b"), task("c", requires=("a",)))
    desk.claim()
    desk.call(cancel, goal, reason="no longer wanted")
    assert desk.state("goals", goal) == "dropped"
    assert desk.state("plans", 1) == "cancelled"
    assert {desk.state("tasks", key) for key in (1, 2, 3)} == {"cancelled"}
    assert desk.rows("SELECT outcome FROM attempts")[0]["outcome"] == "cancelled"
    with pytest.raises(Refused, match="nothing to cancel"):
        desk.call(cancel, goal)


def test_a_goal_whose_last_task_ends_it_by_the_cancel_itself_is_dropped(desk: Desk) -> None:
    goal = desk.goal(task("a"), task("b"))
    desk.work("failed", failure="policy", reason="refused")
    desk.call(cancel, goal)  # the cancel of b breaks the plan: the goal fails on its way
    assert desk.state("goals", goal) == "dropped"


def test_a_failed_goal_can_be_dropped_and_a_complete_one_cannot(desk: Desk) -> None:
    failed, complete = desk.goal(), desk.goal()
    desk.work("failed", failure="policy", reason="refused")
    desk.work("unverified")
    desk.call(cancel, failed)
    assert desk.state("goals", failed) == "dropped"
    with pytest.raises(Refused, match="is complete"):
        desk.call(cancel, complete)


def test_a_paused_goal_is_not_claimed_and_its_holder_is_asked_to_stop(desk: Desk) -> None:
    goal, other = desk.goal(task("a"), task("b")), desk.goal(task("c"))
    granted = desk.claim(goal=goal)
    elsewhere = desk.claim(goal=other)
    for _ in range(2):
        desk.call(pause, goal)
    assert desk.call(renew, granted.fence, lease_s=5.0) == "cancel"
    assert desk.call(renew, elsewhere.fence, lease_s=5.0) == "go on"
    with pytest.raises(AssertionError, match="nothing was ready"):
        desk.claim(goal=goal)
    for _ in range(2):
        desk.call(resume, goal)
    assert desk.claim(goal=goal).spec.key == "b"


def test_an_answer_is_recorded_once_where_it_was_asked_for(desk: Desk) -> None:
    desk.goal()
    with pytest.raises(Refused, match="does not wait"):
        desk.call(signal, 1, "approval", "yes")
    desk.work("waiting", reason="approval")
    desk.call(signal, 1, "approval", "yes")
    granted = desk.claim()
    assert [(row.key, row.kind, row.result) for row in granted.steps] == [
        ("approval", "decision", b'"yes"')
    ]
    assert granted.fence.take == 1, "a wait goes on in its take"
    assert desk.journal(granted).recorded("approval") == b'"yes"'


def test_steering_what_is_not_there_is_refused_by_name(desk: Desk) -> None:
    for use_case in (pause, resume, cancel):
        with pytest.raises(NotFound, match="no goal 7"):
            desk.call(use_case, 7)
