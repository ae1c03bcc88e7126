"""Ending attempts: what follows for task, plan and goal, and what a late report may not do."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from desk import Desk, done, effectful, task
from holdfast.domain.model import CheckResult, Outcome
from holdfast.domain.ports import Usage
from holdfast.engine import brief, claim, expire, holders, pause, renew, settle, shown, step
from holdfast.engine.attempts import attempt_record, parse_attempt
from holdfast.engine.journal import Redo, StepName
from holdfast.engine.outlook import (
    events,
    goal_result,
    last_report,
    neighbours,
    outlook,
    previous_end,
)
from holdfast.errors import NotFound, Refused, Stale
from holdfast.trace.events import readable
from holdfast.trace.read import token_summary

PASSED = {"checks": (CheckResult(command="true", verdict="pass"),)}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def snapshot(desk: Desk) -> list[tuple[object, ...]]:
    tables = ("goals", "plans", "tasks", "attempts", "steps", "log")
    return [tuple(row) for table in tables for row in desk.rows(f"SELECT * FROM {table}")]


def test_success_unblocks_dependants_and_the_last_one_completes_the_goal(desk: Desk) -> None:
    goal = desk.goal(task("a"), task("b", requires=("a",)))
    desk.work("passed", commit="c1", parent="c0", **PASSED)
    assert desk.state("tasks", 2) == "ready"
    desk.work("passed", **PASSED)
    assert (desk.state("goals", goal), desk.state("plans", 1)) == ("complete", "succeeded")
    assert desk.rows("SELECT tip_commit, branch_commit FROM goals")[0]["tip_commit"] == "c1"


def test_a_report_sent_twice_gets_the_same_answer_and_changes_nothing(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    first = desk.settle(granted, "unverified", answer="ok")
    before = snapshot(desk)
    assert desk.settle(granted, "unverified", answer="ok") == first
    assert snapshot(desk) == before


def test_a_repeated_report_is_answered_as_it_was_although_strikes_were_counted_since(
    desk: Desk,
) -> None:
    desk.goal()
    failed = {"failure": "transient", "reason": "http_503"}
    first = desk.claim()
    answer = desk.settle(first, "failed", **failed)
    desk.clock.advance(5000)
    second = desk.claim()
    later = desk.settle(second, "failed", **failed)
    assert (answer.strikes, later.strikes) == (1, 2)
    assert desk.settle(first, "failed", **failed) == answer
    assert desk.settle(second, "failed", **failed) == later


def test_a_different_late_report_is_stale_and_changes_nothing(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.call(expire, granted.fence, reason="silent")
    before = snapshot(desk)
    with pytest.raises(Stale, match=r"attempt 1.1 has ended \(expired\)"):
        desk.settle(granted, "unverified")
    assert desk.call(expire, granted.fence) is None
    with pytest.raises(Stale, match="stop working"):
        desk.call(renew, granted.fence, lease_s=5.0)
    with pytest.raises(Stale, match="was not stored"):
        desk.call(brief, granted.fence, b"x", base_commit="", base_tree="")
    assert snapshot(desk) == before


def test_work_is_accepted_only_on_the_tip_it_was_merged_with(desk: Desk) -> None:
    desk.goal(task("a"), task("b"))
    one, other = desk.claim(), desk.claim()
    desk.settle(one, commit="c1", parent="c0")
    with pytest.raises(Refused, match="moved to c1") as moved:
        desk.settle(other, commit="c2", parent="c0")
    assert moved.value.code == "tip_moved"
    assert desk.state("tasks", 2) == "running"
    desk.settle(other, commit="c2", parent="c1")
    assert desk.rows("SELECT tip_commit FROM goals")[0]["tip_commit"] == "c2"


def test_kept_work_of_a_failure_moves_the_branch_but_not_the_tip(desk: Desk) -> None:
    desk.goal(task("a"), task("b"))
    desk.work("partial", failure="budget", reason="turns", commit="k1", parent="c0")
    row = desk.rows("SELECT * FROM goals")[0]
    assert (row["tip_commit"], row["branch_commit"]) == ("c0", "k1")
    desk.call(shown, 1, "k1")
    assert desk.rows("SELECT shown_commit FROM goals")[0]["shown_commit"] == "k1"


def test_a_failure_ends_the_goal_only_when_nothing_else_can_run(desk: Desk) -> None:
    goal = desk.goal(task("a"), task("b"), task("c", requires=("a",)))
    desk.work("failed", failure="policy", reason="refused", detail="no")
    assert desk.state("goals", goal) == "executing"
    desk.work()
    assert (desk.state("goals", goal), desk.state("plans", 1)) == ("failed", "failed")
    assert desk.state("tasks", 3) == "blocked"
    failure = desk.rows("SELECT body FROM log WHERE kind = 'failure'")
    assert len(failure) == 1
    assert "refused" in failure[0]["body"]


def test_a_paused_plan_ends_as_its_last_attempt_does(desk: Desk) -> None:
    goal = desk.goal()
    granted = desk.claim()
    desk.call(pause, goal)
    desk.settle(granted)
    assert desk.state("goals", goal) == "complete"
    broken = desk.goal()
    granted = desk.claim()
    desk.call(pause, broken)
    desk.settle(granted, "failed", failure="policy", reason="refused")
    assert desk.state("goals", broken) == "failed"


def test_an_attempt_that_ends_cancelled_drops_the_goal_of_its_only_task(desk: Desk) -> None:
    goal = desk.goal()
    desk.work("cancelled", failure="cancelled", reason="unwanted")
    assert (desk.state("goals", goal), desk.state("plans", 1)) == ("dropped", "cancelled")


def test_a_retry_later_is_ready_but_not_yet_claimed(desk: Desk) -> None:
    goal = desk.goal()
    desk.work("failed", failure="transient", reason="http_503", retry_after_s=60.0)
    assert desk.call(claim, "me", lease_s=5.0) is None
    ahead = desk.engine.read(outlook, goal)
    assert ahead.ready_ms == desk.clock.now_ms() + 60_000
    desk.clock.advance(60_000)
    again = desk.claim()
    assert (again.fence.attempt, again.fence.take) == (2, 1)


def test_a_logic_failure_opens_the_next_take_and_the_last_one_fails(desk: Desk) -> None:
    desk.goal()
    desk.work("failed", failure="logic", reason="checks_failed", detail="x")
    again = desk.claim()
    assert (again.fence.take, again.bundle_sha256, again.steps) == (2, "", ())
    report = desk.engine.read(last_report, 1, before=2)
    assert report is not None
    assert report.reason == "checks_failed"
    desk.settle(again, "failed", failure="logic", reason="checks_failed")
    assert desk.state("tasks", 1) == "failed"


def test_claims_go_by_priority_then_by_age(desk: Desk) -> None:
    desk.goal(task("a"), task("b", priority="high"), task("c", priority="high"))
    assert [desk.claim().spec.key for _ in range(3)] == ["b", "c", "a"]
    found = desk.engine.read(holders)
    assert [(worker, fence.session) for worker, fence, _ in found] == [
        ("me", "1.1"),
        ("me", "2.1"),
        ("me", "3.1"),
    ]
    assert {until for _, _, until in found} == {desk.clock.now_ms() + 5000}


def test_a_bundle_is_given_once_and_the_same_one_again_is_no_error(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim(bundle=b"one")
    digest = desk.call(brief, granted.fence, b"one", base_commit="c0", base_tree="t0")
    with pytest.raises(Stale, match="has another bundle already"):
        desk.call(brief, granted.fence, b"two", base_commit="c0", base_tree="t0")
    desk.call(expire, granted.fence, reason="died")
    assert desk.claim().bundle_sha256 == digest


def test_what_was_reserved_when_an_attempt_was_lost_counts_as_spent(desk: Desk) -> None:
    goal = desk.goal()
    granted = desk.claim()
    desk.intend(granted, reserve_tokens=40, reserve_nusd=7)
    desk.call(expire, granted.fence, reason="died")
    spent = desk.engine.read(goal_result, goal)["usage"]
    assert (spent["tokens"], spent["cost_usd"]) == (40, 7e-9)


def test_an_unknown_price_is_unknown_and_not_zero(desk: Desk) -> None:
    goal = desk.goal()
    granted = desk.claim()
    desk.intend(granted)
    desk.done(granted, usage=Usage(tokens_in=3, tokens_out=4, cost_nusd=None))
    assert desk.engine.read(goal_result, goal)["usage"] == {
        "tokens": 7,
        "tokens_in": 3,
        "tokens_out": 4,
        "tokens_cached": 0,
        "cost_usd": None,
    }


@pytest.mark.parametrize(("price", "cost_usd"), [(None, None), (0, 0.0), (7, 7e-9)])
def test_a_lost_call_of_unknown_price_leaves_the_cost_unknown(
    desk: Desk, price: int | None, cost_usd: float | None
) -> None:
    goal = desk.goal()
    granted = desk.claim()
    desk.intend(granted, kind="model", reserve_tokens=40, reserve_nusd=0)
    desk.call(expire, granted.fence, reason="died")
    again = desk.claim()
    redo = Redo(step=StepName(key="s"), reserve_tokens=40, reserve_nusd=price)
    desk.call(step, again.fence, [redo])
    desk.call(expire, again.fence, reason="died")
    spent = desk.engine.read(goal_result, goal)["usage"]
    assert (spent["tokens"], spent["cost_usd"]) == (80, cost_usd)
    with closing(sqlite3.connect(desk.path)) as connection:
        traced = token_summary(connection, again.fence.session)
    ledger = desk.rows("SELECT unpriced, cost_nusd FROM attempts WHERE number = 2")[0]
    assert (traced["unpriced_calls"], traced["cost_nusd"]) == tuple(ledger)
    assert traced["cost_usd"] == cost_usd


RESULTS = [
    ("passed", {**PASSED}, "complete", "passed"),
    ("unverified", {}, "complete", "unverified"),
    ("partial", {"failure": "budget", "reason": "turns"}, "failed", "partial"),
    ("failed", {"failure": "policy", "reason": "refused"}, "failed", "failed"),
    ("cancelled", {"failure": "cancelled", "reason": "unwanted"}, "dropped", "cancelled"),
    ("waiting", {"reason": "approval"}, "executing", "waiting"),
    ("cancelled", {"failure": "cancelled", "reason": "interrupted"}, "executing", "interrupted"),
]


@pytest.mark.parametrize(("kind", "values", "state", "word"), RESULTS)
def test_the_result_of_a_goal_follows_from_its_state(
    desk: Desk, kind: str, values: dict[str, object], state: str, word: str
) -> None:
    goal = desk.goal()
    desk.work(kind, **values)
    result = desk.engine.read(goal_result, goal)
    assert (result["type"], result["goal"]) == ("result", goal)
    assert (result["state"], result["outcome"], result["attempts"]) == (state, word, 1)
    assert [check["verdict"] for check in result["checks"]] == (
        ["pass"] if "checks" in values else []
    )
    assert result["tasks"][0]["attempt"] == "1.1"
    rests = desk.engine.read(outlook, goal)
    assert rests.waiting == ((1,) if word == "waiting" else ())
    assert (rests.ready_ms is not None) == (word == "interrupted")


def test_one_unverified_task_makes_the_goal_unverified(desk: Desk) -> None:
    goal = desk.goal(task("a"), task("b"))
    desk.work("passed", **PASSED)
    desk.work("unverified")
    assert desk.engine.read(goal_result, goal)["outcome"] == "unverified"


def test_a_task_sees_its_neighbours_with_their_links_and_answers(desk: Desk) -> None:
    desk.goal(task("a"), task("b", requires=("a",), refers=("c",)), task("c"), task("d"))
    desk.work(answer="did a")
    desk.claim()
    seen = {one.key: (one.kind, one.state, one.answer) for one in desk.engine.read(neighbours, 2)}
    assert seen == {
        "a": ("requires", "succeeded", "did a"),
        "c": ("refers", "ready", ""),
        "d": ("plan", "ready", ""),
    }
    assert desk.engine.read(previous_end, 2, before=1) == (0, "")
    assert desk.engine.read(last_report, 2, before=1) is None


def test_the_log_is_read_in_pages_and_by_goal(desk: Desk) -> None:
    one, other = desk.goal(), desk.goal()
    everything = desk.engine.read(events)
    assert [event["seq"] for event in everything] == list(range(1, len(everything) + 1))
    page = desk.engine.read(events, after=2, limit=3)
    assert [event["seq"] for event in page] == [3, 4, 5]
    mine = desk.engine.read(events, goal=other)
    assert {event["goal"] for event in mine} == {other}
    assert one != other
    assert everything[0]["machine"] == "goal"
    assert everything[0]["event"] == "submit"


def test_an_attempt_is_read_with_the_journal_up_to_it(desk: Desk) -> None:
    desk.goal()
    first = desk.claim()
    journal = desk.journal(first)
    step, _ = effectful("s", "compensable", tokens=3)
    done(journal.step(step))
    done(journal.flush())
    desk.call(expire, first.fence, reason="died")
    second = desk.claim()
    desk.intend(second, "later", position=5)
    record = desk.engine.read(attempt_record, "1.1")
    assert [row.key for row in record.steps] == ["s"]
    assert (record.bundle, record.base_tree, record.usage.tokens) == (b"bundle", "t0", 3)
    assert record.outcome == Outcome(kind="expired", failure="transient", reason="died")
    assert desk.engine.read(attempt_record, "1.2").outcome is None


@pytest.mark.parametrize("name", ["", "1", "1.", ".1", "a.b", "1.2.3", "１.1", "-1.1"])
def test_a_name_that_names_no_attempt_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="names no attempt"):
        parse_attempt(name)


def test_an_attempt_that_is_not_there_or_began_nothing_is_not_found(desk: Desk) -> None:
    desk.goal()
    with pytest.raises(NotFound, match=r"no attempt 1.1"):
        desk.engine.read(attempt_record, "1.1")
    granted = desk.claim(bundle=b"")
    desk.settle(granted, "cancelled", failure="cancelled", reason="interrupted")
    with pytest.raises(NotFound, match="before it was given a bundle"):
        desk.engine.read(attempt_record, "1.1")


def test_settling_what_was_never_claimed_is_not_found(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    from dataclasses import replace

    with pytest.raises(NotFound):
        desk.call(settle, replace(granted.fence, attempt=9), Outcome(kind="unverified"))


@pytest.mark.parametrize("verdicts", [(), ("absent",), ("pass", "fail"), ("pass", "absent")])
def test_nobody_can_say_passed_without_checks_that_all_passed(
    desk: Desk, verdicts: tuple[str, ...]
) -> None:
    desk.goal()
    granted = desk.claim()
    checks = tuple(CheckResult(command="c", verdict=verdict) for verdict in verdicts)
    before = snapshot(desk)
    with pytest.raises(Refused, match="says passed"):
        desk.settle(granted, "passed", checks=checks)
    assert snapshot(desk) == before


def test_a_call_that_was_cut_short_counts_as_spent_when_its_attempt_is_cancelled(
    desk: Desk,
) -> None:
    desk.goal()
    granted = desk.claim()
    desk.intend(granted, kind="model", reserve_tokens=70)
    desk.settle(granted, "cancelled", failure="cancelled", reason="interrupted")
    assert desk.rows("SELECT tokens_in FROM attempts")[0]["tokens_in"] == 70
    (event,) = desk.rows("SELECT payload FROM events WHERE event_type = 'llm_call'")
    call = readable("llm_call", json.loads(event["payload"]))
    assert (call["tokens_total"], call["estimated"], call["model"]) == (70, True, "unknown")


def test_a_call_that_was_cut_short_is_told_of_the_model_that_was_asked_last(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    for at, request in enumerate((b'{"model":"one"}', b'{"model":"two"}', b"{}", b"{}"), start=1):
        desk.intend(granted, f"t{at}", kind="model", request=request, position=at, reserve_nusd=at)
        if at != 3:
            desk.done(granted, f"t{at}", reserve_nusd=at)
    desk.call(expire, granted.fence, reason="died")
    (event,) = desk.rows("SELECT payload FROM events WHERE event_type = 'llm_call'")
    call = readable("llm_call", json.loads(event["payload"]))
    assert (call["model"], call["step"], call["cost_nusd"]) == ("two", "t3", 3)


def test_a_lost_task_can_be_claimed_at_once_though_the_clock_was_set_back(desk: Desk) -> None:
    desk.goal()
    granted = desk.claim()
    desk.engine.call(expire, granted.fence)
    assert desk.rows("SELECT not_before_ms FROM tasks")[0]["not_before_ms"] == 0
