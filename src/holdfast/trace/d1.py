"""Copying a trace to Cloudflare D1: the same two tables, over its HTTP API.

Owns the requests and the reading of its nested answers (`result[0].results`). Off unless
`CLOUDFLARE_ACCOUNT_ID`, `CLOUDFLARE_D1_DATABASE_ID` and `CLOUDFLARE_API_TOKEN` are set
(`CLOUDFLARE_API_BASE_URL` points elsewhere). Invariants: sending twice changes nothing (events are
INSERT OR IGNORE by id, a session's row takes the newer state); what the other side has already is
asked for, not remembered here; every parameter is text, as the API documents, and the columns'
affinity makes numbers of it.
Source: developers.cloudflare.com, D1 "Query D1 Database": `{batch: [{sql, params}]}`.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from holdfast.trace import read
from holdfast.trace.post import Done, PostFailed, post
from holdfast.trace.store import SCHEMA

VARIABLES = ("CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_D1_DATABASE_ID", "CLOUDFLARE_API_TOKEN")
BASE_URL = "https://api.cloudflare.com/client/v4"
STATEMENTS_MAX = 50
TIMEOUT_S = 30.0

Statement = dict[str, Any]

SESSION = (
    "INSERT INTO agent_sessions (session_id, start_ts, end_ts, agent_name, task, total_tokens)"
    " VALUES (?, ?, NULLIF(?, ''), ?, ?, ?) ON CONFLICT (session_id) DO UPDATE SET"
    " end_ts = excluded.end_ts, agent_name = excluded.agent_name, task = excluded.task,"
    " total_tokens = excluded.total_tokens"
)
EVENT = (
    "INSERT OR IGNORE INTO events (id, session_id, ts, event_type, payload) VALUES (?, ?, ?, ?, ?)"
)
THERE = "SELECT session_id, count(*) AS events, max(id) AS last FROM events GROUP BY session_id"


def sync(
    connection: sqlite3.Connection,
    environ: Mapping[str, str],
    *,
    wait: Callable[[float], None] = time.sleep,
) -> Done:
    """Send what D1 does not have yet; safe to repeat after any failure."""
    missing = [name for name in VARIABLES if not environ.get(name)]
    if missing:
        return Done(0, f"D1 is off: {', '.join(missing)} not set")
    sent = 0
    try:
        _ask(environ, [{"sql": statement, "params": []} for statement in SCHEMA], wait)
        there = _rows(_ask(environ, [{"sql": THERE, "params": []}], wait))
        known = {row["session_id"]: (int(row["events"]), row["last"]) for row in there}
        waiting = statements(connection, known)
        while batch := list(islice(waiting, STATEMENTS_MAX)):
            _ask(environ, batch, wait)
            sent += len(batch)
    except PostFailed as error:
        return Done(sent, str(error))
    return Done(sent)


def statements(
    connection: sqlite3.Connection, known: Mapping[str, tuple[int, Any]]
) -> Iterator[Statement]:
    """Every session, and the events of each that are not there yet.

    `known` maps a session to how many events are there and the last one's id. If more than that
    many stand up to that id here, one was committed late, and all of them are sent again.
    """
    for row in read.oldest_first(connection):
        values = [row[name] for name in ("session_id", "start_ts", "end_ts", "agent_name", "task")]
        yield {"sql": SESSION, "params": _texts([*values, row["total_tokens"]])}
        count, last = known.get(row["session_id"], (0, None))
        here = connection.execute(
            "SELECT count(*) FROM events WHERE session_id = ? AND id <= ?",
            (row["session_id"], last),
        ).fetchone()
        after = last if last is not None and here[0] == count else None
        for values in read.stored(connection, row["session_id"], after):
            yield {"sql": EVENT, "params": _texts(values)}


def _texts(values: list[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]


def _ask(
    environ: Mapping[str, str], batch: list[Statement], wait: Callable[[float], None]
) -> list[Any]:
    """The `result` of one batch: a list with an object per statement, each with `results`."""
    account, database, token = (environ[name] for name in VARIABLES)
    base = environ.get("CLOUDFLARE_API_BASE_URL") or BASE_URL
    answer = post(
        f"{base.rstrip('/')}/accounts/{account}/d1/database/{database}/query",
        json.dumps({"batch": batch}).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        timeout_s=TIMEOUT_S,
        wait=wait,
    )
    try:
        found = json.loads(answer)
    except ValueError as error:
        raise PostFailed("D1 answered something else than JSON") from error
    result = found.get("result") if isinstance(found, dict) else None
    if not isinstance(result, list) or not found.get("success"):
        codes = [str(item.get("code")) for item in (found or {}).get("errors") or []]
        raise PostFailed(f"D1 refused the batch: {', '.join(codes) or 'no reason given'}")
    if not all(isinstance(item, dict) and item.get("success", True) for item in result):
        raise PostFailed("D1 refused a statement of the batch")
    return result


def _rows(result: list[Any]) -> list[dict[str, Any]]:
    """The rows of the first statement, which stand one level deeper than one expects."""
    rows = result[0].get("results") if result else None
    return rows if isinstance(rows, list) else []
