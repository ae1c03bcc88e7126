"""Links between tasks: what requires, refers to, duplicates or relates to what.

holdfast link                            every link
holdfast link list 7                     incoming and outgoing links, and what blocks it
holdfast link add 7 4 --kind requires    task 7 requires task 4 (kinds: requires, refers, …)
holdfast link remove 7 4 --kind refers
holdfast link schedule 2                 the order in which the tasks of plan 2 may start
"""

from __future__ import annotations

import argparse
from typing import Any, get_args

from holdfast.cli.common import add_place, need_number, opened
from holdfast.cli.console import Console
from holdfast.domain.model import LinkKind


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = ("list", "add", "remove", "schedule")
    parser.add_argument("verb", nargs="?", choices=verbs, default="list")
    parser.add_argument("task", nargs="?", type=int, help="the task's number; a plan's to schedule")
    parser.add_argument("other", nargs="?", type=int, help="the task it points to")
    add_place(parser)
    parser.add_argument(
        "--kind", default="refers", metavar="KIND", help=", ".join(get_args(LinkKind))
    )
    parser.add_argument(
        "--strategy", choices=("dag", "bfs"), default="dag", help="the order of schedule"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.engine.links import all_links, blockers, create_link, delete_link, list_links
    from holdfast.engine.schedule import requires_dag_schedule

    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "list" and arguments.task is None:
            return _list(console, app.engine.read(all_links))
        need_number(arguments.task, "plan" if arguments.verb == "schedule" else "task")
        if arguments.verb == "schedule":
            found = app.engine.read(
                requires_dag_schedule, arguments.task, strategy=arguments.strategy
            )
            console.emit({"type": "schedule", "plan": arguments.task, **found})
            console.say("order: " + " ".join(str(task) for task in found["order"]))
            for task, others in found["blocked"].items():
                console.say(f"  {task} waits for {', '.join(str(other) for other in others)}")
            for cycle in found["cycles"]:
                way = " → ".join(str(task) for task in cycle["loop"])
                first, last = cycle["remove"]
                console.say(
                    f"  a loop: {way}; remove it: link remove {first} {last} --kind requires"
                )
            return 0
        if arguments.verb != "list":
            change = create_link if arguments.verb == "add" else delete_link
            other = need_number(arguments.other, "task")
            app.engine.call(change, arguments.task, other, arguments.kind)
        found = app.engine.read(list_links, arguments.task)
        found["blocked_by"] = app.engine.read(blockers, arguments.task)
    console.emit({"type": "links", "task": arguments.task, **found})
    for way, arrow in (("outgoing", "→"), ("incoming", "←")):
        for link in found[way]:
            console.say(f"{arrow} {link['kind']} {link['task']} {link['key']} ({link['state']})")
    for other in found["blocked_by"]:
        path = " → ".join(str(task) for task in other["path"])
        console.say(f"blocked by {other['key']} ({other['why']}): {path}")
    return 0


def _list(console: Console, found: list[dict[str, Any]]) -> int:
    console.emit({"type": "links", "task": None, "links": found})
    if not found:
        console.say("no task is linked to another; holdfast link add --help")
    for link in found:
        ends = [f"{link[f'{end}_id']} {link[f'{end}_key']}" for end in ("from", "to")]
        console.say(f"{ends[0]} {link['kind']} {ends[1]} ({link['to_state']})")
    return 0
