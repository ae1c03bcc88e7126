"""Reading use case of the live view: a goal as it stands, in few queries however large its plan is.

Owns the snapshot that a terminal draws several times a second. It is state alone: what a worker is
about to do right now is progress, which is told elsewhere and may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from holdfast.domain.model import CheckResult, TaskSpec
from holdfast.domain.ports import Usage
from holdfast.domain.tiers import tier_of
from holdfast.engine.rows import decode, need, outcome_of, spent_by
from holdfast.frozen import frozen
from holdfast.store import Row, Tx


@frozen
class TaskLine:
    """One task with its newest attempt. Spend and time are of all its attempts together.

    `checks`, postconditions included, shall prove it, each with the newest verdict of its newest
    attempt, or "" while there is none. `worked_ms` leaves out an open attempt, which began at
    `open_ms`. `blocked_by` are the keys of what it waits for.
    """

    id: int
    key: str
    title: str
    plan: int
    state: str
    reason: str
    attempt: int
    model: str
    tier: str
    worker: str
    turns_max: int
    tokens: int
    cost_usd: float | None
    worked_ms: int
    open_ms: int | None
    checks: tuple[tuple[str, str], ...]
    blocked_by: tuple[str, ...]


@frozen
class PlanLine:
    id: int
    revision: int
    source: str
    state: str
    reason: str


@frozen
class Board:
    """A goal with its plans and tasks, in plan order. `seq` is the log's end when it was read."""

    seq: int
    goal: int
    text: str
    state: str
    reason: str
    branch: str
    created_ms: int
    ended_ms: int | None
    usage: Usage
    budget_tokens: int
    budget_usd: float
    plans: tuple[PlanLine, ...]
    tasks: tuple[TaskLine, ...]


def log_end(tx: Tx) -> int:
    """The number of the newest event: while it stands still, so does every board."""
    row = tx.one("log.end")
    assert row is not None
    return int(row["seq"])


def board(tx: Tx, goal_id: int) -> Board:
    """The goal as it stands. Raises `NotFound`."""
    goal = need(tx, "goal", id=goal_id)
    unmet: dict[int, list[str]] = {}
    for row in tx.all("board.unmet", goal=goal_id):
        unmet.setdefault(row["from_id"], []).append(row["key"])
    proofs: dict[int, list[CheckResult]] = {}
    for row in tx.all("board.checks", goal=goal_id):
        proofs.setdefault(row["task_id"], []).append(decode(tx.unpack(row["result"]), CheckResult))
    plans = [
        PlanLine(
            id=row["id"],
            revision=row["revision"],
            source=row["source"],
            state=row["state"],
            reason=row["reason"],
        )
        for row in tx.all("plan.of_goal", goal=goal_id)
    ]
    return Board(
        seq=log_end(tx),
        goal=goal_id,
        text=goal["text"],
        state=goal["state"],
        reason=goal["reason"],
        branch=goal["branch"],
        created_ms=goal["created_ms"],
        ended_ms=goal["ended_ms"],
        usage=spent_by(tx, goal_id),
        budget_tokens=goal["budget_tokens"],
        budget_usd=goal["budget_usd"],
        plans=tuple(plans),
        tasks=tuple(
            _task(row, tuple(unmet.get(row["id"], ())), proofs.get(row["id"], ()))
            for row in tx.all("board.tasks", goal=goal_id)
        ),
    )


def _task(row: Row, blocked_by: tuple[str, ...], proofs: Sequence[CheckResult]) -> TaskLine:
    """`proofs` are the checks an open attempt has done so far; an ended one reports its own."""
    title, turns_max, tier, proofs_wanted = _contract(row["spec"])
    if row["attempt_state"] == "ended":
        proofs = outcome_of(row).checks
    verdicts = {check.command: check.verdict for check in proofs}
    return TaskLine(
        id=row["id"],
        key=row["key"],
        title=title,
        plan=row["plan_id"],
        state=row["state"],
        reason=row["reason"],
        attempt=row["attempts"],
        model=row["model"] or "",
        tier=tier,
        worker=row["worker"] or "",
        turns_max=turns_max,
        tokens=row["tokens"],
        cost_usd=None if row["unpriced"] else row["cost_nusd"] / 1e9,
        worked_ms=row["worked_ms"],
        open_ms=row["started_ms"] if row["attempt_state"] == "open" else None,
        checks=tuple((command, verdicts.get(command, "")) for command in proofs_wanted),
        blocked_by=blocked_by,
    )


@lru_cache(maxsize=1024)
def _contract(spec: str) -> tuple[str, int, str, tuple[str, ...]]:
    """What a task's specification says once and for all: it never changes, and frames are many."""
    found = decode(spec, TaskSpec)
    checks = (*found.checks, *found.postconditions)
    return found.label, found.policy.max_turns, tier_of(found), checks
