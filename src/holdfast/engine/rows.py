"""Rows of the store as the domain's values: the only place that knows both shapes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from holdfast.domain.model import Budget, Fence, Outcome, StepRow, TaskSpec
from holdfast.domain.ports import Usage
from holdfast.errors import NotFound, Refused
from holdfast.store import Row, Tx

T = TypeVar("T")
INTEGER_MAX = 2**63 - 1

encode = msgspec.json.Encoder(order="deterministic").encode


def decode(content: bytes | str, kind: type[T]) -> T:
    """Validate and read one of the domain's dataclasses from JSON."""
    return msgspec.json.decode(content, type=kind)


def need(tx: Tx, noun: str, /, **key: int) -> Row:
    """The row of a goal, plan, task or attempt, or `NotFound` naming it."""
    known = all(abs(part) <= INTEGER_MAX for part in key.values())
    row = tx.one(f"{noun}.get", **key) if known else None
    if row is None:
        name = ".".join(str(part) for part in key.values())
        raise NotFound(f"there is no {noun} {name}", hint=f"see those there are: holdfast {noun}")
    return row


def spec_of(task: Row) -> TaskSpec:
    return decode(task["spec"], TaskSpec)


def keeps_its_order(task: Row) -> None:
    """Refuse to let a task of an undo start before the one it waits for (I10)."""
    if spec_of(task).kind == "compensate":
        raise Refused(
            f"task {task['id']} undoes work, and work is undone newest first",
            hint="let the task it waits for end",
            code="undo_order",
        )


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
    row = _spent(tx, goal)
    return _usage(row, None if row["unpriced"] else row["cost_nusd"])


def committed(tx: Tx, goal: int) -> tuple[Usage, int, int]:
    """What counts against a budget: what is spent, and tokens and 10^-9 USD reserved in flight.

    Of the money, what is known: an unknown price hides nothing.
    """
    row = _spent(tx, goal)
    return _usage(row, row["cost_nusd"]), row["reserved_tokens"], row["reserved_nusd"]


def _spent(tx: Tx, goal: int) -> Row:
    row = tx.one("goal.spent", goal=goal)
    assert row is not None
    return row


def _usage(row: Row, cost_nusd: int | None) -> Usage:
    return Usage(
        tokens_in=row["tokens_in"],
        tokens_out=row["tokens_out"],
        tokens_cached=row["tokens_cached"],
        cost_nusd=cost_nusd,
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
