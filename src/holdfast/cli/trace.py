"""Evidence for agents: sessions, events, failures and what to make of them.

The verbs of `python -m holdfast.trace`, over `--file`, else AGENTLOG_FILE, else the store of this
repository, whose attempts are sessions, else agentlog.db:

  holdfast trace sessions
  holdfast trace context --tokens 800
  holdfast trace export --help
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from holdfast.cli.console import Console
from holdfast.trace import commands


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the trace engine."""
    commands.configure(parser)


def run(arguments: argparse.Namespace, console: Console) -> int:
    """Run one verb; returns the exit code."""
    if arguments.file is None and not os.environ.get("AGENTLOG_FILE"):
        arguments.file = _store()
    return commands.run(arguments, console)


def _store() -> Path | None:
    """The store of this repository, where there is one: its views are the trace's two names."""
    from holdfast.app import STORE_NAME
    from holdfast.app.goals import home_for
    from holdfast.config import load

    here = Path()
    store = home_for(here, load(here).home) / STORE_NAME
    return store if store.exists() else None
