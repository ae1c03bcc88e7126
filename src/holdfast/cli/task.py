"""Tasks: the smallest units of work, with their contracts.

holdfast task --goal 3                         list them
holdfast task show 7                           contract, state, what blocks it, attempts
holdfast task force 7 --ignore 6 --reason "…"  let it start without one of its requirements
"""

from __future__ import annotations

import argparse

from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console
from holdfast.cli.goal import attempt_line, need_number
from holdfast.engine import force
from holdfast.engine.listing import task_row, tasks


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "show", "force"), default="list")
    parser.add_argument("task", nargs="?", type=int, help="the task's number")
    add_place(parser)
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="only this goal's")
    parser.add_argument("--ignore", type=int, metavar="TASK", help="the requirement to ignore")
    parser.add_argument("--reason", default="", help="why it may be ignored; recorded")


def run(arguments: argparse.Namespace, console: Console) -> int:
    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list":
            rows = app.engine.read(tasks, arguments.goal)
            if console.json:
                console.emit({"type": "tasks", "tasks": rows})
            for row in rows:
                console.say(f"{row['task']:>4} {row['state']:<10} {row['key']}: {row['title']}")
            return 0
        number = need_number(arguments.task, "task")
        if arguments.verb == "force":
            ignored = need_number(arguments.ignore, "task")
            app.engine.call(force, number, ignored, reason=app.redact(arguments.reason))
        found = app.engine.read(task_row, number)
    if console.json:
        console.emit({"type": "task", **found})
        return 0
    console.say(f"task {found['task']} of goal {found['goal']}: {found['title']}")
    console.say(f"  {found['kind']}, {found['state']} {found['reason']}")
    for other in found["blocked_by"]:
        console.say(f"  blocked by {other['key']} ({other['task']}), which is {other['state']}")
    limits = f"{found['policy']['max_turns']} turns, {found['policy']['attempt_s']:g} s"
    console.say(f"  tier {found['tier']} ({limits}), priority {found['priority']}")
    console.say(f"  the heuristic says {found['tier_guess']}: {found['tier_reason']}")
    for clause in ("precondition", "check", "postcondition"):
        for line in found[f"{clause}s"]:
            console.say(f"  {clause} {line}")
    for name, source in found["inputs"].items():
        console.say(f"  input {name} = {source}")
    if found["effects"] is not None:
        console.say(f"  effects {', '.join(found['effects']) or 'nothing'}")
    for attempt in found["attempts"]:
        console.say("  " + attempt_line(attempt))
    return 0
