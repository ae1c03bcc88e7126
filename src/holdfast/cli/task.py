"""Tasks: the smallest units of work, with their contracts.

holdfast task --goal 3                         list them
holdfast task show 7                           contract, state, what blocks it, attempts
holdfast task force 7 --ignore 6 --reason "…"  let it start without one of its requirements
"""

from __future__ import annotations

import argparse

from holdfast.cli import pages
from holdfast.cli.common import add_place, need_number, opened
from holdfast.cli.console import Console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "show", "force"), default="list")
    parser.add_argument("task", nargs="?", type=int, help="the task's number")
    add_place(parser)
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="only this goal's")
    parser.add_argument("--ignore", type=int, metavar="TASK", help="the requirement to ignore")
    parser.add_argument("--reason", default="", help="why it may be ignored; recorded")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.engine import force
    from holdfast.engine.listing import task_row, tasks

    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list":
            rows = app.engine.read(tasks, arguments.goal)
            console.emit({"type": "tasks", "tasks": rows})
            console.show(pages.tasks, rows)
            return 0
        number = need_number(arguments.task, "task")
        if arguments.verb == "force":
            ignored = need_number(arguments.ignore, "task")
            app.engine.call(force, number, ignored, reason=app.redact(arguments.reason))
        found = app.engine.read(task_row, number)
    console.emit({"type": "task", **found})
    console.show(pages.task, found)
    return 0
