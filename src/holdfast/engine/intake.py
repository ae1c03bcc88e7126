"""Use cases that bring work in and steer it: submit, cancel, pause, resume, force, signal.

Each is one function in one transaction, so a goal is never left half-made.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain, count

from holdfast.domain.model import GoalSpec, PlanSpec
from holdfast.engine.moves import move_goal, move_plan, move_task
from holdfast.engine.plans import approve, propose, validate
from holdfast.engine.rows import encode, keeps_its_order, need
from holdfast.engine.settle import end_cancelled, plan_progress, unblock
from holdfast.errors import Refused
from holdfast.store import Row, Tx, transition


def submit(tx: Tx, goal: GoalSpec, plan: PlanSpec, *, review: bool = False) -> int:
    """Make a goal with its plan and tasks; returns the goal's id.

    With `review` the plan stays proposed until a person approves it. The plan's graph is validated
    first: a cycle or missing requirement is `Refused` with its path.
    """
    validate(plan)
    goal_id = tx.number("id.goal")
    transition(
        tx,
        "goal",
        "submit",
        source="",
        entity=str(goal_id),
        goal=goal_id,
        statement="submit",
        values={
            "id": goal_id,
            "text": goal.text,
            "repository": goal.repository,
            "base_commit": goal.base_commit,
            "base_tree": goal.base_tree,
            "branch": goal.branch or _free_branch(goal_id, goal.branches),
            "model": goal.model,
            "budget_tokens": goal.budget.tokens,
            "budget_usd": goal.budget.usd,
            "seed": goal.seed,
        },
    )
    move_goal(tx, goal_id, "submitted", "decompose")
    plan_id = propose(tx, goal_id, plan)
    if not review:
        approve(tx, plan_id)
    return goal_id


def add_plan(tx: Tx, goal_id: int, plan: PlanSpec) -> int:
    """Add a validated, approved revision to a goal; returns the plan's id."""
    plan_id = propose(tx, goal_id, plan)
    approve(tx, plan_id)
    return plan_id


def pause(tx: Tx, goal_id: int, *, reason: str = "paused") -> None:
    """Stop new claims of a goal and ask its open attempts to end. Idempotent."""
    need(tx, "goal", id=goal_id)
    for plan in tx.all("plan.of_goal", goal=goal_id):
        if plan["state"] == "running":
            move_plan(tx, plan, "running", "pause", reason=reason)
    _ask_cancel(tx, goal_id)


def resume(tx: Tx, goal_id: int) -> None:
    """Let a paused goal be claimed again. Idempotent."""
    need(tx, "goal", id=goal_id)
    for plan in tx.all("plan.of_goal", goal=goal_id):
        if plan["state"] == "paused":
            move_plan(tx, plan, "paused", "resume")


def cancel(tx: Tx, goal_id: int, *, reason: str = "cancelled") -> None:
    """Drop a goal: its tasks and plan are cancelled, open attempts end. Kept work stays."""
    goal = need(tx, "goal", id=goal_id)
    if goal["state"] in ("complete", "dropped"):
        raise Refused(f"goal {goal_id} is {goal['state']}; there is nothing to cancel")
    for task in tx.all("task.of_goal", goal=goal_id):
        if task["state"] == "running":
            end_cancelled(tx, task, reason)
        elif task["state"] in ("blocked", "ready", "waiting"):
            _task_event(tx, task, "cancel", reason)
    for plan in tx.all("plan.of_goal", goal=goal_id):
        if plan["state"] in ("draft", "proposed", "running", "paused"):
            move_plan(tx, plan, plan["state"], "cancel", reason=reason)
    state = need(tx, "goal", id=goal_id)["state"]  # the end of its last task may have moved it
    if state != "dropped":
        move_goal(tx, goal_id, state, "drop", reason=reason)


def force(tx: Tx, task_id: int, ignored_id: int, *, reason: str) -> None:
    """Record that a task may start without one of its requirements, and why. Idempotent."""
    if not reason.strip():
        raise Refused("a force needs a reason", hint="say why the requirement may be ignored")
    task = need(tx, "task", id=task_id)
    keeps_its_order(task)
    required = [row for row in tx.all("link.of_task", id=task_id) if row["kind"] == "requires"]
    if ignored_id not in {row["id"] for row in required}:
        needed = ", ".join(f"{row['id']} ({row['key']})" for row in required) or "nothing"
        raise Refused(f"task {task_id} does not require {ignored_id}", hint=f"it requires {needed}")
    tx.run("task.force", id=task_id, ignored=ignored_id, reason=reason)
    unblock(tx, task)


def signal(tx: Tx, task_id: int, key: str, value: str) -> None:
    """Answer a waiting task: the value becomes a recorded decision of its journal, under `key`.

    The task is ready again and its next attempt finds the decision where it asked for it.
    """
    task = need(tx, "task", id=task_id)
    if task["state"] != "waiting":
        raise Refused(f"task {task_id} is {task['state']}, it does not wait for an answer")
    take = {"task": task_id, "take": task["take"]}
    transition(
        tx,
        "step",
        "done",
        source="",
        entity=f"{task_id}/{task['take']}/{key}#1",
        goal=task["goal_id"],
        task=task_id,
        statement="born",
        values={
            **take,
            "key": key,
            "generation": 1,
            "position": tx.number("step.next_position", **take),
            "kind": "decision",
            "effect": "pure",
            "attempt": 0,
            "request": "{}",
            "result": tx.pack(encode(value)),
            "result_sha256": "",
            "tree_before": "",
            "tree_after": "",
        },
    )
    _task_event(tx, task, "signal")


def _free_branch(goal_id: int, taken: Collection[str]) -> str:
    """Another store, or one that was deleted, may have left a branch of the goal's name."""
    name = f"holdfast/goal-{goal_id}"
    others = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain((name,), others) if each not in taken)


def _task_event(tx: Tx, task: Row, event: str, reason: str = "") -> None:
    move_task(tx, task, event, reason=reason)
    plan_progress(tx, task["plan_id"])


def _ask_cancel(tx: Tx, goal_id: int) -> None:
    for attempt in tx.all("attempt.open"):
        if attempt["goal_id"] == goal_id:
            tx.run("attempt.ask_cancel", task=attempt["task_id"], attempt=attempt["number"])
