"""The trace file: two tables of SQLite, and the sink that fills them.

Owns the schema (also accepted by Cloudflare D1), identifiers and the writes. Does not own reading
(`read`), which knows only SELECTs, so that it works the same on Holdfast's views of these names.

Life of a write: it joins a queue; the queue is committed at once (or every `buffer` events; a
failure, an opened or closed session never waits) in one transaction with the session's token total.
Invariants: exactly two tables; an event's session exists; `total_tokens` is the sum of its events'
tokens at any moment; ids rise with time within a process and are unique between processes; a file
that cannot be written now never raises and never blocks longer than `BUSY_S`: the queue keeps up to
`QUEUE_MAX` writes for a later call and counts what it had to drop in `lost`. A fork gets its own
connection; the parent's is never touched there.
"""

from __future__ import annotations

import json
import json.encoder
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.trace.events import Event, Session, compact

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS agent_sessions (
  session_id TEXT PRIMARY KEY,
  start_ts INTEGER NOT NULL,
  end_ts INTEGER,
  agent_name TEXT NOT NULL,
  task TEXT NOT NULL DEFAULT '',
  total_tokens INTEGER NOT NULL DEFAULT 0
)""",
    """CREATE TABLE IF NOT EXISTS events (
  id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES agent_sessions (session_id),
  ts INTEGER NOT NULL,
  event_type TEXT NOT NULL CHECK (
    event_type IN ('failure', 'llm_call', 'tool_output', 'git_diff', 'decision')
  ),
  payload TEXT NOT NULL CHECK (json_valid(payload))
)""",
    "CREATE INDEX IF NOT EXISTS events_of_session ON events (session_id, event_type, id)",
    "CREATE INDEX IF NOT EXISTS events_failed ON events (id) WHERE event_type = 'failure'",
)
BUSY_S = 2.0
RETRY_S = 1.0
QUEUE_MAX = 10_000

_OPEN = (
    "INSERT INTO agent_sessions (session_id, start_ts, agent_name, task) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (session_id) DO UPDATE SET agent_name = excluded.agent_name,"
    " task = excluded.task WHERE agent_sessions.agent_name = ''"
)
_ADOPT = "INSERT OR IGNORE INTO agent_sessions (session_id, start_ts, agent_name) VALUES (?, ?, '')"
_CLOSE = "UPDATE agent_sessions SET end_ts = ? WHERE session_id = ? AND end_ts IS NULL"
_EVENT = "INSERT INTO events (id, session_id, ts, event_type, payload) VALUES (?, ?, ?, ?, ?)"
_SPEND = "UPDATE agent_sessions SET total_tokens = total_tokens + ? WHERE session_id = ?"


def _encoder() -> Callable[[Any], str]:
    """`JSONEncoder.encode`, which makes a new encoder in C for each call, with one made once."""
    plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    quote = json.encoder.encode_basestring
    chunks = make(None, plain.default, quote, None, ":", ",", False, False, False)
    return lambda value: "".join(chunks(value, 0))


_ENCODE = _encoder()
Write = tuple[str, tuple[Any, ...]]

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(first + second for first in _DIGITS for second in _DIGITS)


class Ids:
    """Identifiers of 16 characters that sort by time: microseconds, then the process's own part.

    Unique in a process because the time part never stays; between processes by 20 random bits.
    """

    def __init__(self) -> None:
        self._last_us, self._second, self._start = 0, -1, ""
        self._reset()

    def _reset(self) -> None:
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._own = _base32(int.from_bytes(os.urandom(4), "big"), 2)

    def new(self) -> str:
        if os.getpid() != self._pid:  # a fork, in which no other thread runs yet
            self._reset()
        with self._lock:
            self._last_us = now_us = max(self._last_us + 1, time.time_ns() // 1000)
            if now_us >> 20 != self._second:  # the digits that stay for about a second
                self._second = now_us >> 20
                self._start = _base32(self._second, 4)
            start = self._start
        return f"{start}{_PAIRS[now_us >> 10 & 1023]}{_PAIRS[now_us & 1023]}{self._own}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class FileSink:
    """A `Sink` into one file; safe to call from any thread and after a fork.

    `buffer` is how many events may wait in memory; 1 commits each as it comes.
    """

    def __init__(self, path: Path, *, buffer: int = 1) -> None:
        self.path, self.buffer, self.lost = path, max(1, buffer), 0
        self._pid = os.getpid()
        self._reset()
        self._abandoned: list[sqlite3.Connection | None] = []

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._queue: list[Write] = []
        self._waiting = 0
        self._known: set[str] = set()
        self._connection: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        self._retry_at = 0.0
        self._committing = False

    def open_session(self, session: Session) -> None:
        row = (session.session_id, session.start_ts, session.agent_name, session.task)
        with self._own():
            self._known.add(session.session_id)
            self._put([(_OPEN, row)], now=True)

    def close_session(self, session_id: str, end_ts: int) -> None:
        with self._own():
            self._known.discard(session_id)
            self._put([(_CLOSE, (end_ts, session_id))], now=True)

    def write(self, event: Event) -> None:
        text = to_json(compact(event.kind, event.payload))
        writes: list[Write] = [(_EVENT, (event.id, event.session_id, event.ts, event.kind, text))]
        if event.tokens:
            writes.append((_SPEND, (event.tokens, event.session_id)))
        with self._own():
            if event.session_id not in self._known:
                # A session opened elsewhere (another process, a caller's own id).
                self._known.add(event.session_id)
                writes.insert(0, (_ADOPT, (event.session_id, event.ts)))
            self._waiting += 1
            self._put(writes, now=event.kind == "failure" or self._waiting >= self.buffer)

    def flush(self) -> bool:
        """Commit what waits; True when nothing is left waiting. Never raises."""
        with self._own():
            return self._commit()

    def close(self) -> None:
        """Flush and let go of the file; a later write opens it again."""
        with self._own():
            self._retry_at = 0.0
            self._commit()
            if self._connection is not None:
                self._connection.close()
                self._connection = self._cursor = None

    def _own(self) -> threading.RLock:
        """The lock of this process. In a forked child what the parent had is left alone."""
        if self._pid != os.getpid():
            # Closing the inherited connection would disturb the parent's file.
            self._abandoned.append(self._connection)
            self._pid = os.getpid()
            self._reset()
        return self._lock

    def _put(self, writes: list[Write], *, now: bool) -> None:
        if len(self._queue) + len(writes) > QUEUE_MAX:
            self.lost += 1
            return
        self._queue.extend(writes)
        if now:
            self._commit()

    def _commit(self) -> bool:
        queue = self._queue
        if self._committing or not queue or time.monotonic() < self._retry_at:
            return not queue
        # Collected garbage may record while this thread is in here: that joins the queue behind.
        self._committing, size = True, len(queue)
        try:
            execute = (self._cursor or self._connect()).execute
            if size > 1:
                execute("BEGIN IMMEDIATE")
            for statement, values in queue[:size]:
                execute(statement, values)
            if size > 1:
                execute("COMMIT")
        except (sqlite3.Error, OSError, ValueError):
            self._give_up_for_now()
            return False
        finally:
            self._committing = False
        del queue[:size]
        self._waiting = 0
        return not queue

    def _connect(self) -> sqlite3.Cursor:
        self._connection = connect(self.path)
        self._cursor = self._connection.cursor()
        return self._cursor

    def _give_up_for_now(self) -> None:
        self._retry_at = time.monotonic() + RETRY_S
        broken, self._connection, self._cursor = self._connection, None, None
        if broken is not None:
            try:
                broken.close()  # rolls back
            except sqlite3.Error:
                self._abandoned.append(broken)


def connect(path: Path) -> sqlite3.Connection:
    """A writing connection in autocommit with both tables in place. Raises `sqlite3.Error`."""
    connection = sqlite3.connect(
        path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA page_size = 2048")  # a commit rewrites four pages
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        # A kill of the process loses nothing; a power cut may lose the last moments.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        for statement in SCHEMA:
            connection.execute(statement)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def to_json(value: Any) -> str:
    """Compact JSON that is valid everywhere: no NaN, no lone surrogates."""
    text = _ENCODE(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _base32(number: int, pairs: int) -> str:
    """The last digits of a number, two by two."""
    shifts = range(10 * (pairs - 1), -1, -10)
    return "".join([_PAIRS[number >> shift & 1023] for shift in shifts])
