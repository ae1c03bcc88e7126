"""Attempts: numbered tries of a task, each with its journal.

holdfast attempt --goal 3      list them
holdfast attempt show 7.2      the journal: every step with its request and result
"""

from __future__ import annotations

import argparse
import json

from holdfast.cli.common import add_place, opened, usage_line
from holdfast.cli.console import Console
from holdfast.cli.goal import attempt_line
from holdfast.engine.listing import attempt, tasks
from holdfast.engine.record import parse_attempt

SHOWN_CHARS = 160


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "show"), default="list")
    parser.add_argument("attempt", nargs="?", default="", help="TASK.NUMBER")
    add_place(parser)
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="only this goal's")


def run(arguments: argparse.Namespace, console: Console) -> int:
    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list":
            rows = [
                one for task in app.engine.read(tasks, arguments.goal) for one in task["attempts"]
            ]
            if console.json:
                console.emit({"type": "attempts", "attempts": rows})
            for row in rows:
                console.say(attempt_line(row))
            return 0
        found = app.engine.read(attempt, *parse_attempt(arguments.attempt))
    if console.json:
        console.emit({"type": "attempt", **found})
        return 0
    console.say(attempt_line(found))
    console.say(f"  {found['model']}, take {found['take']}, worker {found['worker']}")
    console.say(f"  {usage_line(found)}")
    for step in found["journal"]:
        console.say(f"  {step['key']} ({step['kind']}, {step['effect']}) {step['state']}")
        console.say(f"    asked {_short(step['request'])}")
        console.say(f"    gave  {_short(step['result'])}")
    return 0


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
