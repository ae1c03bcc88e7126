"""What `AGENTLOG=true` turns on in a process: the file, the recorder, the hooks, the end.

Owns reading the environment into one recorder and undoing it. Does not own any of the parts.
Invariant: a setting that makes no sense falls back to its default, because a trace must not be the
reason that a program does not start.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

from holdfast.trace.hooks import Hooks
from holdfast.trace.read import open_file
from holdfast.trace.recorder import Level, Recorder
from holdfast.trace.redact import from_environment
from holdfast.trace.store import FileSink

DEFAULT_FILE = "agentlog.db"


def file_of(environ: Mapping[str, str]) -> Path:
    """The trace file; absolute where the current directory still exists."""
    path = Path(environ.get("AGENTLOG_FILE") or DEFAULT_FILE)
    try:
        return path.absolute()
    except OSError:
        return path


class Switch:
    """The parts of one process that is traced."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.path = file_of(environ)
        self.sink = FileSink(self.path, buffer=_number(environ.get("AGENTLOG_BUFFER_SIZE", "")))
        self.recorder = Recorder(
            self.sink,
            lambda: from_environment(environ),
            level=_level(environ.get("AGENTLOG_LEVEL", "")),
            parent=environ.get("AGENTLOG_PARENT_SESSION", ""),
            entered=lambda: self.hooks.entered(),
        )
        self.hooks = Hooks(self.recorder.failure, self.recorder.sessions.current, self.at_exit)
        self._pid = os.getpid()

    def turn_on(self) -> None:
        self.hooks.install()
        atexit.register(self.at_exit)

    def turn_off(self) -> None:
        atexit.unregister(self.at_exit)
        self.hooks.uninstall()
        self.at_exit()

    def at_exit(self) -> None:
        self.recorder.finish()
        self.sink.close()

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """A reading connection that sees everything recorded so far."""
        self.sink.flush()
        connection = open_file(self.path)
        try:
            yield connection
        finally:
            connection.close()


def _level(text: str) -> Level:
    for level in get_args(Level):
        if text.strip().lower() == level:
            return level  # type: ignore[no-any-return]  # one of the literals
    return "info"


def _number(text: str) -> int:
    return int(text) if text.strip().isdecimal() else 1
