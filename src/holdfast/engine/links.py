"""Use cases of the graph: typed links between tasks, what depends on what, and what blocks what.

A link goes from the task that needs or mentions to the one it needs or mentions. Only `requires`
decides who may start; a link across plans is allowed and counts for context as `refers`. Nothing
here writes a state except that a new requirement blocks a ready task and a removed one frees it.
"""

from __future__ import annotations

from typing import Any, get_args

from holdfast.domain import graph
from holdfast.domain.model import LinkKind
from holdfast.engine.moves import move_task
from holdfast.engine.rows import keeps_its_order, need, spec_of
from holdfast.engine.settle import unblock
from holdfast.errors import NotFound, Refused
from holdfast.store import Row, Tx

Json = dict[str, Any]
KINDS: tuple[LinkKind, ...] = get_args(LinkKind)


def create_link(tx: Tx, from_id: int, to_id: int, kind: str) -> bool:
    """Link two tasks; True when the link is new. Idempotent.

    Raises `Refused` for an unknown kind, a self-link, a loop of requirements (with one concrete way
    round and the link to remove) or a requirement of a task that has started, `NotFound` for a task
    that does not exist.
    """
    _kind(kind)
    if from_id == to_id:
        raise Refused(
            f"task {from_id} cannot be linked to itself",
            hint="name another task: holdfast task",
            code="link_self",
        )
    task, other = need(tx, "task", id=from_id), need(tx, "task", id=to_id)
    known = any(row["to_id"] == to_id and row["kind"] == kind for row in _outgoing(tx, from_id))
    if known:
        return False
    if kind == "requires":
        if task["state"] not in ("blocked", "ready"):
            raise Refused(
                f"task {from_id} is {task['state']}; it can no longer wait for another",
                hint="link it with 'refers', or add the requirement to a task that has not started",
            )
        _refuse_loop(tx, from_id, to_id)
    tx.run("link.add", from_id=from_id, to_id=to_id, kind=kind)
    if kind == "requires" and task["state"] == "ready" and tx.all("task.unmet", id=from_id):
        move_task(tx, task, "block", reason=f"waits for {other['key']}")
    return True


def delete_link(tx: Tx, from_id: int, to_id: int, kind: str) -> None:
    """Remove a link; a task that waited for nothing else becomes ready. `NotFound` if absent."""
    _kind(kind)
    task = need(tx, "task", id=from_id)
    if kind == "requires":
        keeps_its_order(task)
    if not tx.run("link.remove", from_id=from_id, to_id=to_id, kind=kind):
        raise NotFound(
            f"task {from_id} has no link {kind!r} to task {to_id}",
            hint=f"holdfast link list {from_id} shows those it has",
        )
    if kind == "requires":
        unblock(tx, task)


def list_links(tx: Tx, task_id: int) -> Json:
    """The links of a task as `incoming` and `outgoing`, each by kind, then by task."""
    need(tx, "task", id=task_id)
    return {
        "incoming": [_link(row, row["from_id"]) for row in tx.all("link.in", id=task_id)],
        "outgoing": [_link(row, row["to_id"]) for row in _outgoing(tx, task_id)],
    }


def all_links(tx: Tx) -> list[Json]:
    """Every link of the store, in the order of the tasks that they go from."""
    return [dict(row) for row in tx.all("link.all")]


def list_dependencies(tx: Tx, task_id: int) -> list[Json]:
    """What a task requires and refers to, requirements first, then by task."""
    need(tx, "task", id=task_id)
    rows = [row for row in _outgoing(tx, task_id) if row["kind"] in ("requires", "refers")]
    rows.sort(key=lambda row: (row["kind"] != "requires", row["to_id"]))
    return [
        {**_link(row, row["to_id"]), "title": spec_of(need(tx, "task", id=row["to_id"])).label}
        for row in rows
    ]


def blockers(tx: Tx, task_id: int) -> list[Json]:
    """Everything that keeps a task from starting, nearest first, each with the way to it.

    `why` is `blocked` for a task that itself waits for the ones behind it; any other state is a
    cause: nothing behind it holds this task back.
    """
    need(tx, "task", id=task_id)
    found: dict[int, Json] = {}
    ways = [[task_id]]
    for way in ways:
        for row in tx.all("task.unmet", id=way[-1]):
            if row["id"] in found:
                continue
            found[row["id"]] = {
                "task": row["id"],
                "key": row["key"],
                "why": row["state"],
                "path": [*way, row["id"]],
            }
            ways.append([*way, row["id"]])
    return list(found.values())


def _refuse_loop(tx: Tx, from_id: int, to_id: int) -> None:
    """Refuse a requirement that would close a loop; names the one to remove instead."""
    requires: dict[int, list[int]] = {}
    for row in tx.all("link.reachable", id=to_id):
        requires.setdefault(row["from_id"], []).append(row["to_id"])
        requires.setdefault(row["to_id"], [])
    requires.setdefault(from_id, []).append(to_id)
    requires.setdefault(to_id, [])
    for cycle in graph.cycles(requires):
        way = " → ".join(str(task) for task in cycle.loop)
        others = ", ".join(str(task) for task in sorted(cycle.members))
        first, last = cycle.remove
        remedy = (
            "only this link closes it: leave it out, or link with 'refers'"
            if cycle.remove == (from_id, to_id) or not cycle.frees_all
            else f"remove that task {first} requires {last}, or link with 'refers'"
        )
        raise Refused(
            f"task {from_id} cannot require {to_id}: it would close the loop {way} (of {others})",
            hint=remedy,
            code="link_cycle",
        )


def _outgoing(tx: Tx, task_id: int) -> list[Row]:
    return tx.all("link.out", id=task_id)


def _link(row: Row, other: int) -> Json:
    return {
        "from_id": row["from_id"],
        "to_id": row["to_id"],
        "kind": row["kind"],
        "task": other,
        "key": row["key"],
        "state": row["state"],
    }


def _kind(kind: str) -> None:
    if kind not in KINDS:
        raise Refused(
            f"there is no link kind {kind!r}", hint="kinds: " + ", ".join(KINDS), code="link_kind"
        )
