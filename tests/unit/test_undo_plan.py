"""Planning to undo a goal: what is walked back, in which order, and when it is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desk import Desk, task
from holdfast.app.goals import resumable
from holdfast.domain.model import Policy
from holdfast.engine import compensate, force, shown
from holdfast.engine.links import create_link, delete_link
from holdfast.engine.outlook import goal_result
from holdfast.engine.undo import compensate_failed, to_undo, trees_to_undo, undo_due
from holdfast.errors import Refused


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def spec_order(desk: Desk) -> list[str]:
    rows = desk.rows(
        "SELECT t.key FROM tasks t JOIN plans p ON p.id = t.plan_id "
        "WHERE p.source = 'undo' ORDER BY t.position"
    )
    return [row["key"] for row in rows]


def test_work_is_undone_in_reverse_order_of_completion_although_the_clock_was_set_back(
    desk: Desk,
) -> None:
    goal = desk.goal(task("a"), task("b"), task("c"))
    desk.work(commit="c1", parent="c0")
    desk.clock.jump(-3_600_000)
    desk.work(commit="c2", parent="c1")
    desk.work()  # changed nothing, so there is nothing to walk back
    assert desk.call(compensate, goal) == 2
    assert spec_order(desk) == ["undo-b", "undo-a"]


def test_an_unfinished_undo_goes_on_and_a_finished_one_is_not_repeated(desk: Desk) -> None:
    goal = desk.goal()
    desk.work(commit="c1", parent="c0")
    first = desk.call(compensate, goal)
    assert desk.call(compensate, goal) == first
    granted = desk.claim()
    assert granted.base_commit == "c1", "an undo begins at what the branch shows"
    desk.settle(granted, commit="c2", parent="c1")
    row = desk.rows("SELECT * FROM goals")[0]
    assert (row["state"], row["undone_ms"] is not None) == ("complete", True)
    assert desk.rows("SELECT undone_ms FROM tasks WHERE id = 1")[0]["undone_ms"] is not None
    assert desk.engine.read(goal_result, goal)["undone"] is True
    with pytest.raises(Refused, match="undone already") as refused:
        desk.call(compensate, goal)
    assert refused.value.code == "already_undone"


def test_a_goal_that_still_works_or_changed_nothing_is_not_undone(desk: Desk) -> None:
    goal = desk.goal()
    with pytest.raises(Refused, match="still executing"):
        desk.call(compensate, goal)
    desk.work()
    with pytest.raises(Refused, match="changed nothing"):
        desk.call(compensate, goal)


def test_the_kept_work_of_a_failed_goal_is_undone_and_a_failed_undo_keeps_the_goal(
    desk: Desk,
) -> None:
    goal = desk.goal()
    desk.work("partial", failure="budget", reason="turns", commit="c1", parent="c0")
    desk.call(compensate, goal)
    desk.work("failed", failure="policy", reason="changed_since")
    assert desk.state("goals", goal) == "failed"
    assert desk.state("plans", 2) == "failed"
    assert desk.rows("SELECT undone_ms FROM goals")[0]["undone_ms"] is None


def test_of_kept_work_what_the_branch_shows_is_undone_and_first_of_all(desk: Desk) -> None:
    """It began before the others were accepted, so its own base is not where the tip is now."""
    goal = desk.goal(*(task(key) for key in ("early", "a", "b", "late")))
    early, first, second, late = (desk.claim() for _ in range(4))
    spent = {"failure": "budget", "reason": "turns", "parent": "c0"}
    desk.settle(early, "partial", commit="k1", **spent)
    desk.settle(first, commit="c1", parent="c0")
    desk.settle(second, commit="c2", parent="c1")
    desk.settle(late, "partial", commit="k2", **spent)
    undone = desk.engine.read(lambda tx: [row["key"] for row in to_undo(tx, goal)])
    assert undone == ["late", "b", "a"]
    assert desk.engine.read(trees_to_undo, late.fence.task)[1:] == ("k2", "c2")
    assert desk.engine.read(trees_to_undo, second.fence.task)[1:] == ("c2", "c1")


def test_the_trees_of_a_task_are_walked_from_its_newest_to_its_base(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    for number, tree in enumerate(("t1", "t1", "t2"), start=1):
        desk.intend(granted, f"s{number}", position=number)
        desk.done(granted, f"s{number}", tree_after=tree)
    desk.settle(granted, commit="c1", parent="c0")
    assert desk.engine.read(trees_to_undo, 1) == (("t2", "t1", "t0"), "c1", "c0")


def test_nobody_can_make_an_undo_walk_back_older_work_first(desk: Desk) -> None:
    goal = desk.goal(task("a"), task("b", requires=("a",)))
    desk.work(commit="c1", parent="c0")
    desk.work(commit="c2", parent="c1")
    desk.call(compensate, goal)
    newest, oldest = (row["id"] for row in desk.rows("SELECT id FROM tasks WHERE plan_id = 2"))
    for attempted in (
        lambda: desk.call(force, oldest, newest, reason="in a hurry"),
        lambda: desk.call(delete_link, oldest, newest, "requires"),
    ):
        with pytest.raises(Refused, match="newest first") as refused:
            attempted()
        assert refused.value.code == "undo_order"
    assert desk.state("tasks", oldest) == "blocked"
    desk.call(create_link, oldest, 1, "refers")
    desk.call(delete_link, oldest, 1, "refers")


def test_an_undo_is_due_once_and_only_where_the_policy_of_a_failed_task_asks_for_it(
    desk: Desk,
) -> None:
    asks = Policy(max_takes=1, on_failure="undo")
    kept = desk.goal(task("a", policy=Policy(max_takes=1)))
    desk.work("failed", failure="logic", commit="c1", parent="c0", tree="t1")
    silent = desk.goal(task("b", policy=asks))
    desk.work("failed", failure="logic")
    goal = desk.goal(task("c", policy=asks))
    assert not desk.engine.read(undo_due, goal), "it has not failed"
    desk.work("failed", failure="logic", commit="c1", parent="c0", tree="t1")
    assert [desk.engine.read(undo_due, each) for each in (kept, silent, goal)] == [0, 0, 1]
    # A process may die here; whoever looks at the goal next makes the plan, and only one.
    for each in (kept, goal):
        desk.call(shown, each, "c1")
    assert desk.engine.read(resumable) == [goal], "it is found without being named"
    for _ in range(2):
        desk.call(compensate_failed, goal)
        assert not desk.engine.read(undo_due, goal)
    plans = desk.rows("SELECT source FROM plans WHERE goal_id = ?", goal)
    assert [row["source"] for row in plans] == ["single", "undo"]
