"""Links between tasks: what requires, refers to, duplicates or relates to what.

holdfast link list 7                     incoming and outgoing links, and what blocks it
holdfast link add 7 4 --kind requires    task 7 requires task 4 (kinds: requires, refers, …)
holdfast link remove 7 4 --kind refers
holdfast link schedule 2                 the order in which the tasks of plan 2 may start
"""

from __future__ import annotations

import argparse

from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console
from holdfast.cli.goal import need_number
from holdfast.engine.links import KINDS, blockers, create_link, delete_link, list_links
from holdfast.engine.schedule import requires_dag_schedule


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("list", "add", "remove", "schedule"))
    parser.add_argument("task", type=int, help="the task's number; the plan's for schedule")
    parser.add_argument("other", nargs="?", type=int, help="the task it points to")
    add_place(parser)
    parser.add_argument("--kind", default="refers", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "--strategy", choices=("dag", "bfs"), default="dag", help="the order of schedule"
    )


def run(arguments: argparse.Namespace, console: Console) -> int:
    with opened(arguments, console, quiet=True) as app:
        if arguments.verb == "schedule":
            found = app.engine.read(
                requires_dag_schedule, arguments.task, strategy=arguments.strategy
            )
            if console.json:
                console.emit({"type": "schedule", "plan": arguments.task, **found})
                return 0
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
    if console.json:
        console.emit({"type": "links", "task": arguments.task, **found})
        return 0
    for way in ("outgoing", "incoming"):
        for link in found[way]:
            arrow = "→" if way == "outgoing" else "←"
            console.say(f"{arrow} {link['kind']} {link['task']} {link['key']} ({link['state']})")
    for other in found["blocked_by"]:
        path = " → ".join(str(task) for task in other["path"])
        console.say(f"blocked by {other['key']} ({other['why']}): {path}")
    return 0
