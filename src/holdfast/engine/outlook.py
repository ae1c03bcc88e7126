"""Reading use cases: what a worker, a verb or a person needs to know, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.domain.model import Outcome
from holdfast.domain.ports import Usage
from holdfast.engine.rows import need, outcome_of, spec_of, spent_by
from holdfast.frozen import frozen
from holdfast.store import Row, Tx
from holdfast.trace.events import readable


@frozen
class Outlook:
    """What can still happen to a goal by itself.

    `ready_ms` is when its next ready task may start, None when there is none. `running` counts open
    attempts of any process. `waiting` are tasks that need a person.
    """

    ready_ms: int | None
    running: int
    waiting: tuple[int, ...]


@frozen
class Neighbour:
    """Another task, seen from one task: `kind` is the link, or `plan` for a mere neighbour.

    `outside` is true for a linked task of another plan, which counts as `refers`.
    """

    id: int
    key: str
    kind: str
    title: str
    state: str
    answer: str
    outside: bool = False


def outlook(tx: Tx, goal: int) -> Outlook:
    """What is left to do for a goal; nothing ready and nothing running means it rests."""
    live = {row["id"] for row in tx.all("plan.of_goal", goal=goal) if row["state"] == "running"}
    tasks = [task for task in tx.all("task.of_goal", goal=goal) if task["plan_id"] in live]
    ready = [task["not_before_ms"] for task in tasks if task["state"] == "ready"]
    return Outlook(
        ready_ms=min(ready, default=None),
        running=sum(task["state"] == "running" for task in tasks),
        waiting=tuple(task["id"] for task in tasks if task["state"] == "waiting"),
    )


def neighbours(tx: Tx, task_id: int) -> list[Neighbour]:
    """The other tasks of a task's plan in plan order, then linked ones of other plans."""
    task = need(tx, "task", id=task_id)
    links = tx.all("link.of_task", id=task_id)
    linked: dict[int, str] = {}
    for kind in ("requires", "refers", "duplicates", "relates_to"):
        for row in links:
            if row["kind"] == kind:
                linked.setdefault(row["id"], kind)
    plan = [
        _neighbour(tx, row, linked.get(row["id"], "plan"))
        for row in tx.all("task.of_plan", plan=task["plan_id"])
        if row["id"] != task_id
    ]
    outside = {
        row["id"]: _neighbour(tx, row, "refers", outside=True)
        for row in links
        if row["plan_id"] != task["plan_id"] and row["kind"] in ("requires", "refers")
    }
    return [*plan, *outside.values()]


def answer_of(tx: Tx, task_id: int) -> str | None:
    """What a task's newest attempt answered, anywhere in the store; None when there is none."""
    row = tx.one("task.get", id=task_id)
    return None if row is None else _answer(tx, task_id, row["attempts"]) or None


def last_report(tx: Tx, task_id: int, *, before: int) -> Outcome | None:
    """How the newest attempt older than number `before` ended; None when there was none."""
    ended = [row for row in tx.all("attempt.of_task", task=task_id) if row["number"] < before]
    return outcome_of(ended[-1]) if ended else None


def previous_end(tx: Tx, task_id: int, *, before: int) -> tuple[int, str]:
    """Number and reason of the attempt before; (0, "") when there was none."""
    ended = [row for row in tx.all("attempt.of_task", task=task_id) if row["number"] < before]
    return (ended[-1]["number"], ended[-1]["reason"]) if ended else (0, "")


def goal_result(tx: Tx, goal_id: int) -> dict[str, Any]:
    """The object that `run` and `resume` end with, from state alone.

    `commit` is what the branch holds: None while nothing changed, and then there is no branch.
    """
    goal = need(tx, "goal", id=goal_id)
    tasks = tx.all("task.of_goal", goal=goal_id)
    plans = tx.all("plan.of_goal", goal=goal_id)
    aside = {row["id"] for row in plans if row["state"] in ("rejected", "superseded")}
    plan_tasks = [
        task
        for task in tasks
        if spec_of(task).kind != "compensate" and task["plan_id"] not in aside
    ]
    proposed = next((int(row["id"]) for row in plans if row["state"] == "proposed"), None)
    ends = [_last_end(tx, task["id"]) for task in plan_tasks]
    spent = spent_by(tx, goal_id)
    return {
        "type": "result",
        "goal": goal_id,
        "state": goal["state"],
        "outcome": "waiting" if proposed else _outcome(goal, plan_tasks, ends),
        "reason": goal["reason"],
        "branch": _where(goal),
        "base": goal["base_commit"] or None,
        "commit": _moved_to(goal),
        "repository": goal["repository"],
        "checks": [
            {"task": task["key"], "attempt": _session(task), **msgspec.to_builtins(check)}
            for task, end in zip(plan_tasks, ends, strict=True)
            for check in (end.checks if end else ())
        ],
        "usage": usage(spent),
        "attempts": sum(len(tx.all("attempt.of_task", task=task["id"])) for task in tasks),
        "tasks": [_task(task, end) for task, end in zip(plan_tasks, ends, strict=True)],
        "undone": goal["undone_ms"] is not None,
        "proposed_plan": proposed,
        "created_ms": goal["created_ms"],
        "ended_ms": goal["ended_ms"],
    }


def _moved_to(goal: Row) -> str | None:
    return goal["branch_commit"] if goal["branch_commit"] != goal["base_commit"] else None


def _where(goal: Row) -> str:
    """The branch; where it could not be moved to the newest work, the ref that holds that."""
    hidden = goal["branch_commit"] and goal["branch_commit"] != goal["shown_commit"]
    return f"refs/holdfast/goals/{goal['id']}" if hidden else str(goal["branch"])


def usage(spent: Usage) -> dict[str, Any]:
    """Tokens and money as JSON; `cost_usd` null means that a price is unknown."""
    return {
        "tokens": spent.tokens,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "tokens_cached": spent.tokens_cached,
        "cost_usd": None if spent.cost_nusd is None else spent.cost_nusd / 1e9,
    }


def events(tx: Tx, *, goal: int = 0, after: int = 0, limit: int = 500) -> Sequence[dict[str, Any]]:
    """A page of the log as JSON objects; `seq` of the last one is the next cursor."""
    rows = (
        tx.all("log.page.goal", goal=goal, after=after, limit=limit)
        if goal
        else tx.all("log.page", after=after, limit=limit)
    )
    found = []
    for row in rows:
        body = msgspec.json.decode(row["body"])
        event = {
            "seq": row["seq"],
            "at_ms": row["at_ms"],
            "type": row["kind"],
            "goal": row["goal_id"],
            "task": row["task_id"],
            "attempt": row["attempt"],
        }
        if row["kind"] == "transition":
            event |= {key: row[key] for key in ("machine", "entity", "source", "event", "target")}
        else:
            body = readable(row["kind"], body)
        found.append({**event, **body})
    return found


def _task(task: Any, end: Outcome | None) -> dict[str, Any]:
    return {
        "id": task["id"],
        "key": task["key"],
        "state": task["state"],
        "reason": task["reason"],
        "outcome": end.kind if end else None,
        "failure": end.failure if end else None,
        "detail": end.detail if end else "",
        "done": list(end.done) if end else [],
        "remaining": list(end.remaining) if end else [],
        "attempt": _session(task),
    }


def _session(task: Any) -> str:
    """The last attempt's public name; `.0` when there was none."""
    return f"{task['id']}.{task['attempts']}"


def _outcome(goal: Row, tasks: Sequence[Row], ends: Sequence[Outcome | None]) -> str:
    """One word for the goal, from its state and how its tasks ended."""
    state = goal["state"]
    if state == "complete":
        unverified = any(
            end is not None and end.kind == "unverified" and not spec_of(task).provisional
            for task, end in zip(tasks, ends, strict=True)
        )
        return "unverified" if unverified else "passed"
    if state == "dropped":
        return "cancelled"
    if state == "failed":
        return "partial" if goal["reason"] == "exhausted" else "failed"
    if any(task["state"] == "waiting" for task in tasks):
        return "waiting"
    return "interrupted"


def _last_end(tx: Tx, task_id: int) -> Outcome | None:
    rows = [row for row in tx.all("attempt.of_task", task=task_id) if row["state"] == "ended"]
    return outcome_of(rows[-1]) if rows else None


def _neighbour(tx: Tx, row: Row, kind: str, *, outside: bool = False) -> Neighbour:
    return Neighbour(
        id=row["id"],
        key=row["key"],
        kind=kind,
        title=spec_of(row).label,
        state=row["state"],
        answer=_answer(tx, row["id"], row["attempts"]),
        outside=outside,
    )


def _answer(tx: Tx, task_id: int, attempt: int) -> str:
    if not attempt:
        return ""
    row = need(tx, "attempt", task=task_id, attempt=attempt)
    return outcome_of(row).answer if row["state"] == "ended" else ""
