"""Evidence for agents: sessions, events, failures and what to make of them.

The verbs of `python -m holdfast.trace`, over `--file`, else AGENTLOG_FILE, else the store of this
repository, whose attempts are sessions, else agentlog.db:

  holdfast trace sessions
  holdfast trace events --type failure     the incidents
  holdfast trace why 42                    one of them: error, last output, diff, decision
  holdfast trace context --tokens 800      the newest, as an agent's next context
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
    if arguments.file is not None or os.environ.get("AGENTLOG_FILE"):
        return commands.run(arguments, console)
    from holdfast.app import STORE_NAME, build
    from holdfast.app.evidence import StepTexts
    from holdfast.app.goals import home_for
    from holdfast.config import load

    settings = load(Path())
    home = home_for(Path(), settings.home)
    if not (home / STORE_NAME).exists():
        return commands.run(arguments, console)
    arguments.file = home / STORE_NAME  # its views have the trace's two names
    app = build(settings, home=home)
    try:
        return commands.run(arguments, console, step=StepTexts(app))
    finally:
        app.close()
