"""One attempt's journal over the real store: what is performed, remembered, lost or asked for."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from msgspec import structs

from desk import Desk, done, effectful
from holdfast.adapters.clock import SystemClock
from holdfast.agent import journal as journals
from holdfast.agent.journal import EndOfJournal, LiveJournal, Performed, ReplayJournal, Undecided
from holdfast.domain.model import Budget, Claim
from holdfast.engine import Engine, expire, signal, steps_of
from holdfast.errors import Corrupt, Divergence, Exhausted, Stale


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def lost(desk: Desk) -> Claim:
    """An irreversible step was begun and its worker died; the next attempt is claimed."""
    first = desk.claim()
    desk.intend(first, "pay", effect="irreversible")
    desk.call(expire, first.fence, reason="died")
    return desk.claim()


def asked(desk: Desk, granted: Claim, key: str = "pay") -> None:
    """The attempt finds out that nobody knows, and waits for a person."""
    step, performed = effectful(key)
    with pytest.raises(Undecided, match="nobody knows whether it happened"):
        done(desk.journal(granted).step(step))
    assert performed == []
    desk.settle(granted, "waiting", reason="undecided")


def test_a_done_step_is_performed_once_over_all_attempts_of_a_take(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    journal = desk.journal(granted)
    step, performed = effectful("s", "compensable")
    assert done(journal.step(step)) == b'"did"'
    done(journal.flush())
    desk.call(expire, granted.fence, reason="died")
    again = desk.claim()
    assert done(desk.journal(again).step(step)) == b'"did"'
    assert performed == ["s"]
    assert again.fence.take == 1


def test_an_intended_step_is_performed_again_by_a_later_attempt(desk: Desk) -> None:
    desk.goal()
    first = desk.claim()
    desk.intend(first)
    desk.call(expire, first.fence, reason="died")
    journal = desk.journal(desk.claim())
    step, performed = effectful("s", "compensable")
    done(journal.step(step))
    done(journal.flush())
    assert performed == ["s"]
    assert desk.rows("SELECT state, attempt FROM steps")[0]["attempt"] == 2


def test_a_step_that_asks_for_something_else_is_named_to_the_byte(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted, request=b'{"path":"a"}')
    desk.call(expire, granted.fence, reason="died")
    step, performed = effectful("s", "compensable", b'{"path":"ab"}')
    with pytest.raises(Divergence, match="path at byte 1") as parted:
        done(desk.journal(desk.claim()).step(step))
    assert (parted.value.step, parted.value.field, parted.value.byte) == ("s", "path", 1)
    assert performed == []


def test_a_recorded_result_that_was_changed_is_corrupt(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted)
    desk.done(granted)
    desk.call(expire, granted.fence, reason="died")
    desk.execute("UPDATE steps SET result = '\"dud\"'")
    step, _ = effectful("s", "compensable")
    with pytest.raises(Corrupt, match="not what was written"):
        done(desk.journal(desk.claim()).step(step))


@pytest.mark.parametrize(("word", "times", "result"), [("redo", 1, b'"did"'), ("yes", 0, b'"yes"')])
def test_a_lost_irreversible_step_waits_for_a_person_and_follows_their_word(
    desk: Desk, word: str, times: int, result: bytes
) -> None:
    desk.goal()
    asked(desk, lost(desk))
    assert desk.rows("SELECT state FROM steps")[0]["state"] == "unknown"
    desk.call(signal, 1, "pay/answer#1", word)
    step, performed = effectful("pay")
    assert done(desk.journal(desk.claim()).step(step)) == result
    assert len(performed) == times


def test_a_new_take_believes_what_a_person_said_about_an_earlier_one(desk: Desk) -> None:
    desk.goal()
    asked(desk, lost(desk))
    desk.call(signal, 1, "pay/answer#1", "it happened")
    third = desk.claim()
    step, performed = effectful("pay")
    done(desk.journal(third).step(step))
    desk.settle(third, "failed", failure="logic", reason="checks_failed")
    fourth = desk.claim()
    assert fourth.fence.take == 2
    assert done(desk.journal(fourth).step(step)) == b'"it happened"'
    assert performed == []


def test_a_new_take_asks_about_a_step_that_an_earlier_one_lost(desk: Desk) -> None:
    desk.goal()
    second = lost(desk)
    desk.settle(second, "failed", failure="logic", reason="divergence", fresh=True)
    third = desk.claim()
    assert third.fence.take == 2
    asked(desk, third, "other-key")
    desk.call(signal, 1, "other-key/answer#1", "redo")
    step, performed = effectful("other-key")
    assert done(desk.journal(desk.claim()).step(step)) == b'"did"'
    assert performed == ["other-key"]


def test_each_earlier_effect_answers_for_one_step_only_also_after_a_crash(desk: Desk) -> None:
    desk.goal()
    first = desk.claim()
    desk.intend(first, "pay", effect="irreversible")
    desk.done(first, "pay")
    desk.settle(first, "failed", failure="logic", reason="checks_failed")
    second = desk.claim()
    journal = desk.journal(second)
    one, performed = effectful("one")
    assert done(journal.step(one)) == b'"did"'
    assert performed == [], "the earlier take's effect answers"
    done(journal.flush())
    desk.call(expire, second.fence, reason="died")
    other, performed = effectful("other")
    journal = desk.journal(desk.claim())
    done(journal.step(one))
    done(journal.step(other))
    assert performed == ["other"], "it answered already; this is a second effect"


def test_what_the_budget_refuses_leaves_the_done_steps_to_be_stored(desk: Desk) -> None:
    desk.goal(budget=Budget(tokens=10))
    granted = desk.claim()
    journal = desk.journal(granted)
    first, _ = effectful("one", "idempotent", tokens=20, reserve_tokens=5)
    second, performed = effectful("two", "idempotent", reserve_tokens=5)
    done(journal.step(first))
    with pytest.raises(Exhausted, match="tokens: 20 of 10"):
        done(journal.step(second))
    assert performed == []
    done(journal.flush())
    assert [row.key for row in desk.engine.read(steps_of, 1, 1) if row.state == "done"] == ["one"]


def test_an_attempt_that_lost_its_lease_stores_nothing_more(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    journal = desk.journal(granted)
    desk.call(expire, granted.fence, reason="silent")
    step, performed = effectful("s", "compensable")
    with pytest.raises(Stale, match="its step was not stored"):
        done(journal.step(step))
    assert performed == []
    assert desk.rows("SELECT 1 FROM steps") == []


def test_the_boundaries_of_a_step_are_announced_in_order(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    seen: list[str] = []
    journal = LiveJournal(
        desk.engine,
        granted.fence,
        (),
        base_tree="t0",
        probe=lambda boundary, key: seen.append(f"{boundary} {key}"),
    )
    step, _ = effectful("s", "compensable")
    done(journal.step(step))
    done(journal.flush())
    assert seen == ["before_intend s", "after_intend s", "after_effect s", "after_commit s"]
    assert journal.last_tree() == "t0"


def test_replay_remembers_and_never_performs(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    journal = desk.journal(granted)
    tool, _ = effectful("s", "compensable")
    pure, _ = effectful("p", "pure")
    done(journal.step(tool))
    done(journal.step(pure))
    done(journal.decision("stop", b'"turns"', "stop", "turns"))
    rows = desk.engine.read(steps_of, 1, 1)
    replay = ReplayJournal(rows, base_tree="t0")
    again, performed = effectful("s", "compensable")
    assert done(replay.step(again)) == b'"did"'
    done(replay.decision("stop", b'"turns"', "stop", "turns"))
    done(replay.flush())
    assert (performed, replay.compared) == ([], 1)
    missing, _ = effectful("never", "compensable")
    with pytest.raises(EndOfJournal, match="never"):
        done(replay.step(missing))
    with pytest.raises(EndOfJournal, match="stop"):
        done(replay.decision("stop", b'"stall"', "stop", "stall"))
    other, _ = effectful("s", "compensable", b'"x"')
    with pytest.raises(Divergence):
        done(replay.step(other))


def test_replay_names_a_changed_result_and_follows_a_persons_word(desk: Desk) -> None:
    desk.goal()
    asked(desk, lost(desk))
    desk.call(signal, 1, "pay/answer#1", "yes")
    third = desk.claim()
    desk.intend(third, position=9)
    desk.done(third)
    desk.execute("UPDATE steps SET result = '\"dud\"' WHERE key = 's'")
    replay = ReplayJournal(desk.engine.read(steps_of, 1, 1), base_tree="t0")
    pay, _ = effectful("pay")
    assert done(replay.step(pay)) == b'"yes"'
    step, _ = effectful("s", "compensable")
    assert done(replay.step(step)) == b'"dud"'
    assert replay.changed == "s"


class Turn:
    """A reply, the reads that it asks for and the next call, over a real engine and loop."""

    def __init__(self, desk: Desk) -> None:
        desk.goal()
        granted = desk.claim()
        desk.close()
        self.engine = Engine(desk.path, SystemClock())
        self.journal = LiveJournal(self.engine, granted.fence, (), base_tree="t0")

    def stored(self) -> dict[str, str]:
        return {row.key: row.state for row in self.engine.read(steps_of, 1, 1)}

    async def reply(self, key: str = "reply") -> None:
        await self.journal.step(effectful(key, "idempotent")[0])

    async def read(
        self, look: Callable[[], Awaitable[None]], *, together: bool = False, key: str = "read"
    ) -> None:
        async def perform() -> Performed:
            await look()
            return Performed(result=b'"seen"')

        steps = [
            structs.replace(effectful(name, "pure")[0], perform=perform) for name in (key, "too")
        ]
        if together:
            await self.journal.together(steps)
        else:
            await self.journal.step(steps[0])

    async def until_stored(self) -> None:
        async with asyncio.timeout(30):
            while self.stored()["reply"] != "done":  # noqa: ASYNC110  the store has no event
                await asyncio.sleep(0)


@pytest.fixture
def turn(desk: Desk) -> Iterator[Turn]:
    made = Turn(desk)
    yield made
    made.engine.close()


async def fails() -> None:
    raise LookupError("nothing there")


@pytest.mark.parametrize("together", [False, True])
def test_a_reply_waits_for_its_reads_and_all_are_stored_before_the_next_call(
    turn: Turn, monkeypatch: pytest.MonkeyPatch, together: bool
) -> None:
    monkeypatch.setattr(journals, "HOLD_S", 3600.0)
    at_read: list[dict[str, str]] = []
    at_next: list[dict[str, str]] = []

    async def look() -> None:
        await turn.engine.acall(lambda tx: None)  # any commit, and the loop turns
        at_read.append(turn.stored())

    async def perform() -> Performed:
        at_next.append(turn.stored())
        return Performed(result=b'"next"')

    async def work() -> None:
        await turn.reply()
        await turn.read(look, together=together)
        await turn.journal.step(
            structs.replace(effectful("next", "idempotent")[0], perform=perform)
        )

    asyncio.run(work())
    assert at_read == [{"reply": "intended"}] * (1 + together)
    reads = {"read": "done", "too": "done"} if together else {"read": "done"}
    assert at_next == [{"reply": "done", **reads, "next": "intended"}]


@pytest.mark.parametrize("together", [False, True])
def test_a_read_that_takes_longer_than_a_reply_is_held_does_not_keep_it_from_being_stored(
    turn: Turn, together: bool
) -> None:
    async def work() -> None:
        await turn.reply()
        await turn.read(turn.until_stored, together=together)

    asyncio.run(work())
    assert turn.stored() == {"reply": "done"}


def test_a_row_of_quick_reads_does_not_hold_a_reply_for_longer_than_one_of_them(turn: Turn) -> None:
    async def work() -> None:
        await turn.reply()
        async with asyncio.timeout(30):
            for number in count():
                if turn.stored()["reply"] == "done":
                    break
                await turn.read(lambda: asyncio.sleep(0), key=f"read {number}")

    asyncio.run(work())


@pytest.mark.parametrize("together", [False, True])
def test_a_reply_is_stored_when_the_read_after_it_fails(turn: Turn, together: bool) -> None:
    async def work() -> None:
        await turn.reply()
        with pytest.raises(LookupError, match="nothing there"):
            await turn.read(fails, together=together)

    asyncio.run(work())
    assert turn.stored() == {"reply": "done"}


def test_a_reply_is_stored_when_its_attempt_is_cancelled_in_the_read_after_it(turn: Turn) -> None:
    async def work() -> None:
        await turn.reply()
        begun = asyncio.Event()

        async def hang() -> None:
            begun.set()
            await asyncio.Event().wait()

        reading = asyncio.create_task(turn.read(hang))
        await begun.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(work())
    assert turn.stored() == {"reply": "done"}


def test_what_is_held_too_long_by_an_attempt_that_lost_its_lease_is_refused(turn: Turn) -> None:
    fence = turn.journal._fence

    async def work() -> None:
        await turn.reply()
        await turn.engine.acall(expire, fence, reason="silent")
        with pytest.raises(Stale, match="its step was not stored"):
            await turn.read(fails)

    asyncio.run(work())
    assert turn.stored() == {"reply": "intended"}
