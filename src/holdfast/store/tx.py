"""One transaction: named statements, its own `now`, the log, blobs and `transition()`.

`transition()` is the only function in Holdfast that writes a `state` column, and it always writes
the event that says so; folding those events gives the states back (I6).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.domain.lifecycle import Machine, advance
from holdfast.errors import Corrupt, Stale
from holdfast.store import queries

Row = sqlite3.Row

INLINE_BYTES_MAX = 1024
_STATEMENTS = queries.prepare(queries.load())
_encode = msgspec.json.Encoder(order="deterministic").encode


class Tx:
    """A transaction in progress. `now_ms` is the one time that everything in it happened."""

    def __init__(self, connection: sqlite3.Connection, now_ms: int) -> None:
        self._connection = connection
        self.now_ms = now_ms

    def run(self, statement: str, **values: Any) -> int:
        """Execute a named statement; returns the number of rows it changed."""
        assert not statement.startswith("transition."), "states are written by transition()"
        return self._execute(statement, values).rowcount

    def one(self, statement: str, **values: Any) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._execute(statement, values).fetchone()
        return row

    def all(self, statement: str, **values: Any) -> list[sqlite3.Row]:
        return self._execute(statement, values).fetchall()

    def number(self, statement: str, **values: Any) -> int:
        """The single integer a statement answers."""
        row = self.one(statement, **values)
        assert row is not None, f"{statement} answered no row"
        return int(row[0])

    def log(self, kind: str, body: bytes, *, goal: int, task: int = 0, attempt: int = 0) -> None:
        """Record one trace event; `body` is its compact JSON."""
        said = {"kind": kind, "goal": goal, "task": task, "attempt": attempt, "body": body.decode()}
        self._execute("log.add", said)

    def put(self, content: bytes) -> str:
        """Store a blob once; returns its sha256. Idempotent."""
        digest = sha256(content).hexdigest()
        self.run("blob.put", sha256=digest, bytes=content)
        return digest

    def get(self, digest: str, *, verify: bool = True) -> bytes:
        """A blob's bytes; `Corrupt` when they are missing or are not what was written.

        Replay reads without `verify`, because it names the byte that was changed.
        """
        row = self.one("blob.get", sha256=digest)
        if row is None:
            raise Corrupt(f"blob {digest[:12]} is missing from the store")
        content = bytes(row[0])
        if verify and sha256(content).hexdigest() != digest:
            raise Corrupt(f"blob {digest[:12]} is not what was written")
        return content

    def pack(self, content: bytes) -> str:
        """A column's text: small content as it is, larger content as `@sha256` of a blob.

        Content that begins with `@` is never kept as it is: it would name a blob.
        """
        small = len(content) <= INLINE_BYTES_MAX and content[:1] != b"@"
        return content.decode() if small else "@" + self.put(content)

    def unpack(self, column: str, *, verify: bool = True) -> bytes:
        return self.get(column[1:], verify=verify) if column[:1] == "@" else column.encode()

    def _execute(self, statement: str, values: dict[str, Any]) -> sqlite3.Cursor:
        values["now"] = self.now_ms
        sql, bind = _STATEMENTS[statement]
        return self._connection.execute(sql, bind(values))


def transition(
    tx: Tx,
    machine: Machine,
    event: str,
    *,
    source: str,
    entity: str,
    goal: int,
    task: int = 0,
    attempt: int = 0,
    reason: str = "",
    statement: str = "",
    values: Mapping[str, Any] | None = None,
) -> str:
    """Write one state and the event that says so; returns the new state.

    The guard refuses what the table does not allow, and the row must still be in `source`, else
    `Stale`. `statement` names a variant of `transition.<machine>` that writes more columns at once.
    """
    target = advance(machine, source, event)
    name = f"transition.{machine}.{statement}" if statement else f"transition.{machine}"
    changed = tx._execute(
        name, {**(values or {}), "source": source, "target": target, "reason": reason}
    ).rowcount
    if changed != 1:
        raise Stale(f"{machine} {entity} is no longer {source or 'new'}; {event} was not applied")
    tx._execute(
        "log.transition",
        {
            "goal": goal,
            "task": task,
            "attempt": attempt,
            "machine": machine,
            "entity": entity,
            "source": source,
            "event": event,
            "target": target,
            "body": _encode({"reason": reason}).decode() if reason else "{}",
        },
    )
    return target
