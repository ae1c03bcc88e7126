"""Rows of the store as the domain's values: the only place that knows both shapes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from holdfast.domain.model import Budget, Fence, Outcome, StepRow, TaskSpec
from holdfast.domain.ports import Usage
from holdfast.errors import NotFound, Refused
from holdfast.store import Row, Tx

T = TypeVar("T")

encode = msgspec.json.Encoder(order="deterministic").encode


def decode(content: bytes | str, kind: type[T]) -> T:
    """Validate and read one of the domain's dataclasses from JSON."""
    return msgspec.json.decode(content, type=kind)


def need(tx: Tx, noun: str, **key: int) -> Row:
    """The row of a goal, plan, task or attempt, or `NotFound` naming it."""
    row = tx.one(f"{noun}.get", **key)
    if row is None:
        raise NotFound(f"there is no {noun} {'.'.join(str(part) for part in key.values())}")
    return row


def spec_of(task: Row) -> TaskSpec:
    return decode(task["spec"], TaskSpec)


def outcome_of(attempt: Row) -> Outcome:
    """What an ended attempt reported; an expired one reported nothing."""
    if attempt["outcome"] in ("", "expired"):
        return Outcome(kind="expired", failure="transient", reason=attempt["reason"] or "lost")
    return decode(attempt["report"], Outcome)


def fence_of(attempt: Row, goal: int) -> Fence:
    return Fence(
        task=attempt["task_id"], attempt=attempt["number"], take=attempt["take"], goal=goal
    )


def budget_of(goal: Row) -> Budget:
    return Budget(tokens=goal["budget_tokens"], usd=goal["budget_usd"])


def spent_by(tx: Tx, goal: int) -> Usage:
    """Everything the goal's attempts spent, orphaned reserves included; unknown prices show."""
    return _spend(tx, goal, unpriced_shows=True)


def known_spend(tx: Tx, goal: int) -> Usage:
    """The same with the money that is known, for a limit: an unknown price hides nothing."""
    return _spend(tx, goal, unpriced_shows=False)


def _spend(tx: Tx, goal: int, *, unpriced_shows: bool) -> Usage:
    row = tx.one("goal.spent", goal=goal)
    assert row is not None
    return Usage(
        tokens_in=row["tokens_in"],
        tokens_out=row["tokens_out"],
        tokens_cached=row["tokens_cached"],
        cost_nusd=None if unpriced_shows and row["unpriced"] else row["cost_nusd"],
    )


def step_of(tx: Tx, row: Row, *, verify: bool = True) -> StepRow:
    return StepRow(
        key=row["key"],
        generation=row["generation"],
        position=row["position"],
        kind=row["kind"],
        effect=row["effect"],
        state=row["state"],
        attempt=row["attempt"],
        request=tx.unpack(row["request"], verify=verify),
        result=None if row["result"] is None else tx.unpack(row["result"], verify=verify),
        tree_before=row["tree_before"],
        tree_after=row["tree_after"],
        usage=Usage(
            tokens_in=row["tokens_in"],
            tokens_out=row["tokens_out"],
            tokens_cached=row["tokens_cached"],
            cost_nusd=row["cost_nusd"],
            reported=not row["estimated"],
        ),
        result_sha256=row["result_sha256"],
    )


def may_go_ahead(task: Row) -> None:
    """Refuse to let a task that undoes another go before its turn: undoing has one order (I10)."""
    if spec_of(task).kind == "compensate":
        raise Refused(
            f"task {task['id']} undoes work, and can only do so in its turn",
            hint=f"holdfast link list {task['id']} shows what comes before",
            code="undo_order",
        )
