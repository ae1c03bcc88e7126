"""What the trace tests share: a recorder over a real file, its rows, and real child programs."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdfast.trace import read
from holdfast.trace.events import Event
from holdfast.trace.recorder import Level, Recorder
from holdfast.trace.store import FileSink

SOURCE = Path(__file__).parents[1] / "src"


class World:
    """A recorder, its file and a reader that sees everything recorded so far."""

    def __init__(
        self,
        path: Path,
        *,
        secrets: Mapping[str, str] | None = None,
        level: Level = "info",
        parent: str = "",
    ) -> None:
        self.path = path
        self.sink = FileSink(path)
        self.recorder = Recorder(self.sink, lambda: secrets or {}, level=level, parent=parent)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        assert self.sink.flush()
        connection = read.open_file(self.path)
        try:
            yield connection
        finally:
            connection.close()

    def events(self, kind: str = "") -> list[Event]:
        with self.reading() as connection:
            return [event for event in read.events(connection) if kind in ("", event.kind)]

    def sessions(self) -> list[dict[str, Any]]:
        with self.reading() as connection:
            return read.sessions(connection, -1)[::-1]

    def close(self) -> None:
        for session_id in self.recorder.sessions.left_open():
            self.recorder.end_session(session_id)
        self.sink.close()


def program(
    directory: Path,
    text: str,
    *arguments: str,
    traced: bool = True,
    via: tuple[str, ...] = ("-m", "holdfast.trace", "run"),
    environ: Mapping[str, str] | None = None,
    measured: bool = True,
    main: tuple[str, ...] = ("app.py",),
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """Run a script of this text in a directory, traced into `agentlog.db` there or not."""
    script = directory / "app.py"
    script.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, *(via if traced else ()), *main, *arguments],
        cwd=directory,
        env=environment(environ, traced=traced, measured=measured and traced),
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


def environment(
    more: Mapping[str, str] | None = None, *, traced: bool = True, measured: bool = True
) -> dict[str, str]:
    """A small environment for child programs; coverage goes on in them if `measured`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME", "TMPDIR", "LANG") or (measured and name.startswith("COV"))
    }
    switch = {"AGENTLOG": "true"} if traced else {}
    return {**kept, "PYTHONPATH": str(SOURCE), **switch, **(more or {})}


def rows(path: Path) -> tuple[list[dict[str, Any]], list[Event]]:
    """Sessions and events of a file, oldest first."""
    connection = read.open_file(path)
    try:
        return read.sessions(connection, -1)[::-1], list(read.events(connection))
    finally:
        connection.close()


def everything(path: Path) -> str:
    """Every byte of a trace file and its neighbours, as text that a search can go through."""
    return "\n".join(
        part.read_bytes().decode("utf-8", "backslashreplace")
        for part in sorted(path.parent.glob(path.name + "*"))
    )


def lines(output: bytes | str) -> list[dict[str, Any]]:
    text = output.decode() if isinstance(output, bytes) else output
    return [json.loads(line) for line in text.splitlines()]
