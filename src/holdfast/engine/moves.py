"""The three short forms of `transition()` that the use cases share: one a noun."""

from __future__ import annotations

from typing import Any

from holdfast.store import Row, Tx, transition


def move_goal(tx: Tx, goal_id: int, source: str, event: str, *, reason: str = "") -> None:
    ended = tx.now_ms if event in ("drop", "complete", "fail") else None
    transition(
        tx,
        "goal",
        event,
        source=source,
        entity=str(goal_id),
        goal=goal_id,
        reason=reason,
        values={"id": goal_id, "ended_ms": ended},
    )


def move_plan(tx: Tx, plan: Row, source: str, event: str, *, reason: str = "") -> None:
    transition(
        tx,
        "plan",
        event,
        source=source,
        entity=str(plan["id"]),
        goal=plan["goal_id"],
        reason=reason,
        values={"id": plan["id"]},
    )


def move_task(
    tx: Tx, task: Row, event: str, *, reason: str = "", statement: str = "", **values: Any
) -> None:
    transition(
        tx,
        "task",
        event,
        source=task["state"],
        entity=str(task["id"]),
        goal=task["goal_id"],
        task=task["id"],
        reason=reason,
        statement=statement,
        values={"id": task["id"], **values},
    )
