"""Goals: what was wanted, and what came of it.

holdfast goal                 list them
holdfast goal show 3          plan, tasks, attempts, checks and spend of one
holdfast goal cancel 3        drop it; work that is done stays on its branch
"""

from __future__ import annotations

import argparse

from holdfast.cli import pages
from holdfast.cli.common import add_place, need_number, opened
from holdfast.cli.console import Console
from holdfast.engine import cancel
from holdfast.engine.listing import goal, goals


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "show", "cancel"), default="list")
    parser.add_argument("goal", nargs="?", type=int, help="the goal's number")
    add_place(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list":
            rows = app.engine.read(goals)
            console.emit({"type": "goals", "goals": rows})
            console.show(pages.goals, rows)
            return 0
        number = need_number(arguments.goal, "goal")
        if arguments.verb == "cancel":
            app.engine.call(cancel, number)
        found = app.engine.read(goal, number)
        console.emit(found)
        console.show(pages.goal, found, app.clock.now_ms())
    return 0
