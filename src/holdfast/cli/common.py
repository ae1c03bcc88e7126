"""What the commands share: finding the store, wiring the app, showing progress and results."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli import look
from holdfast.cli.console import Console, lively
from holdfast.config import load
from holdfast.domain.ports import Progress, Sink
from holdfast.errors import Corrupt, NotFound, Refused

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.cli.page import Page

# What is about to be waited for: a live view shows it, a line would be said twice.
AWAITED = ("asking", "calling", "checking")


class Lines:
    """Progress as plain lines on stderr; quiet commands pass `quiet`."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet

    def show(self, progress: Progress) -> None:
        if not self._quiet and progress.kind not in AWAITED:
            self._console.note(look.note(progress))


def add_place(parser: argparse.ArgumentParser) -> None:
    """The flags that say where the store is."""
    parser.add_argument("--repo", default=".", metavar="DIR", help="the repository (default: here)")
    parser.add_argument("--home", metavar="DIR", help="the store's folder (default: .holdfast)")


@contextmanager
def opened(
    arguments: argparse.Namespace,
    console: Console,
    *,
    must_exist: bool = True,
    flags: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Iterator[App]:
    """The app for the place that the flags name; refuses where no store is, unless one is made."""
    from msgspec import MsgspecError  # all three: a tenth of a second, which `--help` does not need

    from holdfast.app import STORE_NAME, build
    from holdfast.app.goals import home_for

    start = Path(arguments.repo).expanduser()
    if not start.is_dir():
        raise NotFound(f"{start} is no folder", hint="--repo names the repository")
    settings = load(start, flags={"home": arguments.home, **(flags or {})})
    home = home_for(start, settings.home)
    if must_exist and not (home / STORE_NAME).exists():
        raise NotFound(f"there is no store at {home}", hint='start with: holdfast run "…"')
    app = build(settings, home=home, sink=_sink(console, quiet))
    try:
        yield app
    except MsgspecError as error:
        raise Corrupt(
            f"a record of {home / STORE_NAME} cannot be read by this version of Holdfast: {error}",
            hint="use the version that wrote it; holdfast check tells whether it is damaged",
        ) from error
    finally:
        app.close()


def need_number(value: int | None, noun: str) -> int:
    """The number that a verb needs, or a refusal that says how to give it."""
    if value is None:
        raise Refused(f"which {noun}?", hint=f"holdfast {noun} list shows their numbers")
    return value


def usage_line(usage: Mapping[str, Any]) -> str:
    """Tokens in words: what went in, how much of it a prompt cache answered, what came out."""
    cached, sent = usage["tokens_cached"], usage["tokens_in"]
    reuse = f" ({cached} of them from the provider's cache, {cached / sent:.0%})" if cached else ""
    return f"{sent} tokens in{reuse}, {usage['tokens_out']} out"


def _sink(console: Console, quiet: bool) -> Sink:
    """Lines; on a terminal of a person who runs something, a sink that can also draw."""
    lines = Lines(console, quiet=quiet)
    if quiet or console.json or not lively(sys.stderr):
        return lines
    from holdfast.cli.live import Tree

    return Tree(lines)


def watching(app: App, goal: int) -> AbstractContextManager[None]:
    """Draw the goal while the block runs, where that is possible; else nothing."""
    watch = getattr(app.sink, "watching", None)
    return nullcontext() if watch is None else watch(app.engine, app.clock, goal)


def show_result(console: Console, result: Mapping[str, Any]) -> None:
    """The end of a run: one JSON object, or a few lines that say what to do next."""
    console.emit(result)
    console.show(_end, result)


def _end(page: Page, result: Mapping[str, Any]) -> None:
    spent = result["usage"]
    took = f", {look.span(result['ended_ms'] - result['created_ms'])}" if result["ended_ms"] else ""
    end = (result["outcome"], look.style(result["outcome"]))
    page.row(f"goal {result['goal']}: {result['state']}, ", end, took)
    for task in result["tasks"]:
        detail = f": {look.head(task['detail'])}" if task["detail"] else ""
        tried = "" if task["attempt"].endswith(".0") else f" (attempt {task['attempt']})"
        page.row(
            page.mark(task["state"]), f"{task['key']}: {task['state']}{tried}{detail}", indent=2
        )
        for check in (each for each in result["checks"] if each["attempt"] == task["attempt"]):
            note = f" ({check['note']})" if check["note"] else ""
            said = f"check {check['verdict']}: {check['command']}{note}"
            page.row(page.mark(check["verdict"]), said, indent=4)
    tokens = look.count(spent["tokens"], "token")
    branch = f"branch {result['branch']}" if result["commit"] else "nothing changed, so no branch"
    page.whole(f"{branch}, {tokens}, {look.money(spent['cost_usd'])}")
    page.whole(_next(result))


def _next(result: Mapping[str, Any]) -> str:
    goal = result["goal"]
    command = f"diff HEAD...{result['branch']}" if result["base"] else f"log -p {result['branch']}"
    look_at = f"holdfast diff {goal}, or git -C {shlex.quote(result['repository'])} {command}"
    if not result["commit"]:
        look_at = f"holdfast goal show {goal}"
    match result["outcome"]:
        case "passed":
            return f"see it: {look_at}"
        case "unverified":
            return f"no check proved it; look: {look_at}"
        case "interrupted":
            return f"go on: holdfast resume {goal}"
        case "waiting":
            if result["proposed_plan"]:
                number = result["proposed_plan"]
                return f"look: holdfast plan show {number}; then: holdfast plan approve {number}"
            return "a person must answer: holdfast approval list"
        case _:
            return f"what happened: holdfast goal show {goal}"
