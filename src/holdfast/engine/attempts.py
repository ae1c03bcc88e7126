"""What an attempt left, read as one value for replay and `why`: bundle bytes, steps, outcome."""

from __future__ import annotations

from holdfast.domain.model import Fence, Outcome, StepRow
from holdfast.domain.ports import Usage
from holdfast.engine.rows import need, outcome_of, step_of
from holdfast.errors import NotFound, Refused
from holdfast.frozen import frozen
from holdfast.store import Tx

NAME_CHARS_MAX = 64


@frozen
class AttemptRecord:
    """One attempt with its take's journal up to it. `bundle` is unverified when read so."""

    fence: Fence
    worker: str
    model: str
    outcome: Outcome | None
    bundle_sha256: str
    bundle: bytes
    base_tree: str
    steps: tuple[StepRow, ...]
    usage: Usage
    started_ms: int
    ended_ms: int | None


def parse_attempt(name: str) -> tuple[int, int]:
    """`TASK.ATTEMPT` as two numbers; raises `Refused` for anything else."""
    task, dot, number = name.partition(".")
    digits = task.isascii() and task.isdigit() and number.isascii() and number.isdigit()
    if not (dot and digits and len(name) <= NAME_CHARS_MAX):
        raise Refused(
            f"{name[:NAME_CHARS_MAX]!r} names no attempt",
            hint="an attempt is TASK.NUMBER, such as 3.1",
        )
    return int(task), int(number)


def attempt_record(tx: Tx, name: str, *, verify: bool = True) -> AttemptRecord:
    """Read an attempt by its public name. Steps a later attempt wrote are left out."""
    task_id, number = parse_attempt(name)
    task = need(tx, "task", id=task_id)
    row = need(tx, "attempt", task=task_id, attempt=number)
    take = tx.one("take.get", task=task_id, take=row["take"])
    if take is None or not take["bundle_sha256"]:
        raise NotFound(f"attempt {name} ended before it was given a bundle")
    steps = [
        step_of(tx, step, verify=verify)
        for step in tx.all("step.of_take", task=task_id, take=row["take"])
        if step["attempt"] <= number
    ]
    return AttemptRecord(
        fence=Fence(task=task_id, attempt=number, take=row["take"], goal=task["goal_id"]),
        worker=row["worker"],
        model=row["model"],
        outcome=outcome_of(row) if row["state"] == "ended" else None,
        bundle_sha256=take["bundle_sha256"],
        bundle=tx.get(take["bundle_sha256"], verify=verify),
        base_tree=take["base_tree"],
        steps=tuple(steps),
        usage=Usage(
            tokens_in=row["tokens_in"],
            tokens_out=row["tokens_out"],
            tokens_cached=row["tokens_cached"],
            cost_nusd=None if row["unpriced"] else row["cost_nusd"],
        ),
        started_ms=row["started_ms"],
        ended_ms=row["ended_ms"],
    )
