"""Reading a trace: SELECTs on `agent_sessions` and `events`, and nothing else.

Owns every query, so that the same SQL works on the two tables and on Holdfast's views of the same
names. Does not own what is made of the rows (`report`, `export`). Invariants: `id` is the only
order; payloads come back under readable keys; nothing writes.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.trace.events import KINDS, Event, Kind, readable

SessionRow = dict[str, Any]
_SESSION = "session_id, start_ts, end_ts, agent_name, task, total_tokens"
_EVENT = "id, session_id, ts, event_type, payload"


def _field(short: str) -> str:
    return f"json_extract(payload, '$.{short}')"


def _sum(short: str) -> str:
    return f"coalesce(sum({_field(short)}), 0)"


# What is summed over the model calls of one model, from their short keys.
_SUMS = {
    "calls": "count(*)",
    "unknown_calls": f"count(*) - count({_field('i')} + {_field('o')})",
    "estimated_calls": f"count({_field('s')})",
    "tokens_in": _sum("i"),
    "tokens_out": _sum("o"),
    "tokens_cached": _sum("k"),
    "tokens_reasoning": _sum("t"),
    "tokens_total": f"{_sum('i')} + {_sum('o')}",
    "cost_nusd": _sum("n"),
    "unpriced_calls": f"count(*) - count({_field('n')})",
}


def open_file(path: Path) -> sqlite3.Connection:
    """A connection that only reads. Raises `sqlite3.OperationalError` if there is no file.

    Opened for writing, so that the neighbours of a killed writer are tidied up, and then forbidden.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=5.0)
    connection.execute("PRAGMA query_only = ON")
    return connection


def sessions(connection: sqlite3.Connection, limit: int = 50) -> list[SessionRow]:
    """The newest sessions, newest first."""
    tail = "ORDER BY start_ts DESC, session_id DESC LIMIT ?"
    return list(map(_session, _select(connection, _SESSION, tail, (limit,))))


def oldest_first(connection: sqlite3.Connection, session_id: str = "") -> list[SessionRow]:
    """All sessions, or the one that is named."""
    rows = sessions(connection, -1)[::-1]
    return [row for row in rows if session_id in ("", row["session_id"])]


def session(connection: sqlite3.Connection, session_id: str) -> SessionRow | None:
    rows = _select(connection, _SESSION, "WHERE session_id = ?", (session_id,))
    return next(map(_session, rows), None)


def event(connection: sqlite3.Connection, event_id: Any) -> Event | None:
    return next(map(_event, _select(connection, _EVENT, "WHERE id = ?", (event_id,))), None)


def last(
    connection: sqlite3.Connection,
    kind: Kind,
    *,
    session_id: str = "",
    before: Any = None,
    limit: int = 1,
) -> list[Event]:
    """The newest events of one kind, newest first, in one session or in all, before an id."""
    assert kind in KINDS
    # The kind is spelled out so that the index of failures is used.
    where = f"event_type = '{kind}'"
    values: list[Any] = []
    if session_id:
        where, values = f"{where} AND session_id = ?", [session_id]
    if before is not None:
        where, values = f"{where} AND id < ?", [*values, before]
    tail = f"WHERE {where} ORDER BY id DESC LIMIT ?"
    return list(map(_event, _select(connection, _EVENT, tail, (*values, limit))))


def events(
    connection: sqlite3.Connection,
    *,
    session_id: str = "",
    kind: Kind | None = None,
    after: Any = None,
    limit: int = -1,
) -> Iterator[Event]:
    """Events in order, after an id; one session and one kind only if they are named."""
    asked = {"session_id =": session_id or None, "event_type =": kind, "id >": after}
    given = {clause: value for clause, value in asked.items() if value is not None}
    where = " AND ".join(["1", *(f"{clause} ?" for clause in given)])
    tail = f"WHERE {where} ORDER BY id LIMIT ?"
    return map(_event, _select(connection, _EVENT, tail, (*given.values(), limit)))


def stored(
    connection: sqlite3.Connection, session_id: str, after: Any = None
) -> Iterator[list[Any]]:
    """The rows of one session as they are stored, in order, after an id: for copying them."""
    late, values = ("", ()) if after is None else (" AND id > ?", (after,))
    tail = f"WHERE session_id = ?{late} ORDER BY id"
    return map(list, _select(connection, _EVENT, tail, (session_id, *values)))


def newest(connection: sqlite3.Connection, limit: int, session_id: str = "") -> list[Event]:
    """The newest events of all kinds, oldest of them first."""
    if session_id:
        found = [
            event
            for kind in KINDS
            for event in last(connection, kind, session_id=session_id, limit=limit)
        ]
        return sorted(found, key=lambda event: event.id)[-limit:]
    rows = _select(connection, _EVENT, "ORDER BY id DESC LIMIT ?", (limit,))
    return [*map(_event, rows)][::-1]


def count(connection: sqlite3.Connection, kind: Kind, session_id: str) -> int:
    row = connection.execute(
        "SELECT count(*) FROM events WHERE session_id = ? AND event_type = ?", (session_id, kind)
    ).fetchone()
    return int(row[0])


def token_summary(connection: sqlite3.Connection, session_id: str | None) -> dict[str, Any]:
    """Tokens and money per model and in all, over every row of one session, or of all for None.

    What a call did not say is counted beside the sums, never taken for zero.
    """
    chosen, values = (" AND session_id = ?", [session_id]) if session_id is not None else ("", [])
    rows = connection.execute(
        f"SELECT json_extract(payload, '$.m'), {', '.join(_SUMS.values())}"  # noqa: S608  our own words
        f" FROM events WHERE event_type = 'llm_call'{chosen} GROUP BY 1 ORDER BY 1",
        values,
    )
    models = {model: dict(zip(_SUMS, sums, strict=True)) for model, *sums in rows}

    def whole(name: str) -> int:
        return sum(row[name] for row in models.values())

    counted = ("unknown_calls", "estimated_calls", "unpriced_calls", "cost_nusd")
    return {
        "session_id": session_id or "",
        "models": models,
        "total_tokens": whole("tokens_total"),
        **{name: whole(name) for name in counted},
        "cost_usd": None if whole("unpriced_calls") else whole("cost_nusd") / 1e9,
    }


def _select(
    connection: sqlite3.Connection, columns: str, tail: str, values: tuple[Any, ...]
) -> sqlite3.Cursor:
    table = "agent_sessions" if columns is _SESSION else "events"
    return connection.execute(f"SELECT {columns} FROM {table} {tail}", values)  # noqa: S608  our own words


def _session(row: tuple[Any, ...]) -> SessionRow:
    return dict(zip(_SESSION.split(", "), row, strict=True))


def _event(row: tuple[Any, ...]) -> Event:
    event_id, session_id, ts, kind, stored = row
    payload = readable(kind, json.loads(stored))
    if kind == "llm_call":
        payload.setdefault("call_id", str(event_id))
    return Event(event_id, session_id, ts, kind, payload)
