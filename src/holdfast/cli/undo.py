"""Undo a goal: walk its work back step by step, each tree checked by its hash.

  holdfast undo 3 --dry-run     what it would walk back
  holdfast undo 3

The goal's branch then holds the tree it began with; its history stays. Refused, naming the file,
when someone changed the branch since. Killed in its middle, it finishes when called again.
"""

from __future__ import annotations

import argparse

from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("goal", type=int, help="the goal's number")
    add_place(parser)
    parser.add_argument("--dry-run", action="store_true", help="only say what would happen")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.app.undo import undo, what_if

    with opened(arguments, console) as app:
        found = what_if(app, arguments.goal) if arguments.dry_run else undo(app, arguments.goal)
    console.emit(found)
    if arguments.dry_run:
        console.say(f"would undo, in this order: {', '.join(found['tasks']) or 'nothing'}")
        for name in found["files"]:
            console.say(f"  {name}")
        return 0
    equal = "equals" if found["tree_equal"] else "DIFFERS FROM"
    console.say(f"goal {found['goal']} undone: {found['undone']}")
    console.say(f"tree {found['tree'][:12]} {equal} the tree it began with")
    return 0 if found["tree_equal"] else 1
