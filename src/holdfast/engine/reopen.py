"""The use case of reopening: a failed goal gets another chance, without losing what is done.

A plan that failed stays failed. Its tasks go into the next revision: what succeeded stays that way,
what failed is ready for a fresh take on the goal's tip, what was blocked still waits. Kept work of
a failed take stays on the branch until other work is accepted.
"""

from __future__ import annotations

from holdfast.context.retrieve import inherit_documents
from holdfast.domain.model import Budget
from holdfast.engine.moves import move_goal, move_plan, move_task
from holdfast.engine.plans import draft
from holdfast.engine.rows import budget_of, committed, need
from holdfast.errors import Refused
from holdfast.store import Row, Tx


def reopen(tx: Tx, goal_id: int, *, reason: str = "", budget: Budget | None = None) -> int:
    """Let a failed goal go on; returns the plan that goes on. Idempotent until the goal moves.

    A limit of `budget` that is not 0 replaces the goal's. Refuses a goal that did not fail, one
    whose work was undone, and one that could only fail again: a spent budget, a cancelled task.
    """
    goal = need(tx, "goal", id=goal_id)
    plans = tx.all("plan.of_goal", goal=goal_id)
    if goal["state"] != "failed":
        last = tx.one("log.last_move", goal=goal_id)
        if last is not None and last["source"] == "failed" and goal["state"] == last["target"]:
            return int(plans[-1]["id"])
        raise Refused(
            f"goal {goal_id} is {goal['state']}; only a failed goal is reopened", code="not_failed"
        )
    broken = _broken(tx, goal, plans)
    _raise_budget(tx, goal, budget or Budget())
    tasks = tx.all("task.of_plan", plan=broken["id"])
    plan_id = draft(tx, goal_id, broken["source"])
    tx.run("task.inherit", before=broken["id"], plan=plan_id)
    inherit_documents(tx, broken["id"], plan_id)
    event = "decompose" if broken["source"] == "planning" else "reopen"
    move_goal(tx, goal_id, "failed", event, reason=reason)
    for event in ("propose", "approve"):
        plan = need(tx, "plan", id=plan_id)
        move_plan(tx, plan, plan["state"], event, reason=f"goes on after plan {broken['revision']}")
    for task in (row for row in tasks if row["state"] == "failed"):
        move_task(tx, task, "reopen", reason=reason, statement="reopen")
        if tx.all("task.unmet", id=task["id"]):
            move_task(tx, need(tx, "task", id=task["id"]), "block")
    return plan_id


def _broken(tx: Tx, goal: Row, plans: list[Row]) -> Row:
    """The plan that failed the goal, if it can go on."""
    if goal["undone_ms"] is not None or any(plan["source"] == "undo" for plan in plans):
        done = "is undone" if goal["undone_ms"] is not None else "is being undone"
        raise Refused(
            f"goal {goal['id']} {done}; there is nothing left to go on with",
            hint='start another one: holdfast run "…"',
            code="already_undone",
        )
    broken, tasks = plans[-1], tx.all("task.of_plan", plan=plans[-1]["id"])
    gone = [f"task {row['id']} ({row['key']})" for row in tasks if row["state"] == "cancelled"]
    if broken["state"] != "failed" or gone:
        over = broken["state"]
        what = f"{gone[0]} was cancelled" if over == "failed" else f"its plan is {over}"
        raise Refused(
            f"goal {goal['id']} cannot go on: {what}, and that is final",
            hint='start another goal: holdfast run "…" --plan FILE',
            code="cannot_go_on",
        )
    return broken


def _raise_budget(tx: Tx, goal: Row, wanted: Budget) -> None:
    """Give the goal its new limits; refuses when what is spent is not below them."""
    now = budget_of(goal)
    tokens, usd = wanted.tokens or now.tokens, wanted.usd or now.usd
    spent = committed(tx, goal["id"])[0]
    spent_usd = (spent.cost_nusd or 0) / 1e9
    if (tokens and spent.tokens >= tokens) or (usd and spent_usd >= usd):
        raise Refused(
            f"goal {goal['id']} has spent {spent.tokens:,} tokens and ${spent_usd:.4f}, "
            "which is all of its budget",
            hint="give it more: --budget-tokens N or --budget-usd X",
            code="budget_spent",
        )
    tx.run("goal.allow", id=goal["id"], tokens=tokens, usd=usd)
