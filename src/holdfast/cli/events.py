"""The log: every transition and every piece of evidence, in order.

holdfast events --goal 3
holdfast events --after 120 --json      JSON lines from a cursor
holdfast events --follow                as they come, until Ctrl-C
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console

if TYPE_CHECKING:
    from holdfast.app import App

PAGE = 500
POLL_S = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--goal", type=int, default=0, metavar="ID", help="only this goal")
    parser.add_argument("--after", type=int, default=0, metavar="SEQ", help="only what came later")
    parser.add_argument("--follow", action="store_true", help="wait for more")


def run(arguments: argparse.Namespace, console: Console) -> int:
    with opened(arguments, console) as app:
        asyncio.run(_stream(app, arguments, console))
    return 0


async def _stream(app: App, arguments: argparse.Namespace, console: Console) -> None:
    from holdfast.engine.outlook import events

    after = arguments.after
    while True:
        page = app.engine.read(events, goal=arguments.goal, after=after, limit=PAGE)
        for event in page:
            after = event["seq"]
            console.emit(event)
            console.say(line(event))
        if page:
            continue
        if not arguments.follow:
            return
        await app.clock.sleep(POLL_S)


def line(event: Mapping[str, Any]) -> str:
    """One event as a line for a person."""
    where = f"{event['task']}.{event['attempt']}" if event["attempt"] else str(event["task"] or "")
    if event["type"] == "transition":
        reason = f" ({event['reason']})" if event.get("reason") else ""
        text = f"{event['machine']} {event['entity']}: {event['source'] or 'new'} "
        text += f"—{event['event']}→ {event['target']}{reason}"
    else:
        known = ("seq", "at_ms", "type", "goal", "task", "attempt")
        text = ", ".join(
            f"{key}={value}"
            for key, value in event.items()
            if key not in known and value is not None
        )
        text = f"{event['type']} {text}"
    return f"{event['seq']:>6} {where:>7} {text}"
