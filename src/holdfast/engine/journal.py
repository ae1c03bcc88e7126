"""The use case of steps: one batch of writes to a take's journal, one commit, one fence.

A step's request is fixed when it is intended, its result when it is done; neither changes after
(I5). Every batch first proves that the attempt is still open and adds what was spent and what is
reserved, in one statement; a stale writer changes nothing (I2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, assert_never

from msgspec import Struct, field

from holdfast.domain import decide
from holdfast.domain.model import Fence, StepRow
from holdfast.domain.ports import Effect, Usage
from holdfast.engine.rows import budget_of, committed, decode, step_of
from holdfast.errors import Stale
from holdfast.store import Tx, transition


class StepName(Struct, frozen=True, kw_only=True):
    """Where a step lives within its take. A reset of a key opens the next generation."""

    key: str
    generation: int = 1


class Intend(Struct, frozen=True, kw_only=True):
    """Written before an effect that is not pure. `reserve_*` is what the call may cost at most.

    A reserve of None is a price that is unknown, which is not zero.
    """

    step: StepName
    position: int
    kind: str
    effect: Effect
    request: bytes
    tree_before: str = ""
    reserve_tokens: int = 0
    reserve_nusd: int | None = 0


class Redo(Struct, frozen=True, kw_only=True):
    """A later attempt performs an intended step again, and must be able to pay for it again."""

    step: StepName
    reserve_tokens: int = 0
    reserve_nusd: int | None = 0


class Lose(Struct, frozen=True, kw_only=True):
    """An irreversible step was intended and nobody knows whether it happened."""

    step: StepName


class Done(Struct, frozen=True, kw_only=True):
    """Written after an effect: its result, the tree it left and what it spent.

    `reserve_*` is what this attempt reserved for it, given back now; another amount is refused.
    """

    step: StepName
    result: bytes
    result_sha256: str
    tree_after: str = ""
    usage: Usage = field(default_factory=Usage)
    reserve_tokens: int = 0
    reserve_nusd: int | None = 0


class Born(Struct, frozen=True, kw_only=True):
    """A pure step: intended and done at once."""

    step: StepName
    position: int
    kind: str
    request: bytes
    result: bytes
    result_sha256: str
    effect: Effect = "pure"
    tree_before: str = ""
    tree_after: str = ""


class Record(Struct, frozen=True, kw_only=True):
    """One trace event of the same transaction; `body` is its compact JSON."""

    kind: str
    body: bytes


Write = Intend | Redo | Lose | Done | Born | Record


def step(tx: Tx, fence: Fence, writes: Sequence[Write]) -> None:
    """Apply a batch to the journal of the fence's take, all or nothing.

    Raises `Stale` when the attempt has ended and `Exhausted` when the goal's budget cannot pay for
    what the batch intends; then nothing of the batch is stored.
    """
    call = _account(tx, fence, writes)
    if call is not None:
        _afford(tx, fence, call)
    where = {"task": fence.task, "take": fence.take, "attempt": fence.attempt}
    for write in writes:
        if isinstance(write, Record):
            record(tx, fence, write.kind, write.body)
        else:
            _write(tx, fence, write, where)


def record(tx: Tx, fence: Fence, kind: str, body: bytes) -> None:
    """Add one trace event to the log; evidence only, no state follows from it."""
    tx.log(kind, body, goal=fence.goal, task=fence.task, attempt=fence.attempt)


def steps_of(tx: Tx, task: int, take: int) -> list[StepRow]:
    """A take's journal in order."""
    return [step_of(tx, row) for row in tx.all("step.of_take", task=task, take=take)]


def irreversible_before(tx: Tx, fence: Fence) -> list[tuple[StepRow, str | None]]:
    """Irreversible steps of earlier takes, each with what a person answered about it, if asked.

    One that a person let be redone is left out: the generation after it answers, if it was begun.
    """
    found = []
    for row in tx.all("step.irreversible", task=fence.task, take=fence.take):
        word = None if row["answer"] is None else decode(tx.unpack(row["answer"]), str)
        if word != "redo":
            found.append((step_of(tx, row), word))
    return found


def _account(tx: Tx, fence: Fence, writes: Sequence[Write]) -> Intend | Redo | None:
    """Prove that the attempt is open; add what the done steps used and what the next may cost.

    What was reserved for a step that is done is given back. Answers the last call that reserves.
    """
    steps = tokens_in = tokens_out = tokens_cached = cost_nusd = unpriced = 0
    reserved_tokens = reserved_nusd = 0
    call = None
    for write in writes:
        match write:
            case Record():
                pass
            case Done(usage=usage):
                steps += 1
                tokens_in += usage.tokens_in
                tokens_out += usage.tokens_out
                tokens_cached += usage.tokens_cached
                cost_nusd += usage.cost_nusd or 0
                unpriced += usage.cost_nusd is None
                reserved_tokens -= write.reserve_tokens
                reserved_nusd -= write.reserve_nusd or 0
            case Intend() | Redo():
                reserved_tokens += write.reserve_tokens
                reserved_nusd += write.reserve_nusd or 0
                if write.reserve_tokens or write.reserve_nusd:
                    call = write
            case Born():
                steps += 1
            case Lose():
                pass
            case _:
                assert_never(write)
    changed = tx.run(
        "attempt.spend",
        task=fence.task,
        attempt=fence.attempt,
        done=steps,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=tokens_cached,
        cost_nusd=cost_nusd,
        unpriced=unpriced,
        reserved_tokens=reserved_tokens,
        reserved_nusd=reserved_nusd,
    )
    if changed != 1:
        raise Stale(
            f"attempt {fence.session} has ended; its step was not stored",
            hint="another attempt owns the task now",
        )
    return call


def _afford(tx: Tx, fence: Fence, call: Intend | Redo) -> None:
    """Refuse what the budget cannot pay for beside all that was spent and reserved before it.

    Of several calls the last decides: the others stand before it.
    """
    goal = tx.one("goal.budget", id=fence.goal)
    if goal is not None:
        spent, tokens, nusd = committed(tx, fence.goal)
        tokens -= call.reserve_tokens
        nusd -= call.reserve_nusd or 0
        decide.reserve(budget_of(goal), spent, tokens, nusd)


def _write(
    tx: Tx, fence: Fence, write: Intend | Redo | Lose | Done | Born, where: dict[str, Any]
) -> None:
    """Write one step's row and the event that says so; `where` names task, take and attempt."""
    name, move = write.step, _MOVES[type(write)]
    place = {**where, "key": name.key, "generation": name.generation}
    transition(
        tx,
        "step",
        move.event,
        source=move.source,
        entity=f"{fence.task}/{fence.take}/{name.key}#{name.generation}",
        goal=fence.goal,
        task=fence.task,
        attempt=fence.attempt,
        statement=move.statement,
        values=move.values(tx, write, place),
    )


def _lost(tx: Tx, write: Lose, place: dict[str, Any]) -> dict[str, Any]:
    """A lost step reserves nothing any more; what an earlier attempt reserved ended with it."""
    row = tx.one("step.reserve", **place)
    if row is not None:
        tx.run(
            "attempt.release",
            tokens=row["reserve_tokens"],
            nusd=row["reserve_nusd"],
            **place,
        )
    return place


def _intended(tx: Tx, write: Intend, place: dict[str, Any]) -> dict[str, Any]:
    return {
        **place,
        "position": write.position,
        "kind": write.kind,
        "effect": write.effect,
        "request": tx.pack(write.request),
        "tree_before": write.tree_before,
        "reserve_tokens": write.reserve_tokens,
        "reserve_nusd": write.reserve_nusd or 0,
        "cost_nusd": write.reserve_nusd,  # until its reply is seen: its reserve, or nobody knows
    }


def _again(tx: Tx, write: Redo, place: dict[str, Any]) -> dict[str, Any]:
    return {
        **place,
        "reserve_tokens": write.reserve_tokens,
        "reserve_nusd": write.reserve_nusd or 0,
        "cost_nusd": write.reserve_nusd,
    }


def _done(tx: Tx, write: Done, place: dict[str, Any]) -> dict[str, Any]:
    usage = write.usage
    return {
        **place,
        "result": tx.pack(write.result),
        "result_sha256": write.result_sha256,
        "tree_after": write.tree_after,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.tokens_cached,
        "cost_nusd": usage.cost_nusd,
        "estimated": 0 if usage.reported else 1,
        "reserve_tokens": write.reserve_tokens,
        "reserve_nusd": write.reserve_nusd or 0,
    }


def _born(tx: Tx, write: Born, place: dict[str, Any]) -> dict[str, Any]:
    return {
        **place,
        "position": write.position,
        "kind": write.kind,
        "effect": write.effect,
        "request": tx.pack(write.request),
        "result": tx.pack(write.result),
        "result_sha256": write.result_sha256,
        "tree_before": write.tree_before,
        "tree_after": write.tree_after,
    }


class _Move(NamedTuple):
    """How a write moves its step: the event, the state before, the statement and its values."""

    event: str
    source: str
    statement: str
    values: Callable[[Tx, Any, dict[str, Any]], dict[str, Any]]


_MOVES: Mapping[type, _Move] = {
    Intend: _Move("intend", "", "intend", _intended),
    Redo: _Move("redo", "intended", "redo", _again),
    Lose: _Move("lose", "intended", "lose", _lost),
    Done: _Move("done", "intended", "done", _done),
    Born: _Move("done", "", "born", _born),
}
