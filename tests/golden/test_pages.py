"""What a person reads, to the letter: each page over one store, at a fixed width.

The store is made by the engine's use cases on a clock that stands still unless it is moved. To take
the pages anew after a change that is meant: `GOLDEN=write pytest tests/golden/test_pages.py`, then
read the diff.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from desk import Desk, task
from holdfast.agent.actions import Actions, Call
from holdfast.agent.conversation import encode
from holdfast.agent.loop import Reply
from holdfast.cli import attempt_page, pages
from holdfast.cli.page import Page
from holdfast.context.bundle import Item
from holdfast.domain.model import Budget, CheckResult, Claim
from holdfast.domain.ports import ModelReply, Observation, ObservationError, ToolCall, Usage
from holdfast.engine import listing, pause

FOLDER = Path(__file__).parent / "pages"
EVIL = "\x1b[2J\u202eevil"
START_MS = 1_795_250_000_000


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    made = Desk(tmp_path)
    made.clock.jump(START_MS - made.clock.now_ms())
    _fill(made)
    yield made
    made.close()
    monkeypatch.undo()
    time.tzset()


def _fill(desk: Desk) -> None:
    """Goal 1: a passed task, one that failed twice and was paused, one that it blocks. Goal 2."""
    check = "python3 -m unittest -q"
    desk.goal(
        task("parser", title="Make the price parser pass its test", checks=(check,)),
        task("total", title=f"Add a total {EVIL}", checks=(check, "test_passes")),
        task("readme", requires=("total",), prompt="Say in the README how to use it.\n" * 3),
        text=f"Make prices usable {EVIL}",
        model="ollama:qwen3:8b,openai:gpt-5-mini",
        budget=Budget(tokens=50_000, usd=0.5),
    )
    passed = CheckResult(command=check, verdict="pass", exit_code=0, duration_ms=120)
    first = desk.claim(bundle=_bundle("parser"))
    _turn(desk, first, 1, "I look first.", ("read_file", "prices.py", ""))
    _turn(desk, first, 2, "I mend it.", ("edit_file", "prices.py", ""))
    _turn(desk, first, 3, f"Done: it parses now. {EVIL}")
    _checked(desk, first, "v01", passed)
    answer = f"It parses now.\nThe comma was read as a point. {EVIL}\n"
    desk.settle(first, "passed", answer=answer, checks=(passed,), done=(f"{check}: passed",))

    failed = CheckResult(
        command=check,
        verdict="fail",
        exit_code=1,
        output=f"FAIL: test_total\nTraceback\n  line 4\nAssertionError: 3 != 4 {EVIL}",
        duration_ms=340,
    )
    absent = CheckResult(
        command="test_passes", kind="test_passes", verdict="absent", note="no test runner"
    )
    second = desk.claim(bundle=_bundle("total"))
    _turn(desk, second, 1, "", ("write_file", "../up.py", "OUTSIDE"), ("list_directory", ".", ""))
    _turn(desk, second, 2, "That is all.")
    _checked(desk, second, "v01", failed, absent)
    desk.settle(
        second,
        "failed",
        failure="logic",
        reason="checks_failed",
        detail=f"{check}: failed with exit code 1; test_passes: could not run {EVIL}",
        checks=(failed, absent),
        remaining=(f"{check}: failed with exit code 1",),
    )
    third = desk.claim(bundle=_bundle("total"))
    _turn(desk, third, 1, "Again.", cost=None)
    desk.call(pause, 1, reason="interrupted")
    desk.settle(third, "cancelled", failure="cancelled", reason="interrupted")
    desk.goal(task("only"), text="Second goal")


def _bundle(key: str) -> bytes:
    items = (
        Item(source="Task", kind="task", reason="the task itself", tokens=120, fate="whole"),
        Item(source="prices.py", kind="file", reason="named", tokens=1_800, fate="cut"),
        Item(source="Task 9", kind="plan", reason="no room", tokens=400, fate="out"),
    )
    return encode({"task": key, "items": items})  # no more: a page reads nothing else of it


def _turn(
    desk: Desk,
    granted: Claim,
    number: int,
    said: str,
    *calls: tuple[str, str, str],
    cost: int | None = 1_250_000,
) -> None:
    """A model step and its calls as (tool, path, error code)."""
    name = f"t{number:03}"
    asked = tuple(
        Call(call=ToolCall(id=str(at), name=tool, arguments="{}"), arguments={"path": path})
        for at, (tool, path, _) in enumerate(calls)
    )
    reply = Reply(
        reply=ModelReply(text=said, model="qwen3:8b"),
        actions=Actions(kind="calls" if calls else "answer", calls=asked, answer=said),
    )
    usage = Usage(tokens_in=1_100 * number, tokens_out=48, tokens_cached=512, cost_nusd=cost)
    place = 10 * number
    desk.intend(granted, f"{name}/model", kind="model", effect="idempotent", position=place)
    desk.clock.advance(1_400)
    desk.done(granted, f"{name}/model", encode(reply), usage=usage)
    for at, (tool, path, code) in enumerate(calls):
        key = f"{name}/call:{at}"
        request = encode({"tool": tool, "arguments": {"path": path}})
        error = ObservationError(code=code, message=f"{path} is outside") if code else None
        seen = Observation(tool=tool, success=not code, output="out", error=error)
        desk.intend(granted, key, request=request, position=place + 1 + at)
        desk.clock.advance(30)
        desk.done(granted, key, encode(seen))


def _checked(desk: Desk, granted: Claim, name: str, *results: CheckResult) -> None:
    for at, result in enumerate(results):
        key = f"{name}/check:{at}"
        desk.intend(granted, key, kind="check", position=900 + at)
        desk.clock.advance(result.duration_ms)
        desk.done(granted, key, encode(result))


CHANGED = [
    {"path": "prices.py", "status": "M", "added": 12, "removed": 3},
    {"path": f"new {EVIL}.py", "status": "A", "added": 1_200, "removed": 0},
    {"path": "logo.png", "status": "D", "added": None, "removed": None},
]
Draw = Callable[[Desk, Page], None]


def _attempt(page: Page, desk: Desk, task_id: int, number: int, changes: Any) -> None:
    found = desk.engine.read(listing.attempt, task_id, number)
    attempt_page.attempt(page, {**found, "changes": changes}, desk.clock.now_ms())


PAGES: dict[str, Draw] = {
    "goal_list": lambda desk, page: pages.goals(page, desk.engine.read(listing.goals)),
    "goal_show": lambda desk, page: pages.goal(
        page, desk.engine.read(listing.goal, 1), desk.clock.now_ms()
    ),
    "goal_show_new": lambda desk, page: pages.goal(
        page, desk.engine.read(listing.goal, 2), desk.clock.now_ms()
    ),
    "plan_list": lambda desk, page: pages.plans(page, desk.engine.read(listing.plans)),
    "plan_show": lambda desk, page: pages.plan(page, desk.engine.read(listing.plan, 1)),
    "task_list": lambda desk, page: pages.tasks(page, desk.engine.read(listing.tasks)),
    "task_show": lambda desk, page: pages.task(page, desk.engine.read(listing.task_row, 2)),
    "task_show_blocked": lambda desk, page: pages.task(page, desk.engine.read(listing.task_row, 3)),
    "attempt_list": lambda desk, page: pages.attempts(
        page,
        [one for each in desk.engine.read(listing.tasks) for one in each["attempts"]],
    ),
    "attempt_show": lambda desk, page: _attempt(page, desk, 1, 1, CHANGED),
    "attempt_show_failed": lambda desk, page: _attempt(page, desk, 2, 1, []),
    "attempt_show_cut_short": lambda desk, page: _attempt(page, desk, 2, 2, None),
    "attempt_journal": lambda desk, page: attempt_page.journal(
        page, desk.engine.read(listing.attempt, 2, 2)
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_as_it_did(desk: Desk, name: str) -> None:
    text = _text(_page(name, desk, width=90))
    path = FOLDER / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [0, 24, 60, 200])
def test_no_page_holds_a_hostile_character_or_is_wider_than_its_terminal(
    desk: Desk, name: str, width: int
) -> None:
    from rich.cells import cell_len

    page = _page(name, desk, width=width)
    text = _text(page)
    assert not set(text) & {"\x1b", "\u202e", "\r", "\t"}
    whole = {"holdfast", "in"}  # what is never cut: commands to copy, and the place
    for row in text.splitlines():
        assert not width or cell_len(row) <= width or row.split()[0] in whole, row
    coloured = "\n".join(page.lines(colour=True))
    assert "\x1b[2J" not in coloured
    assert "\x1b[0m" in coloured


def test_a_narrow_page_still_says_how_attempts_ended_what_they_cost_and_what_to_do(
    desk: Desk,
) -> None:
    rows = _text(_page("goal_show", desk, width=60)).splitlines()
    [ended] = [row for row in rows if " 2.1 " in row]
    assert all(word in ended for word in ("failed", "tok", "$", " s")), ended
    [at] = [at for at, row in enumerate(rows) if row.strip() == "holdfast diff 1"]
    assert rows[at + 1].strip() == "what it changed"


@pytest.mark.parametrize("name", PAGES)
def test_without_unicode_a_page_adds_none(desk: Desk, name: str) -> None:
    assert _text(_page(name, desk, ascii_only=True)).isascii()


def test_every_page_has_its_file_and_every_file_its_page() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PAGES)


def _page(name: str, desk: Desk, **how: Any) -> Page:
    page = Page(**how)
    PAGES[name](desk, page)
    return page


def _text(page: Page) -> str:
    return "".join(f"{row}\n" for row in page.lines())
