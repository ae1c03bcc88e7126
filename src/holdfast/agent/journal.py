"""One attempt's view of its take's journal: a step is performed once, then remembered.

Owns the resume rules of a step (design §5), the batching that lets a running loop pay one commit a
step, and the comparison of what is asked now with what was recorded. It never decides what to do
next: the loop runs the same code live, resumed and in replay, and only this object differs.

A step that is done answers from the record. An intended one that nobody saw finish is performed
again when it is pure, idempotent, compensable or a model call (its workspace was restored when the
attempt began), and is lost when it is irreversible: a person decides.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from holdfast.agent import evidence
from holdfast.agent.conversation import first_difference
from holdfast.domain.model import Fence, StepRow
from holdfast.domain.ports import Effect, Usage, Workspace
from holdfast.engine import Engine, irreversible_before, step
from holdfast.engine.journal import Born, Done, Intend, Lose, Record, Redo, StepName, Write
from holdfast.errors import Corrupt, Divergence, Refused

T = TypeVar("T")
Probe = Callable[[str, str], None]
GO_ON = "go on?"
# How long a paid reply may wait for the reads it asked for, to share a commit with them. Reading a
# file takes a tenth of this, a search more; a commit costs a twentieth.
HOLD_S = 0.005
FREE = Usage()


class Performed(Struct, frozen=True, kw_only=True):
    """What an effect gave: canonical result bytes, what it spent, and its evidence."""

    result: bytes
    usage: Usage = FREE
    events: tuple[Record, ...] = ()


class Undecided(Refused):
    """An irreversible step may or may not have happened; only a person can say."""

    code = "undecided"

    def __init__(self, row: StepRow) -> None:
        super().__init__(
            f"step {row.key} was started and nobody knows whether it happened",
            hint="look at the evidence, then answer with `holdfast approval answer`",
        )
        self.row = row


class EndOfJournal(Exception):
    """Replay reached the first step that was never recorded."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class Effectful(Struct, frozen=True, kw_only=True):
    """A step about to be taken. `answered` turns a person's word into the step's result.

    `writes` says that the workspace may change, so it is staged before the step is done.
    """

    key: str
    kind: str
    effect: Effect
    request: bytes
    perform: Callable[[], Awaitable[Performed]]
    writes: bool = False
    reserve_tokens: int = 0
    reserve_nusd: int | None = 0
    answered: Callable[[str], bytes] | None = None


class Journal(Protocol):
    """What the loop and the checks need of a journal, live or replayed. `base` is the take's."""

    base: str
    tree: str

    async def step(self, effectful: Effectful) -> bytes: ...

    async def together(self, effectfuls: Sequence[Effectful]) -> list[bytes]: ...

    async def decision(
        self, key: str, value: bytes, answer: str, reason: str, *, question: str = GO_ON
    ) -> None: ...

    def recorded(self, key: str) -> bytes | None: ...

    async def flush(self) -> None: ...


class Recorded:
    """The journal's memory: rows by key, newest generation, compared before they answer."""

    def __init__(self, rows: Sequence[StepRow], base_tree: str) -> None:
        self.base = self.tree = base_tree
        self._rows: dict[str, StepRow] = {}
        for row in sorted(rows, key=lambda row: (row.position, row.generation)):
            self._rows[row.key] = row

    def recorded(self, key: str) -> bytes | None:
        """The result of a done step, without comparing a request; None when there is none."""
        row = self._rows.get(key)
        if row is None or row.state != "done" or row.result is None:
            return None
        self._whole(row, row.result)
        return row.result

    def _answer(self, row: StepRow, request: bytes) -> bytes:
        assert row.result is not None, f"step {row.key} is done without a result"
        _same_request(row, request)
        self._whole(row, row.result)
        self.tree = row.tree_after or self.tree
        return row.result

    def _whole(self, row: StepRow, result: bytes) -> None:
        if row.result_sha256 and sha256(result).hexdigest() != row.result_sha256:
            self._damaged(row)

    def _damaged(self, row: StepRow) -> None:
        raise Corrupt(f"the recorded result of step {row.key} is not what was written")


class LiveJournal(Recorded):
    """A journal that performs what is missing. One owner, one attempt, one call at a time.

    `probe(boundary, key)` is called at each durable boundary; tests kill the process there.
    """

    def __init__(
        self,
        engine: Engine,
        fence: Fence,
        rows: Sequence[StepRow],
        *,
        base_tree: str,
        workspace: Workspace | None = None,
        probe: Probe = lambda boundary, key: None,
    ) -> None:
        super().__init__(rows, base_tree)
        self._engine, self._fence, self._workspace = engine, fence, workspace
        self._probe = probe
        self._position = max((row.position for row in rows), default=0)
        self._pending: list[Write] = []
        self._since_s = 0.0
        self._earlier: list[tuple[StepRow, str | None]] | None = None
        self._changes = 0

    def last_tree(self) -> str:
        """The tree of the last done step: what the workspace must equal when the attempt begins."""
        done = [row for row in self._rows.values() if row.state == "done" and row.tree_after]
        return max(done, key=lambda row: row.position).tree_after if done else self.tree

    async def step(self, effectful: Effectful) -> bytes:
        """Perform a step once over all attempts of the take; returns its recorded result.

        Raises `Divergence` when the recorded request differs, `Undecided` when only a person knows,
        `Stale` when another attempt owns the task, `Exhausted` when the budget cannot pay.
        """
        row = self._rows.get(effectful.key)
        if row is not None and row.state == "done":
            return self._answer(row, effectful.request)
        if row is not None and row.state == "unknown":
            return await self._ask(row, effectful)
        if effectful.effect == "pure":
            return self._keep(effectful, await self._held(effectful.perform))
        earlier = await self._done_before(effectful) if row is None else None
        if earlier is not None:
            return self._keep(effectful, Performed(result=earlier))
        return await self._effect(effectful, row, row.generation if row else 1)

    async def together(self, effectfuls: Sequence[Effectful]) -> list[bytes]:
        """Take pure steps at the same time; results, positions and evidence in the given order.

        They become durable in one commit. When one raises, the others are waited for first.
        """
        assert all(effectful.effect == "pure" for effectful in effectfuls), "an effect has an order"
        missing = [each for each in effectfuls if self.recorded(each.key) is None]
        made = await self._held(lambda: _all(missing))
        performed = {each.key: one for each, one in zip(missing, made, strict=True)}
        return [
            self._keep(effectful, performed[effectful.key])
            if effectful.key in performed
            else await self.step(effectful)
            for effectful in effectfuls
        ]

    async def decision(
        self, key: str, value: bytes, answer: str, reason: str, *, question: str = GO_ON
    ) -> None:
        """Record what was decided by something replay cannot see, such as a clock."""
        born = Born(
            step=StepName(key=key),
            position=self._next(),
            kind="decision",
            request=b"{}",
            result=value,
            result_sha256=sha256(value).hexdigest(),
            tree_after=self.tree,
        )
        self._hold(born, evidence.decision(key, question, answer, reason))
        await self.flush()

    async def flush(self) -> None:
        """Make everything that is done durable."""
        if self._pending:
            await self._commit([])

    async def _held(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what has no effect; what is done already waits for it to be stored, `HOLD_S` at most.

        It goes into the commit of the next intent then: nothing that has an effect, and no model
        call, begins before everything it follows from is stored.
        """
        left_s = self._since_s + HOLD_S - self._engine.clock.monotonic_s()
        if left_s <= 0:
            await self.flush()
        if not self._pending:
            return await work()
        return await self._engine.beside(work(), self.flush, within_s=left_s)

    def _keep(self, effectful: Effectful, performed: Performed) -> bytes:
        born = Born(
            step=StepName(key=effectful.key),
            position=self._next(),
            kind=effectful.kind,
            effect="pure",
            request=effectful.request,
            result=performed.result,
            result_sha256=sha256(performed.result).hexdigest(),
            tree_before=self.tree,
            tree_after=self.tree,
        )
        self._hold(born, *performed.events)
        return performed.result

    def _hold(self, *writes: Write) -> None:
        """Leave what is done to the next commit."""
        if not self._pending:
            self._since_s = self._engine.clock.monotonic_s()
        self._pending.extend(writes)

    async def _effect(self, effectful: Effectful, row: StepRow | None, generation: int) -> bytes:
        name = StepName(key=effectful.key, generation=generation)
        again = row if row is not None and row.generation == generation else None
        if again is not None and again.effect == "irreversible":
            await self._commit([Lose(step=name)])
            raise Undecided(again)
        opening = self._intend(name, effectful) if again is None else _redo(again, effectful)
        self._probe("before_intend", effectful.key)
        await self._commit([opening])
        self._probe("after_intend", effectful.key)
        performed = await effectful.perform()
        self._probe("after_effect", effectful.key)
        changes = await self._stage(effectful.key) if effectful.writes else ()
        done = Done(
            step=name,
            result=performed.result,
            result_sha256=sha256(performed.result).hexdigest(),
            tree_after=self.tree,
            usage=performed.usage,
            reserve_tokens=effectful.reserve_tokens,
            reserve_nusd=effectful.reserve_nusd,
        )
        self._hold(done, *performed.events, *changes)
        return performed.result

    async def _ask(self, row: StepRow, effectful: Effectful) -> bytes:
        """A lost step: the person's recorded answer says whether it happened."""
        answer = self.recorded(answer_key(row))
        if answer is None or effectful.answered is None:
            raise Undecided(row)
        word = msgspec.json.decode(answer, type=str)
        if word == "redo":
            return await self._effect(effectful, row, row.generation + 1)
        return effectful.answered(word)

    async def _done_before(self, effectful: Effectful) -> bytes | None:
        """An irreversible effect of an earlier take answers for the same one here (I13).

        One that nobody saw finish is lost here too, until a person says whether it happened.
        """
        if effectful.effect != "irreversible":
            return None
        if self._earlier is None:
            self._earlier = self._unanswered(self._engine.read(irreversible_before, self._fence))
        index = next(
            (at for at, (row, _) in enumerate(self._earlier) if row.request == effectful.request),
            None,
        )
        if index is None:
            return None
        row, word = self._earlier.pop(index)
        if row.state == "done":
            return row.result
        if word is not None and effectful.answered is not None:
            return effectful.answered(word)
        name = StepName(key=effectful.key)
        await self._commit([self._intend(name, effectful), Lose(step=name)])
        raise Undecided(row)

    def _unanswered(
        self, earlier: list[tuple[StepRow, str | None]]
    ) -> list[tuple[StepRow, str | None]]:
        """Leave out what already answered for a step of this take, one for one."""
        asked = Counter(row.request for row in self._rows.values() if row.kind != "decision")
        left = []
        for row, word in earlier:
            if asked[row.request]:
                asked[row.request] -= 1
            else:
                left.append((row, word))
        return left

    async def _commit(self, writes: list[Write]) -> None:
        batch = [*self._pending, *writes]
        await self._engine.acall(step, self._fence, batch)
        self._pending = []  # only now: what the budget refused leaves the done steps to be stored
        for write in batch:
            if isinstance(write, Done):
                self._probe("after_commit", write.step.key)

    async def _stage(self, key: str) -> tuple[Record, ...]:
        """Stage the workspace after a step that may have written; its change is evidence."""
        assert self._workspace is not None, "a step that writes needs a workspace"
        before, self.tree = self.tree, await asyncio.to_thread(self._workspace.stage)
        if before == self.tree:
            return ()
        self._changes += 1
        diff = await asyncio.to_thread(self._workspace.diff, before, self.tree)
        return (evidence.git_diff(key, self._changes, diff),)

    def _intend(self, name: StepName, effectful: Effectful) -> Intend:
        return Intend(
            step=name,
            position=self._next(),
            kind=effectful.kind,
            effect=effectful.effect,
            request=effectful.request,
            tree_before=self.tree,
            reserve_tokens=effectful.reserve_tokens,
            reserve_nusd=effectful.reserve_nusd,
        )

    def _next(self) -> int:
        self._position += 1
        return self._position


class ReplayJournal(Recorded):
    """A journal that only remembers: no model, tool, clock, random or network access."""

    def __init__(self, rows: Sequence[StepRow], *, base_tree: str) -> None:
        super().__init__(rows, base_tree)
        self.compared = 0
        self.changed = ""

    async def step(self, effectful: Effectful) -> bytes:
        """The recorded result; `Divergence` at the first request that differs, else its end."""
        row = self._rows.get(effectful.key)
        if row is None or row.state != "done":
            answer = None if row is None else self.recorded(answer_key(row))
            if answer is not None and effectful.answered is not None:
                return effectful.answered(msgspec.json.decode(answer, type=str))
            raise EndOfJournal(effectful.key)
        self.compared += 1
        return self._answer(row, effectful.request)

    async def together(self, effectfuls: Sequence[Effectful]) -> list[bytes]:
        return [await self.step(effectful) for effectful in effectfuls]

    async def decision(
        self, key: str, value: bytes, answer: str, reason: str, *, question: str = GO_ON
    ) -> None:
        row = self._rows.get(key)
        if row is None or row.result != value:
            raise EndOfJournal(key)

    async def flush(self) -> None:
        """Nothing is ever written."""

    def _damaged(self, row: StepRow) -> None:
        """Remember the step whose result is not what was written; the next request shows where."""
        self.changed = self.changed or row.key


async def _all(effectfuls: Sequence[Effectful]) -> list[Performed]:
    """What each gave, once all have ended; raises what the first of them in order raised."""
    works = (each.perform() for each in effectfuls)
    found = await asyncio.gather(*works, return_exceptions=True)
    made = [result for result in found if not isinstance(result, BaseException)]
    for result in found:
        if isinstance(result, BaseException):
            raise result
    return made


def _redo(row: StepRow, effectful: Effectful) -> Redo:
    _same_request(row, effectful.request)
    return Redo(
        step=StepName(key=row.key, generation=row.generation),
        reserve_tokens=effectful.reserve_tokens,
        reserve_nusd=effectful.reserve_nusd,
    )


def _same_request(row: StepRow, request: bytes) -> None:
    """I5: a request is fixed when it is intended; anything else is named to the byte."""
    if row.request != request:
        where, byte = first_difference(row.request, request)
        raise Divergence(
            f"step {row.key} asks for something else than recorded: {where} at byte {byte}",
            step=row.key,
            field=where,
            byte=byte,
        )


def answer_key(row: StepRow) -> str:
    """Where a person's answer about a lost step is recorded."""
    return f"{row.key}/answer#{row.generation}"
