"""Evidence for agents: sessions, events, failures and what to make of them.

The verbs of `python -m holdfast.trace`, over the trace of this machine or `--file`.
"""

from __future__ import annotations

import argparse

from holdfast.cli.console import Console
from holdfast.trace import commands


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the trace engine."""
    commands.configure(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run one verb; returns the exit code."""
    return commands.run(arguments, console)
