"""Context: what a task's attempt is shown, why, and the say that people have in it.

holdfast context                              every decision that people made, task by task
holdfast context preview 7 --tokens 4000      what the next attempt of task 7 gets, and why
holdfast context pin 7 src/app.py --reason "the bug is here"
holdfast context exclude 7 "Task notes" --reason "outdated"
holdfast context unpin 7 src/app.py --reason "fixed"        (undoes an exclusion too)
holdfast context approve 7 --pin src/app.py --exclude "The plan" --reason "read it"
holdfast context diff 7.1 7.2                 two attempts' bundles, or a task's next one (7)
holdfast context history 7                    who decided what, when and why
holdfast context index 3 [--write FILE --version N]         a goal's INDEX.md
holdfast context serve --port 8710            the same by HTTP on 127.0.0.1 (docs/context.md)

A source is named as the preview shows it, or is a file or `Task N`. With --once a decision holds
for the next take alone.
"""

from __future__ import annotations

import argparse
import getpass
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console
from holdfast.cli.look import line, moment
from holdfast.errors import Refused

if TYPE_CHECKING:
    from holdfast.app import App

STEERING = ("pin", "unpin", "exclude", "approve")
DIGITS_MAX = 64
VERBS = ("list", "preview", *STEERING, "diff", "history", "index", "serve")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=VERBS, default="list")
    parser.add_argument(
        "what",
        nargs="?",
        default="",
        help="the task's number; an attempt for diff; a goal for index",
    )
    parser.add_argument("source", nargs="?", default="", help="the source; the other one for diff")
    add_place(parser)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="for serve; 0: a free one")
    parser.add_argument("--tokens", type=int, metavar="N", help="try another budget")
    parser.add_argument("--pin", action="append", default=[], metavar="SOURCE", help="for approve")
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="SOURCE", help="for approve"
    )
    parser.add_argument("--reason", default="", help="why; recorded")
    parser.add_argument("--author", default=_user(), help="who decides (default: you)")
    parser.add_argument("--once", action="store_true", help="for the next take alone")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the new INDEX.md")
    parser.add_argument(
        "--version", type=int, default=0, metavar="N", help="the version it is written over"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.verb == "serve":
        return _serve(arguments, console)
    with opened(arguments, console, quiet=True) as app:
        found = _do(app, arguments)
    console.emit(found)
    _tell(console, found)
    return 0


def _serve(arguments: argparse.Namespace, console: Console) -> int:
    """Serve until it is interrupted; the address is the one thing on stdout."""
    import asyncio

    from holdfast.app.goals import make_home
    from holdfast.web.context import routes
    from holdfast.web.runs import Runs
    from holdfast.web.serve import application, serve

    def ready(url: str) -> None:
        console.emit({"type": "serving", "url": url})
        console.say(url)

    with opened(arguments, console, must_exist=False) as app:
        make_home(app.home)
        runs = Runs(app, Path(arguments.repo).expanduser())
        table = routes(app.desk, runs, author=arguments.author or _user())
        asyncio.run(serve(application(table, runs.close), arguments.port, ready))
    return 0


def _do(app: App, arguments: argparse.Namespace) -> Mapping[str, Any]:
    from holdfast.app.context import decide, preview

    who = {"author": arguments.author, "reason": arguments.reason, "once": arguments.once}
    desk = app.desk
    if arguments.verb == "diff":
        return desk.compare(arguments.what, arguments.source)
    if arguments.verb == "list":
        return desk.history()
    number = _number(arguments.what)
    match arguments.verb:
        case "pin" | "exclude":
            decide(app, number, arguments.verb, arguments.source, **who)
        case "unpin":
            decide(app, number, "release", arguments.source, **who)
        case "approve":
            return desk.approve(number, pins=arguments.pin, excludes=arguments.exclude, **who)
        case "history":
            return desk.history(number)
        case "index" if arguments.write is not None:
            text, version = _read(arguments.write), arguments.version
            return desk.put_index(number, text, version=version, author=arguments.author)
        case "index":
            return desk.get_index(number)
    return preview(app, number, tokens=arguments.tokens)


def _tell(console: Console, found: Mapping[str, Any]) -> None:
    match found["type"]:
        case "context":
            known = "recorded" if found["recorded"] else "as things stand"
            console.say(
                f"task {found['task']} ({found['state']}), take {found['take']}, {known}:"
                f" {found['tokens']} of {found['budget_tokens']} tokens,"
                f" bundle {found['sha256'][:12]}"
            )
            for item in found["items"]:
                short = item["fate"] in ("cut", "summary")
                of = f" ({item['tokens']} of {item['of_tokens']} tokens)" if short else ""
                console.say(
                    f"  {item['fate']:<7} {item['tokens']:>6}  {item['kind']:<10}"
                    f" {line(item['source'])}: {line(item['reason'])}{of}"
                )
            console.say("")
            console.say(found["text"])
        case "context_diff":
            console.say("equal" if found["equal"] else "different")
            for change in found["items"]:
                console.say(
                    f"  {line(change['source'])}: {_fate(change['before'])}"
                    f" → {_fate(change['after'])}"
                )
            console.say(found["text"])
        case "steers":
            if not found["steers"]:
                console.say("nobody has decided anything; holdfast context preview TASK shows all")
            for row in found["steers"]:
                of = f"task {row['task_id']}: " if found["task"] is None else ""
                once = f" (take {row['take']})" if row["take"] else ""
                console.say(
                    f"{moment(row['at_ms'])}  {of}{row['verb']} {line(row['source'])}{once}"
                    f" by {row['author']}: {row['reason']}"
                )
        case _:
            stale = ", stale" if found["stale"] else ""
            console.say(f"INDEX.md of goal {found['goal']}: version {found['version']}{stale}")
            console.say(found["text"])


def _fate(item: Mapping[str, Any] | None) -> str:
    return "absent" if item is None else f"{item['fate']} ({item['tokens']})"


def _user() -> str:
    """Who runs this process: a container may know neither $USER nor an account."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise Refused(f"{text[:DIGITS_MAX]!r} is no number", hint="holdfast task list shows them")
    return int(text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"cannot read {path}: {error}") from error
