"""Go on with what was interrupted, at the first step that is missing.

  holdfast resume        every goal that can go on
  holdfast resume 3      goal 3
  holdfast resume --slots 2

No recorded model call or tool call happens again. Exit codes are those of `holdfast run`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from holdfast.cli.common import add_place, opened, show_result, watching
from holdfast.cli.console import Console

NOTHING: Mapping[str, object] = {
    "type": "result",
    "goal": None,
    "state": None,
    "outcome": None,
    "branch": None,
    "checks": [],
    "usage": {"tokens": 0, "cost_usd": 0.0},
    "attempts": 0,
    "resumed": False,
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("goal", nargs="?", type=int, help="the goal's number (default: all)")
    parser.add_argument("--slots", type=int, metavar="N", help="tasks at the same time")
    add_place(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.app.goals import EXIT, policy, resumable, work

    with opened(arguments, console, flags={"slots": arguments.slots}) as app:
        policy(app.settings)  # refuses settings that no run could have
        goals = [arguments.goal] if arguments.goal else app.engine.read(resumable)
        if not goals:
            console.say("nothing to resume")
            console.emit(NOTHING)
            return 0
        codes = []
        for goal in goals:
            with watching(app, goal):
                result = work(app, goal, resumed=True)
            show_result(console, result)
            codes.append(EXIT[result["outcome"]])
        return max(codes)
