"""The demo's own worker process: runs or resumes the demo goal, and may kill itself on the way.

Started as `python -m holdfast.cli.demo_child FOLDER KILL_AT`. It counts every tool call that is
really performed by appending to a file outside the workspace, and sends itself SIGKILL when the
KILL_AT-th effect has been intended (0: never), just before it is performed. Owns nothing else: the
work is done by the same app as `holdfast run`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.adapters.tools import builtin_tools
from holdfast.app import HOME_NAME, App, build
from holdfast.app.goals import Wish, resumable, start, work
from holdfast.cli.common import Lines
from holdfast.cli.console import Console
from holdfast.config import Settings
from holdfast.domain.ports import Observation, Tool, ToolSpec, Workspace
from holdfast.errors import HoldfastError

MODEL = "ollama:scripted"


class Counted:
    """A tool that writes down each call it really performs, then performs it."""

    def __init__(self, tool: Tool, log: Path) -> None:
        self._tool, self._log = tool, log

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation:
        line = json.dumps([workspace.root.parent.name, self.spec.name, dict(arguments)])
        handle = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line.encode() + b"\n")
        finally:
            os.close(handle)
        return await self._tool.call(arguments, workspace)


class Killer:
    """Sends SIGKILL to its own process at the n-th intended effect; 0 never does."""

    def __init__(self, at: int) -> None:
        self._at, self._seen = at, 0

    def __call__(self, boundary: str, key: str) -> None:
        self._seen += boundary == "after_intend"
        if boundary == "after_intend" and self._seen == self._at:
            sys.stderr.write(f"  SIGKILL to process {os.getpid()} at {key}\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: Path, kill_at: int) -> int:
    console = Console(json=True)
    try:
        app = _build(folder, kill_at, console)
        try:
            goals = app.engine.read(resumable)
            goal = goals[0] if goals else asyncio.run(start(app, _wish(folder)))
            console.emit(work(app, goal, resumed=bool(goals)))
        finally:
            app.close()
    except HoldfastError as error:
        return console.refuse(error.message, hint=error.hint, code=error.code, exit_code=2)
    return 0


def _build(folder: Path, kill_at: int, console: Console) -> App:
    log = folder / "tool-calls.log"
    tools = builtin_tools(redact=str)
    return build(
        Settings(model=MODEL),
        home=folder / "repo" / HOME_NAME,
        sink=Lines(console),
        probe=Killer(kill_at),
        tools={name: Counted(tool, log) for name, tool in tools.items()},
    )


def _wish(folder: Path) -> Wish:
    return Wish(
        text="Make prices usable",
        repo=folder / "repo",
        model=MODEL,
        plan=folder / "plan.toml",
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
