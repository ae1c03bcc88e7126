"""The picture of a running goal, drawn from a snapshot: what it shows, what it folds, what fits."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desk import Desk, task
from holdfast.cli import look
from holdfast.cli.live import draw
from holdfast.domain.model import Budget, CheckResult
from holdfast.domain.ports import Progress, Usage
from holdfast.engine.board import Board, PlanLine, TaskLine, board, log_end

NOW_MS = 1_000_000
STATES = ("blocked", "ready", "running", "waiting", "succeeded", "failed", "cancelled")


def line(number: int, state: str = "ready", **values: Any) -> TaskLine:
    fields: dict[str, Any] = {
        "id": number,
        "key": f"t{number}",
        "title": f"Do thing {number}",
        "plan": 1,
        "state": state,
        "reason": "",
        "attempt": 0 if state in ("ready", "blocked") else 1,
        "model": "ollama:m",
        "tier": "standard",
        "worker": "w-1",
        "turns_max": 20,
        "tokens": 1234,
        "cost_usd": 0.01,
        "worked_ms": 2000,
        "open_ms": NOW_MS - 1000 if state == "running" else None,
        "checks": (),
        "blocked_by": (),
    }
    return TaskLine(**{**fields, **values})


def of(*tasks: TaskLine, **values: Any) -> Board:
    fields: dict[str, Any] = {
        "seq": 1,
        "goal": 3,
        "text": "Make it work",
        "state": "executing",
        "reason": "",
        "branch": "holdfast/goal-3",
        "created_ms": NOW_MS - 65_000,
        "ended_ms": None,
        "usage": Usage(tokens_in=1000, tokens_out=234, cost_nusd=10_000_000),
        "budget_tokens": 0,
        "budget_usd": 0.0,
        "plans": (PlanLine(id=1, revision=1, source="person", state="running", reason=""),),
        "tasks": tasks,
    }
    return Board(**{**fields, **values})


def shown(found: Board, *doing: Progress, width: int = 80, height: int = 24, **more: Any) -> str:
    now = {progress.attempt: progress for progress in doing}
    lines = draw(found, now, now_ms=NOW_MS, width=width, height=height, **more)
    return "\n".join(text.plain.rstrip() for text in lines)


def doing(kind: str, text: str, *, attempt: str = "1.1", turn: int = 3) -> Progress:
    return Progress(kind=kind, goal=3, task="t", text=text, attempt=attempt, turn=turn)


PICTURE = """
goal 3  Make it work                                             executing  1:05
0 of 2 tasks done                               1,234 tokens, $0.0100 of $0.5000
plan 1 (person)                                                          running
 ● t1  Do thing 1                          #1      1,234 tok    $0.0100    3.0 s
     turn 3 of 20  calls run_command pytest -q  ollama:m (standard)
     ✗ check pytest -q
     ○ check ruff check
 · t2  Do thing 2  after t1
"""


def test_a_running_task_tells_turn_call_model_spend_time_and_its_checks() -> None:
    found = of(
        line(1, "running", checks=(("pytest -q", "fail"), ("ruff check", ""))),
        line(2, "blocked", blocked_by=("t1",)),
        budget_usd=0.5,
    )
    assert shown(found, doing("calling", "run_command pytest -q")) == PICTURE.strip()


def test_an_attempt_of_another_process_is_shown_without_what_only_that_one_knows() -> None:
    assert "attempt 1.1 of w-1  ollama:m (standard)" in shown(of(line(1, "running")))


def test_what_a_model_is_asked_and_what_came_of_a_call_read_differently() -> None:
    found = of(line(1, "running"))
    assert "turn 3 of 20  asks ollama:m" in shown(found, doing("asking", "ollama:m"))
    assert "turn 3 of 20  read_file a → ok" in shown(found, doing("tool", "t003 read_file a → ok"))
    assert "     checks make test" in shown(found, doing("checking", "make test", turn=0))


def test_an_unknown_price_is_not_zero() -> None:
    found = of(line(1, "running", cost_usd=None), usage=Usage(cost_nusd=None))
    assert "0 tokens, unknown price" in shown(found)
    assert "$?" in shown(found)


def test_two_hundred_tasks_fold_and_what_needs_eyes_stays() -> None:
    tasks = [line(number, "succeeded") for number in range(1, 190)]
    tasks += [line(190, "failed"), line(191, "running"), line(192, "waiting", reason="undecided")]
    tasks += [line(number, "blocked") for number in range(193, 201)]
    text = shown(of(*tasks), height=12)
    rows = text.splitlines()
    assert len(rows) == 12
    for kept in ("✗ t190", "● t191", "? t192  Do thing 192  undecided"):
        assert kept in text
    assert rows[-1] == " … 193 more: 189 succeeded, 4 blocked"
    assert "attempt 191.1" in text, "a running task still says what it does"
    assert "more" not in shown(of(*tasks), height=250), "where everything fits nothing is folded"


def test_checks_of_what_is_over_give_way_first() -> None:
    over = [line(n, "succeeded", checks=(("true", "pass"),)) for n in (1, 2)]
    found = of(*over, line(3, "running", checks=(("make", "fail"),)))
    assert shown(found, height=10).count("✓ check true") == 2
    tight = shown(found, height=9)
    assert "check true" not in tight
    assert "✗ check make" in tight


def test_no_text_from_outside_can_move_the_cursor_or_break_a_line() -> None:
    evil = "\x1b[2Jx\r\ny\u202e"
    found = of(
        line(1, "running", key=evil, title=evil, checks=((evil, "fail"),), model=evil),
        line(2, "blocked", blocked_by=(evil,)),
        line(3, "failed", reason=evil),
        text=evil,
        plans=(PlanLine(id=1, revision=1, source=evil, state="running", reason=evil),),
    )
    text = shown(found, doing("calling", evil), height=100, width=300)
    assert not set(text) & {"\x1b", "\r", "\u202e"}
    assert len(text.splitlines()) == 8


def test_without_unicode_the_glyphs_are_ascii() -> None:
    tasks = [line(n + 1, state, checks=(("c", "pass"),)) for n, state in enumerate(STATES)]
    text = shown(of(*tasks), height=9, ascii_only=True, width=60)
    assert text.isascii()
    assert ".. " in text


@given(
    states=st.lists(st.sampled_from(STATES), max_size=30),
    width=st.integers(1, 130),
    height=st.integers(1, 40),
    text=st.text(max_size=60),
    checks=st.integers(0, 3),
)
def test_a_picture_never_is_larger_than_its_screen(
    states: list[str], width: int, height: int, text: str, checks: int
) -> None:
    tasks = [
        line(n + 1, state, title=text, checks=((text, ""),) * checks)
        for n, state in enumerate(states)
    ]
    lines = draw(
        of(*tasks, text=text),
        {"1.1": doing("asking", text)},
        now_ms=NOW_MS,
        width=width,
        height=height,
    )
    assert len(lines) <= height
    assert all(row.cell_len <= max(width, 8) for row in lines)
    assert not any("\n" in row.plain for row in lines)


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    made = Desk(tmp_path)
    yield made
    made.close()


def test_a_board_is_the_state_of_the_store(desk: Desk) -> None:
    goal = desk.goal(
        task("a", checks=("true",), postconditions=("false",)),
        task("b", requires=("a",), title="Second"),
        budget=Budget(tokens=99),
    )
    found = desk.engine.read(board, goal)
    assert [each.state for each in found.tasks] == ["ready", "blocked"]
    assert found.tasks[1].blocked_by == ("a",)
    assert found.tasks[0].checks == (("true", ""), ("false", ""))
    assert (found.budget_tokens, found.plans[0].state) == (99, "running")

    began = desk.claim()
    desk.intend(began, "v01/check:0", kind="check")
    result = b'{"command":"true","verdict":"pass","exit_code":0,"output":"","duration_ms":1}'
    desk.done(began, "v01/check:0", result, usage=Usage(tokens_in=7, cost_nusd=1_000))
    running = desk.engine.read(board, goal).tasks[0]
    assert running.checks == (("true", "pass"), ("false", "")), "verdicts show while it runs"
    assert (running.tokens, running.attempt, running.worker) == (7, 1, "me")
    assert running.open_ms is not None

    checks = (
        CheckResult(command="true", verdict="pass"),
        CheckResult(command="false", verdict="fail"),
    )
    desk.settle(began, "failed", failure="policy", reason="checks_failed", checks=checks)
    over = desk.engine.read(board, goal)
    assert over.tasks[0].checks == (("true", "pass"), ("false", "fail"))
    assert over.tasks[0].open_ms is None
    assert over.usage.tokens == 7
    assert over.seq == desk.engine.read(log_end) > found.seq


def test_a_forced_requirement_blocks_no_more(desk: Desk) -> None:
    from holdfast.engine import force

    goal = desk.goal(task("a"), task("b"), task("c", requires=("a", "b")))
    assert desk.engine.read(board, goal).tasks[2].blocked_by == ("a", "b")
    desk.call(force, 3, 1, reason="not needed")
    assert desk.engine.read(board, goal).tasks[2].blocked_by == ("b",)


def test_times_sizes_and_counts_read_as_a_person_says_them() -> None:
    spans = [0, 400, 9949, 9950, 59_400, 59_600, 185_000, 7_207_000]
    assert [look.span(ms) for ms in spans] == [
        *("0.0 s", "0.4 s", "9.9 s", "10 s", "59 s", "1:00", "3:05", "2:00:07"),
    ]
    assert [look.size(n) for n in (512, 1500, 48_000_000, 2_000_000_000_000)] == [
        *("512 B", "1.5 KB", "48.0 MB", "2000.0 GB"),
    ]
    assert (look.count(1, "step"), look.count(1234, "step")) == ("1 step", "1,234 steps")
    assert look.money(None) == "unknown price"
    assert look.moment(None) == ""
    assert look.head("\n  \n a\tb \n c") == "a b"
    assert look.clean("a\tb\x1b") == "a   b\\x1b"
