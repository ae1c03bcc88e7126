"""Approvals: tasks and plans that wait for a person, and the answers.

  holdfast approval                       what waits, with the evidence
  holdfast plan approve 4                 let a proposed plan run
  holdfast approval answer 7 redo         it did not happen: do it again
  holdfast approval answer 7 "it is done: the mail went out at 10:02"

An irreversible step that was started but never seen to finish is never repeated by itself. Your
answer is recorded in the journal; then `holdfast resume` goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.cli.common import add_place, need_number, opened
from holdfast.cli.console import Console
from holdfast.errors import Refused


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=("list", "answer"), default="list")
    parser.add_argument("task", nargs="?", type=int, help="the waiting task's number")
    parser.add_argument("answer", nargs="?", default="", help="redo, or what happened")
    add_place(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.engine import signal
    from holdfast.engine.listing import plans, waiting

    with opened(arguments, console, quiet=True) as app:
        rows = app.engine.read(waiting)
        if arguments.verb == "list":
            proposed = [one for one in app.engine.read(plans) if one["state"] == "proposed"]
            _list(console, rows, proposed)
            return 0
        number = need_number(arguments.task, "task")
        found = next((row for row in rows if row["task"] == number), None)
        if found is None:
            raise Refused(f"task {number} does not wait for an answer")
        if not arguments.answer.strip():
            raise Refused("what is the answer?", hint='"redo", or say what happened')
        key = f"{found['step']}/answer#{found['generation']}"
        app.engine.call(signal, number, key, app.redact(arguments.answer.strip()))
    console.emit({"type": "answered", "task": number, "goal": found["goal"]})
    console.say(f"recorded; go on with: holdfast resume {found['goal']}")
    return 0


def _list(
    console: Console, tasks: Sequence[Mapping[str, Any]], proposed: Sequence[Mapping[str, Any]]
) -> None:
    console.emit({"type": "approvals", "approvals": tasks, "plans": proposed})
    for task in tasks:
        console.say(f"task {task['task']} (goal {task['goal']}): {task['title']}")
        console.say(f"  {task['reason']}: {task['evidence']}")
    for plan in proposed:
        count = len(plan["tasks"])
        console.say(f"plan {plan['plan']} (goal {plan['goal']}): {count} tasks are proposed")
        console.say(f"  read it: holdfast plan show {plan['plan']}")
    if not tasks and not proposed:
        console.say("nothing waits for a person")
