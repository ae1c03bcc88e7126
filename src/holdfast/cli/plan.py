"""Plans: numbered revisions of a goal's task graph.

holdfast plan --goal 3          list them
holdfast plan show 4            tasks, requirements and states
holdfast plan export 4          as a file that --plan reads
holdfast plan pause 4           stop before the next effect; open attempts end as interrupted
holdfast plan resume 4          let it go on; then: holdfast resume
"""

from __future__ import annotations

import argparse
import json

from holdfast.adapters.plan_file import plan_document
from holdfast.cli import pages
from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console
from holdfast.cli.goal import need_number
from holdfast.engine import pause, resume
from holdfast.engine.listing import plan, plan_specs, plans


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = ("list", "show", "export", "pause", "resume")
    parser.add_argument("verb", nargs="?", choices=verbs, default="list")
    parser.add_argument("plan", nargs="?", type=int, help="the plan's number")
    add_place(parser)
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="only this goal's")


def run(arguments: argparse.Namespace, console: Console) -> int:
    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list":
            rows = app.engine.read(plans, arguments.goal)
            if console.json:
                console.emit({"type": "plans", "plans": rows})
            else:
                console.show(pages.plans(console.page(), rows))
            return 0
        number = need_number(arguments.plan, "plan")
        found = app.engine.read(plan, number)
        if arguments.verb == "export":
            document = plan_document(app.engine.read(plan_specs, number))
            if console.json:
                console.emit(document)
            console.say(json.dumps(document, indent=2, ensure_ascii=False))
            return 0
        if arguments.verb != "show":
            app.engine.call(pause if arguments.verb == "pause" else resume, found["goal"])
            found = app.engine.read(plan, number)
    if console.json:
        console.emit({"type": "plan", **found})
        return 0
    console.show(pages.plan(console.page(), found))
    return 0
