"""Attempts: numbered tries of a task, each with its journal.

holdfast attempt --goal 3      list them
holdfast attempt show 7.2      how it ended and why, turn by turn what it did and cost
holdfast attempt show 7.2 --journal            every step with its request and result
"""

from __future__ import annotations

import argparse

from holdfast.cli import attempt_page, pages
from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "show"), default="list")
    parser.add_argument("attempt", nargs="?", default="", help="TASK.NUMBER")
    add_place(parser)
    parser.add_argument("--journal", action="store_true", help="every step, asked and given")
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="only this goal's")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.app.changes import diffstat
    from holdfast.engine.attempts import parse_attempt
    from holdfast.engine.listing import attempt, tasks

    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list":
            rows = [
                one for task in app.engine.read(tasks, arguments.goal) for one in task["attempts"]
            ]
            console.emit({"type": "attempts", "attempts": rows})
            console.show(pages.attempts, rows)
            return 0
        found = app.engine.read(attempt, *parse_attempt(arguments.attempt))
        found["changes"] = diffstat(app, found["attempt"]) if found["bundle"] else []
        now_ms = app.clock.now_ms()
    console.emit({"type": "attempt", **found})
    if arguments.journal:
        console.show(attempt_page.journal, found)
    else:
        console.show(attempt_page.attempt, found, now_ms)
    return 0
