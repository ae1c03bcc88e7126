"""The use case of steps: all or nothing under one fence, fixed once written, paid before begun."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from desk import Budget, Desk, task
from holdfast.domain.ports import Usage
from holdfast.engine import expire, step, steps_of
from holdfast.engine.journal import Born, Done, Intend, Lose, Record, Redo, StepName
from holdfast.errors import Exhausted, HoldfastError, Stale

NAME = StepName(key="s")
INTEND = Intend(step=NAME, position=1, kind="tool", effect="compensable", request=b'"r"')
DONE = Done(step=NAME, result=b'"x"', result_sha256="h", usage=Usage(tokens_in=5, tokens_out=2))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def counts(desk: Desk) -> tuple[int, int]:
    return len(desk.rows("SELECT 1 FROM steps")), len(desk.rows("SELECT 1 FROM log"))


def test_a_stale_fence_changes_nothing(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.call(expire, granted.fence, reason="silent")
    before = counts(desk)
    for writes in ([INTEND], [Record(kind="decision", body=b"{}")], []):
        with pytest.raises(Stale, match=r"attempt 1\.1 has ended; its step was not stored"):
            desk.call(step, granted.fence, writes)
    assert counts(desk) == before


def test_a_batch_is_all_or_nothing(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    before = counts(desk)
    unknown = Done(step=StepName(key="never"), result=b"{}", result_sha256="")
    with pytest.raises(Stale, match="never#1 is no longer intended"):
        desk.call(step, granted.fence, [INTEND, unknown])
    assert counts(desk) == before
    assert desk.rows("SELECT steps FROM attempts")[0]["steps"] == 0


def test_one_commit_carries_the_end_of_a_step_and_the_beginning_of_the_next(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.call(step, granted.fence, [INTEND])
    second = Intend(step=StepName(key="t"), position=2, kind="tool", effect="pure", request=b"{}")
    desk.call(step, granted.fence, [DONE, Record(kind="tool_output", body=b'{"n":1}'), second])
    rows = desk.engine.read(steps_of, 1, 1)
    assert [(row.key, row.state) for row in rows] == [("s", "done"), ("t", "intended")]
    assert rows[0].usage == Usage(tokens_in=5, tokens_out=2)
    attempt = desk.rows("SELECT * FROM attempts")[0]
    assert (attempt["steps"], attempt["tokens_in"], attempt["tokens_out"]) == (1, 5, 2)
    assert len(desk.rows("SELECT 1 FROM log WHERE kind = 'tool_output'")) == 1


def test_a_done_step_is_never_written_again(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.call(step, granted.fence, [INTEND, DONE])
    for write in (DONE, Redo(step=NAME), Lose(step=NAME)):
        with pytest.raises(Stale):
            desk.call(step, granted.fence, [write])
    with pytest.raises(HoldfastError, match="UNIQUE"):
        desk.call(step, granted.fence, [INTEND])
    assert desk.engine.read(steps_of, 1, 1)[0].result == b'"x"'


def test_a_step_is_redone_by_a_later_attempt_only(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.call(step, granted.fence, [INTEND])
    with pytest.raises(Stale):
        desk.call(step, granted.fence, [Redo(step=NAME)])
    desk.call(expire, granted.fence, reason="died")
    later = desk.claim()
    desk.call(step, later.fence, [Redo(step=NAME)])
    assert desk.engine.read(steps_of, 1, 1)[0].attempt == 2


def test_a_large_request_and_result_are_blobs_and_read_back_whole(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    big = b'"' + b"x" * 5000 + b'"'
    born = Born(
        step=NAME, position=1, kind="tool", request=big, result=big[:-1] + b'y"', result_sha256="h"
    )
    desk.call(step, granted.fence, [born])
    row = desk.rows("SELECT request, result FROM steps")[0]
    assert (row["request"][0], row["result"][0]) == ("@", "@")
    assert desk.engine.read(steps_of, 1, 1)[0].request == big


def test_a_call_the_budget_cannot_pay_stores_nothing(desk: Desk) -> None:
    desk.goal(task("a"), task("b"), budget=Budget(tokens=100))
    one, other = desk.claim(), desk.claim()
    desk.intend(one, reserve_tokens=99)
    desk.intend(other, "fits", reserve_tokens=50)  # 99 of 100: one call may still go over
    before = counts(desk)
    with pytest.raises(Exhausted, match="tokens: 149 of 100"):
        desk.intend(other, "too-much", position=2, reserve_tokens=1)
    assert counts(desk) == before
    desk.intend(other, "free", position=2)  # what reserves nothing is always possible


def test_a_reserve_ends_with_its_step_and_a_redo_must_pay_again(desk: Desk) -> None:
    desk.goal(budget=Budget(tokens=100))
    granted = desk.claim()
    desk.intend(granted, reserve_tokens=99)
    desk.done(granted, usage=Usage(tokens_in=10), reserve_tokens=99)
    desk.intend(granted, "next", position=2, reserve_tokens=90)
    desk.call(expire, granted.fence, reason="died")
    later = desk.claim()
    with pytest.raises(Exhausted, match="tokens: 100 of 100"):
        desk.call(step, later.fence, [Redo(step=StepName(key="next"), reserve_tokens=90)])


def test_money_is_reserved_like_tokens(desk: Desk) -> None:
    desk.goal(budget=Budget(usd=0.001))
    granted = desk.claim()
    desk.intend(granted, reserve_nusd=999_999)
    desk.done(granted, usage=Usage(cost_nusd=1_000_000), reserve_nusd=999_999)
    with pytest.raises(Exhausted, match=r"usd: 0.001 of 0.001"):
        desk.intend(granted, "next", position=2, reserve_nusd=1)


def in_flight(desk: Desk, attempt: int = 1) -> tuple[int, int]:
    row = desk.rows("SELECT * FROM attempts WHERE number = ?", attempt)[0]
    return row["reserved_tokens"], row["reserved_nusd"]


def test_an_attempt_knows_what_its_intended_steps_reserve(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted, reserve_tokens=40, reserve_nusd=7)
    desk.intend(granted, "t", position=2, reserve_tokens=2)
    assert in_flight(desk) == (42, 7)
    desk.done(granted, reserve_tokens=40, reserve_nusd=7)
    assert in_flight(desk) == (2, 0)
    desk.call(step, granted.fence, [Lose(step=StepName(key="t"))])
    assert in_flight(desk) == (0, 0)


def test_what_an_attempt_reserved_ends_with_it_and_a_redo_reserves_for_the_next(
    desk: Desk,
) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted, reserve_tokens=40)
    desk.call(expire, granted.fence, reason="died")
    assert in_flight(desk) == (0, 0)
    later = desk.claim()
    assert in_flight(desk, 2) == (0, 0)
    desk.call(step, later.fence, [Redo(step=NAME, reserve_tokens=30)])
    assert (in_flight(desk), in_flight(desk, 2)) == ((0, 0), (30, 0))
    desk.done(later, reserve_tokens=30)
    assert in_flight(desk, 2) == (0, 0)


def test_a_step_that_a_later_attempt_loses_takes_nothing_from_what_that_one_reserves(
    desk: Desk,
) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted, effect="irreversible", reserve_tokens=40)
    desk.call(expire, granted.fence, reason="died")
    later = desk.claim()
    desk.intend(later, "t", position=2, reserve_tokens=3)
    desk.call(step, later.fence, [Lose(step=NAME)])
    assert in_flight(desk, 2) == (3, 0)


def test_a_step_gives_back_what_it_reserved_and_no_other_amount(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted, reserve_tokens=40)
    for tokens in (0, 39, 41):
        with pytest.raises(Stale):
            desk.done(granted, reserve_tokens=tokens)
    assert in_flight(desk) == (40, 0)


def test_a_step_is_done_by_the_attempt_that_began_it_or_did_it_again(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted)
    desk.call(expire, granted.fence, reason="died")
    later = desk.claim()
    with pytest.raises(Stale, match="s#1 is no longer intended"):
        desk.done(later)
    desk.call(step, later.fence, [Redo(step=NAME)])
    desk.done(later)
