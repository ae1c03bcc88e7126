"""Goals: what was wanted, and what came of it.

holdfast goal                 list them
holdfast goal show 3          plan, tasks, attempts, checks and spend of one
holdfast goal cancel 3        drop it; work that is done stays on its branch
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from typing import Any

from holdfast.cli.common import add_place, opened
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
            if console.json:
                console.emit({"type": "goals", "goals": rows})
            for row in rows:
                undone = ", undone" if row["undone"] else ""
                console.say(f"{row['goal']:>4} {row['state']}{undone:<8} {row['text'][:70]}")
            return 0
        number = need_number(arguments.goal, "goal")
        if arguments.verb == "cancel":
            app.engine.call(cancel, number)
        found = app.engine.read(goal, number)
        if console.json:
            console.emit(found)
        else:
            _tell(console, found)
    return 0


def need_number(value: int | None, noun: str) -> int:
    """The number that a verb needs, or a refusal that says how to give it."""
    from holdfast.errors import Refused

    if value is None:
        raise Refused(f"which {noun}?", hint=f"holdfast {noun} list shows their numbers")
    return value


def _tell(console: Console, found: Mapping[str, Any]) -> None:
    spent = found["usage"]
    money = "unknown price" if spent["cost_usd"] is None else f"${spent['cost_usd']:.4f}"
    console.say(f"goal {found['goal']}: {found['text']}")
    console.say(f"  {found['state']} ({found['outcome']}), {spent['tokens']} tokens, {money}")
    console.say(f"  branch {found['branch']} from {found['base_commit'][:12] or 'nothing'}")
    for plan in found["plans"]:
        console.say(f"  plan {plan['revision']} ({plan['source']}): {plan['state']}")
        for task in plan["tasks"]:
            console.say(f"    {task['task']:>3} {task['key']}: {task['state']} {task['reason']}")
            for other in task["blocked_by"]:
                console.say(f"        blocked by {other['key']}, which is {other['state']}")
            for attempt in task["attempts"]:
                console.say("        " + attempt_line(attempt))
    for check in found["checks"]:
        console.say(f"  check {check['verdict']}: {check['command']} ({check['task']})")


def attempt_line(attempt: Mapping[str, Any]) -> str:
    """An attempt in one line."""
    when = time.strftime("%H:%M:%S", time.localtime(attempt["started_ms"] / 1000))
    took = (attempt["ended_ms"] or attempt["started_ms"]) - attempt["started_ms"]
    end = attempt["outcome"] or attempt["state"]
    why = f": {attempt['detail'].splitlines()[0][:120]}" if attempt["detail"] else ""
    return (
        f"{attempt['attempt']} {when} {took / 1000:.1f} s {end}, "
        f"{attempt['steps']} steps, {attempt['tokens']} tokens{why}"
    )
