"""A trace in other formats: JSON lines, the Chrome trace format, OTLP/JSON.

Owns the formats that are files. Does not own the names of OpenTelemetry (`otlp`) nor any page.
Invariants: what leaves here was redacted when it was stored; a file appears whole or not at all.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TextIO, assert_never

from holdfast.trace import otlp, read
from holdfast.trace.events import Event
from holdfast.trace.store import to_json

Format = Literal["jsonl", "chrome", "otlp"]


def lines(connection: sqlite3.Connection, format: Format, *, session_id: str = "") -> Iterator[str]:
    """The export line by line, without line ends; one session only if it is named."""
    match format:
        case "jsonl":
            return _json_lines(connection, session_id)
        case "chrome":
            return _chrome(connection, session_id)
        case "otlp":
            return iter([to_json(otlp.request(connection, session_id=session_id))])
    assert_never(format)


def write(lines: Iterable[str], path: Path | None) -> int:
    """Write to a file, through a neighbour that takes its place, or to stdout; counts lines."""
    if path is None:
        return _write(lines, sys.stdout)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as stream:
            count = _write(lines, stream)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return count


def _write(lines: Iterable[str], stream: TextIO) -> int:
    count = 0
    for line in lines:
        stream.write(line + "\n")
        count += 1
    return count


def _json_lines(connection: sqlite3.Connection, session_id: str) -> Iterator[str]:
    for row in read.oldest_first(connection, session_id):
        yield to_json({"type": "session", **row})
    for event in read.events(connection, session_id=session_id):
        yield to_json(event.as_json())


def _chrome(connection: sqlite3.Connection, session_id: str) -> Iterator[str]:
    """Sessions are threads, model and tool calls slices, all else instants; times in µs."""
    yield '{"displayTimeUnit":"ms","traceEvents":['
    threads: dict[str, int] = {}
    rows: list[dict[str, Any]] = []
    for row in read.oldest_first(connection, session_id):
        thread = threads.setdefault(row["session_id"], len(threads) + 1)
        name = {"name": f"{row['agent_name']} {row['session_id']}"}
        rows.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": name})
        if row["end_ts"] is not None:
            rows.append(
                {
                    "ph": "X",
                    "name": row["agent_name"],
                    "pid": 1,
                    "tid": thread,
                    "ts": row["start_ts"] * 1000,
                    "dur": (row["end_ts"] - row["start_ts"]) * 1000,
                    "args": {"task": row["task"], "total_tokens": row["total_tokens"]},
                }
            )
    rows += [
        _chrome_event(event, threads.get(event.session_id, 0))
        for event in read.events(connection, session_id=session_id)
    ]
    for index, item in enumerate(rows):
        yield to_json(item) + ("," if index + 1 < len(rows) else "")
    yield "]}"


def _chrome_event(event: Event, thread: int) -> dict[str, Any]:
    payload = event.payload
    name = payload.get("tool") or payload.get("model") or payload.get("question") or event.kind
    if event.kind == "failure":
        name = payload["error"]["type"]
    item = {"name": name, "cat": event.kind, "pid": 1, "tid": thread, "args": payload}
    if event.kind in ("llm_call", "tool_output"):
        duration_us = payload.get("duration_ms", 0) * 1000
        return {**item, "ph": "X", "ts": event.ts * 1000 - duration_us, "dur": duration_us}
    return {**item, "ph": "i", "s": "t", "ts": event.ts * 1000}
