"""What the commands share: finding the store, wiring the app, showing progress and results."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.app import STORE_NAME, App, build
from holdfast.app.goals import home_for
from holdfast.cli.console import Console
from holdfast.config import load
from holdfast.domain.ports import Progress
from holdfast.errors import NotFound


class Lines:
    """Progress as plain lines on stderr; quiet commands pass `quiet`."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet

    def show(self, progress: Progress) -> None:
        if not self._quiet:
            who = f"{progress.task[:30]} | " if progress.task else ""
            self._console.note(f"  {who}{progress.text}")


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
    start = Path(arguments.repo).expanduser()
    if not start.is_dir():
        raise NotFound(f"{start} is no folder", hint="--repo names the repository")
    settings = load(start, flags={"home": arguments.home, **(flags or {})})
    home = home_for(start, settings.home)
    if must_exist and not (home / STORE_NAME).exists():
        raise NotFound(f"there is no store at {home}", hint='start with: holdfast run "…"')
    app = build(settings, home=home, sink=Lines(console, quiet=quiet))
    try:
        yield app
    finally:
        app.close()


def usage_line(usage: Mapping[str, Any]) -> str:
    """Tokens in words: what went in, how much of it a prompt cache answered, what came out."""
    cached, sent = usage["tokens_cached"], usage["tokens_in"]
    reuse = f" ({cached} of them from the provider's cache, {cached / sent:.0%})" if cached else ""
    return f"{sent} tokens in{reuse}, {usage['tokens_out']} out"


def show_result(console: Console, result: Mapping[str, Any]) -> None:
    """The end of a run: one JSON object, or a few lines that say what to do next."""
    if console.json:
        console.emit(result)
        return
    spent = result["usage"]
    money = "unknown price" if spent["cost_usd"] is None else f"${spent['cost_usd']:.4f}"
    console.say(f"goal {result['goal']}: {result['state']}, {result['outcome']}")
    for task in result["tasks"]:
        detail = f": {task['detail']}" if task["detail"] else ""
        console.say(f"  {task['key']}: {task['state']} (attempt {task['attempt']}){detail}")
    for check in result["checks"]:
        console.say(f"  check {check['verdict']}: {check['command']}")
    console.say(f"branch {result['branch']}, {spent['tokens']} tokens, {money}")
    console.say(_next(result))


def _next(result: Mapping[str, Any]) -> str:
    goal = result["goal"]
    look = f"git -C {shlex.quote(result['repository'])} diff HEAD...{result['branch']}"
    match result["outcome"]:
        case "passed":
            return f"see it: {look}"
        case "unverified":
            return f"no check proved it; look: {look}"
        case "interrupted":
            return f"go on: holdfast resume {goal}"
        case "waiting":
            return "a person must answer: holdfast approval list"
        case _:
            return f"what happened: holdfast goal show {goal}"
