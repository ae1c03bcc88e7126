"""Plans: numbered revisions of a goal's task graph.

holdfast plan --goal 3                        list them
holdfast plan show 4                          tasks, requirements, checks and states
holdfast plan export 4                        as a file that --plan and `plan create` read
holdfast plan approve 4                       let a proposed plan run; then: holdfast resume
holdfast plan reject 4 --reason "…"           ask the model again, told why; then: holdfast resume
holdfast plan create --goal 3 --file p.json   your own plan, instead of the proposed one
holdfast plan pause 4                         stop before the next effect; attempts are interrupted
holdfast plan resume 4                        let it go on; then: holdfast resume
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli import pages
from holdfast.cli.common import add_place, need_number, opened
from holdfast.cli.console import Console
from holdfast.errors import Refused

if TYPE_CHECKING:
    from holdfast.app import App

VERBS = ("list", "show", "export", "create", "approve", "reject", "pause", "resume")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", choices=VERBS, default="list")
    parser.add_argument("plan", nargs="?", type=int, help="the plan's number")
    add_place(parser)
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="only this goal's")
    parser.add_argument("--file", type=Path, metavar="FILE", help="the plan to create")
    parser.add_argument("--review", action="store_true", help="create it proposed, not approved")
    parser.add_argument(
        "--check",
        action="append",
        default=[],
        metavar="CMD",
        help="proves the created plan's whole",
    )
    parser.add_argument("--reason", default="", help="why it is rejected; the planner is told")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.adapters.plan_file import plan_document
    from holdfast.engine import approve, pause, reject, resume
    from holdfast.engine.listing import plan, plan_specs, plans

    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list":
            rows = app.engine.read(plans, arguments.goal)
            console.emit({"type": "plans", "plans": rows})
            console.show(pages.plans, rows)
            return 0
        if arguments.verb == "create":
            number = _create(app, arguments)
        else:
            number = need_number(arguments.plan, "plan")
        found = app.engine.read(plan, number)
        match arguments.verb:
            case "export":
                document = plan_document(app.engine.read(plan_specs, number))
                console.emit(document)
                console.say(json.dumps(document, indent=2, ensure_ascii=False))
                return 0
            case "approve":
                app.engine.call(approve, number)
            case "reject":
                app.engine.call(reject, number, reason=app.redact(arguments.reason))
            case "pause":
                app.engine.call(pause, found["goal"])
            case "resume":
                app.engine.call(resume, found["goal"])
        found = app.engine.read(plan, number)
    console.emit({"type": "plan", **found})
    console.show(pages.plan, found)
    return 0


def _create(app: App, arguments: argparse.Namespace) -> int:
    from holdfast.app.goals import Wish, create_plan, policy

    if not arguments.goal or arguments.file is None:
        raise Refused("which goal, and which plan?", hint="plan create --goal 3 --file plan.json")
    wish = Wish(
        text="",
        repo=Path(arguments.repo),
        checks=tuple(arguments.check),
        policy=policy(app.settings),
        review=arguments.review,
    )
    return create_plan(app, arguments.goal, arguments.file, wish)
