"""Goals: what was wanted, and what came of it.

holdfast goal                 list them
holdfast goal show 3          plan, tasks, attempts, checks and spend of one
holdfast goal cancel 3        drop it; work that is done stays on its branch
holdfast goal reopen 3        give a failed one another chance; then: holdfast resume 3

Reopening keeps what succeeded and begins what failed afresh, one take each. Where a limit ended it,
give it more: --budget-tokens N or --budget-usd X.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from holdfast.cli import pages
from holdfast.cli.common import add_place, need_number, opened
from holdfast.cli.console import Console
from holdfast.domain.model import Budget

if TYPE_CHECKING:
    from holdfast.app import App

VERBS = ("list", "show", "cancel", "reopen")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=VERBS, default="list")
    parser.add_argument("goal", nargs="?", type=int, help="the goal's number")
    add_place(parser)
    parser.add_argument("--reason", default="", help="why it is reopened; recorded")
    parser.add_argument("--budget-usd", type=float, metavar="X", help="its new limit")
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="its new limit")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.engine import cancel
    from holdfast.engine.listing import goal, goals

    flags = {name: getattr(arguments, name) for name in ("budget_usd", "budget_tokens")}
    with opened(arguments, console, quiet=True, flags=flags) as app:
        if arguments.verb == "list":
            rows = app.engine.read(goals)
            console.emit({"type": "goals", "goals": rows})
            console.show(pages.goals, rows)
            return 0
        number = need_number(arguments.goal, "goal")
        if arguments.verb == "cancel":
            app.engine.call(cancel, number)
        elif arguments.verb == "reopen":
            _reopen(app, number, arguments)
        found = app.engine.read(goal, number)
        console.emit(found)
        console.show(pages.goal, found, app.clock.now_ms())
    return 0


def _reopen(app: App, number: int, arguments: argparse.Namespace) -> None:
    from holdfast.app.goals import policy
    from holdfast.engine import reopen

    policy(app.settings)  # refuses limits that no run could have
    budget = Budget(tokens=arguments.budget_tokens or 0, usd=arguments.budget_usd or 0.0)
    app.engine.call(reopen, number, reason=app.redact(arguments.reason), budget=budget)
