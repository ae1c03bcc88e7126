"""Why is it so: which goal, task, attempt, prompt, bundle, model and cost wrote a line.

holdfast why src/app.py:12        a line, on the newest goal's branch
holdfast why src/app.py:12 --goal 3
holdfast why 4.2                  an attempt: what it was given, did and cost
holdfast why 4.2 --tokens 800     its evidence as text for an agent, within a budget
holdfast why failed --tokens 800  the latest failure, the same way
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli import look
from holdfast.cli.common import add_place, opened, usage_line
from holdfast.cli.console import Console

if TYPE_CHECKING:
    from holdfast.app import App

DEFAULT_TOKENS = 800


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", help="PATH:LINE, or an attempt such as 4.2")
    add_place(parser)
    parser.add_argument(
        "--tokens", type=int, metavar="N", help="evidence as text, in at most N tokens (from 100)"
    )
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="whose branch to read")
    parser.add_argument("--rev", default="", help="read this revision instead of the branch")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.app.why import why_attempt, why_line

    with opened(arguments, console, quiet=True) as app:
        if arguments.tokens or arguments.what == "failed":
            return _evidence(app, arguments, console)
        if re.fullmatch(r"\d+\.\d+", arguments.what):
            found = why_attempt(app, arguments.what)
        else:
            path, line = _place(arguments.what)
            found = why_line(app, path, line, goal=arguments.goal, rev=arguments.rev)
    console.emit({"type": "why", **found})
    _tell(console, found)
    return 0


def _evidence(app: App, arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.app.why import for_an_agent, why_line

    what, tokens = arguments.what, arguments.tokens or DEFAULT_TOKENS
    if what != "failed" and not re.fullmatch(r"\d+\.\d+", what):
        path, line = _place(what)
        found = why_line(app, path, line, goal=arguments.goal, rev=arguments.rev)
        what = found["attempt"] or "failed"
    text = for_an_agent(app, "" if what == "failed" else what, tokens)
    console.emit({"type": "evidence", "attempt": what, "tokens": tokens, "text": text})
    console.say(text)
    return 0


def _place(what: str) -> tuple[str, int]:
    """PATH:LINE, or PATH for its first line."""
    path, _, line = what.rpartition(":")
    return (path, int(line)) if path and line.isdigit() else (what, 1)


def _tell(console: Console, found: Mapping[str, Any]) -> None:
    if "path" in found:
        console.say(f"{found['path']}:{found['line']}  {found['text']}")
        console.say(f"  commit   {found['commit'][:12]}")
    if found["attempt"] is None:
        console.say(f"  {found['note']}")
        return
    spent = found["usage"]
    money = "unknown price" if spent["cost_usd"] is None else f"${spent['cost_usd']:.6f}"
    console.say(f"  goal     {found['goal']}: {found['goal_text']}")
    console.say(f"  task     {found['task']}: {found['task_title']}")
    step = f", step {found['step']}" if found.get("step") else ""
    console.say(f"  attempt  {found['attempt']} ({found['outcome']}){step}")
    console.say(f"  prompt   {found['prompt']}")
    console.say(
        f"  bundle   {found['bundle'][:12]}, {look.count(len(found['bundle_items']), 'item')}"
    )
    console.say(f"  model    {found['model']}, seed {found['seed']}")
    console.say(f"  cost     {spent['tokens']} tokens, {money}")
    if spent["tokens_cached"]:
        console.say(f"  cache    {usage_line(spent)}")
    for check in found["checks"]:
        note = f" ({check['note']})" if check["note"] else ""
        console.say(f"  check    {check['verdict']}: {check['command']}{note}")
    for item in found["bundle_items"]:
        console.say(
            f"    {item['fate']:<5} {item['tokens']:>6} {item['source']} ({item['reason']})"
        )
    for move in found.get("moves", ()):
        console.say(f"    moved from {move['source']} to {move['target']}: {move['reason']}")
    for step in found.get("steps", ()):
        console.say(f"    {step['state']:<8} {step['key']} by {step['attempt']}")
