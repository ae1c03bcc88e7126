"""Undoing a goal: a compensation plan that walks its work back, newest first.

The goal keeps its state and gains `undone_ms` when the plan finishes. Each compensating task walks
the trees of one task's steps from the last to the base; the executor checks every tree by its hash.
"""

from __future__ import annotations

from holdfast.domain.model import PlanSpec, TaskSpec
from holdfast.engine.intake import add_plan
from holdfast.engine.rows import need, outcome_of, spec_of
from holdfast.errors import Refused
from holdfast.store import Row, Tx

LIVE = ("running", "paused", "draft", "proposed")


def compensate(tx: Tx, goal_id: int) -> int:
    """Make the plan that undoes a goal; returns its id. An unfinished one is returned again."""
    goal = need(tx, "goal", id=goal_id)
    plans = tx.all("plan.of_goal", goal=goal_id)
    going = next((plan for plan in plans if plan["state"] in LIVE), None)
    if going is not None and going["source"] == "undo":
        return int(going["id"])
    if going is not None:
        raise Refused(
            f"goal {goal_id} is still {goal['state']}", hint=f"holdfast goal cancel {goal_id}"
        )
    if goal["undone_ms"] is not None:
        raise Refused(f"goal {goal_id} is undone already", code="already_undone")
    work = to_undo(tx, goal_id)
    if not work:
        raise Refused(f"goal {goal_id} changed nothing", hint="there is nothing to undo")
    tasks: list[TaskSpec] = []
    for task in work:
        tasks.append(
            TaskSpec(
                key=f"undo-{task['key']}",
                title=f"Undo {spec_of(task).label}",
                prompt="",
                kind="compensate",
                requires=(tasks[-1].key,) if tasks else (),
                compensates=task["id"],
                policy=spec_of(task).policy,
            )
        )
    return add_plan(tx, goal_id, PlanSpec(tasks=tuple(tasks), source="undo"))


def undo_due(tx: Tx, goal_id: int) -> bool:
    """Whether a goal failed by a task whose policy is to undo it, and nobody has tried to yet."""
    if need(tx, "goal", id=goal_id)["state"] != "failed":
        return False
    tried = any(plan["source"] == "undo" for plan in tx.all("plan.of_goal", goal=goal_id))
    failed = [task for task in tx.all("task.of_goal", goal=goal_id) if task["state"] == "failed"]
    asked = any(spec_of(task).policy.on_failure == "undo" for task in failed)
    return asked and not tried and bool(to_undo(tx, goal_id))


def compensate_failed(tx: Tx, goal_id: int) -> None:
    """Undo a goal if that is due. Idempotent: an undo that was tried is left to a person."""
    if undo_due(tx, goal_id):
        compensate(tx, goal_id)


def to_undo(tx: Tx, goal_id: int) -> list[Row]:
    """The goal's tasks whose work is on its branch, in reverse completion order (I10).

    Of the kept work of failed tasks the branch shows the newest, until other work is accepted.
    """
    shows = need(tx, "goal", id=goal_id)["branch_commit"]
    plans = {row["id"] for row in tx.all("plan.of_goal", goal=goal_id) if row["source"] != "undo"}
    done = [
        task
        for task in tx.all("task.of_goal", goal=goal_id)
        if task["plan_id"] in plans
        and task["commit_id"]
        and (task["state"] == "succeeded" or task["commit_id"] == shows)
    ]
    # By the log, not by the clock: it may have been set back between two completions.
    ended = {row["task_id"]: row["seq"] for row in tx.all("task.completions", goal=goal_id)}
    return sorted(done, key=lambda task: int(ended[task["id"]]), reverse=True)


def trees_to_undo(tx: Tx, task_id: int) -> tuple[tuple[str, ...], str, str]:
    """A task's trees from its newest to its base, its commit, and the commit to walk back to.

    Accepted work builds on the tip it was merged with. Kept work was never on the tip, which may
    have moved since that work began.
    """
    task = need(tx, "task", id=task_id)
    attempt = next(  # a later one of a goal that was reopened may have left no work
        row
        for row in reversed(tx.all("attempt.of_task", task=task_id))
        if outcome_of(row).commit == task["commit_id"]
    )
    take = tx.one("take.get", task=task_id, take=attempt["take"])
    assert take is not None
    trees = [str(take["base_tree"])]
    for row in tx.all("step.of_take", task=task_id, take=attempt["take"]):
        if row["state"] == "done" and row["tree_after"] and row["tree_after"] != trees[-1]:
            trees.append(row["tree_after"])
    outcome = outcome_of(attempt)
    kept = task["state"] != "succeeded"
    back = need(tx, "goal", id=task["goal_id"])["tip_commit"] if kept else outcome.parent
    return tuple(reversed(trees)), outcome.commit, back
