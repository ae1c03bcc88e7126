"""What this machine and this store can do: programs, the wall around commands, model, store.

  holdfast doctor
  holdfast doctor --model ollama:qwen3:8b --json

Reads the whole store. Exit code 0 when nothing is a problem, 1 otherwise.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console


def configure(parser: argparse.ArgumentParser) -> None:
    add_place(parser)
    parser.add_argument("--model", metavar="P:M", help="a model to try")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.app.doctor import examine

    flags = {"model": arguments.model}
    with opened(arguments, console, must_exist=False, flags=flags, quiet=True) as app:
        found = examine(app, Path(arguments.repo).expanduser())
    worst = any(finding["level"] == "problem" for finding in found)
    console.emit({"type": "doctor", "healthy": not worst, "findings": found})
    for finding in found:
        console.say(f"{finding['level']:<8} {finding['name']:<11} {finding['text']}")
        if finding["remedy"]:
            console.say(f"{'':<20} → {finding['remedy']}")
        for seen in finding.get("readable", ()):
            masked = f" without {', '.join(seen['masked'])}" if "masked" in seen else ""
            console.say(f"{'':<20} sees {seen['path']} ({seen['reason']}){masked}")
        for left in finding.get("left_out", ()):
            console.say(f"{'':<20} left out {left['path']}: {left['reason']}")
    return 1 if worst else 0
