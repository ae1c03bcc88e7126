"""Replay an attempt from its record, offline, and compare it byte for byte.

  holdfast replay 1.1

No model, tool, clock or network is used. Exit code 0 when everything is equal, 1 at the first
divergence, which is named by step, field and byte.
"""

from __future__ import annotations

import argparse
import asyncio

import msgspec

from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("attempt", help="TASK.NUMBER, such as 1.1")
    add_place(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.adapters.tools import check_arguments
    from holdfast.agent.replay import replay
    from holdfast.engine.attempts import attempt_record

    with opened(arguments, console, quiet=True) as app:
        record = app.engine.read(attempt_record, arguments.attempt, verify=False)
        found = asyncio.run(replay(record, problems=check_arguments))
    console.emit({"type": "replay", **msgspec.to_builtins(found)})
    if found.equal:
        console.say(
            f"attempt {found.attempt}: {found.compared} steps replayed, all equal; "
            f"it ended {found.outcome}"
        )
    if found.difference is not None:
        first = found.difference
        console.say(f"attempt {found.attempt} diverges after {found.compared} equal steps")
        byte = first.byte if first.byte >= 0 else "unknown: nothing but its hash tells"
        console.say(f"  step {first.step}, field {first.field}, byte {byte}")
        console.say(f"  {first.detail}")
    return 0 if found.equal else 1
