"""Opening a store: pragmas, identity, schema version, migrations, and what SQLite's errors mean.

Invariants: a store of another application or of a newer schema is refused untouched; one process
at a time makes or migrates a store, in one transaction and twice safely; damage is `Corrupt` and
always names the way back.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.domain.lifecycle import TRANSITIONS
from holdfast.errors import Corrupt, HoldfastError, Refused, Unavailable
from holdfast.store import queries
from holdfast.store.gates import Gate, held_by, holder

APPLICATION_ID = 0x484F4C44  # "HOLD"
SCHEMA_VERSION = 5
_SCHEMAS = {1: "schema.sql"} | {n: f"schema_{n}.sql" for n in range(2, SCHEMA_VERSION + 1)}
BUSY_MS = 30_000
# A step touches five pages; half-size pages write 16 KB a step instead of 24 (benchmarks/steps.py).
_PAGE_BYTES = 2048


def open_store(path: Path, *, now_ms: int) -> sqlite3.Connection:
    """Open or create the store at `path` for writing; brings an older schema up to date."""
    with Translated(path):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _private(path)
        except OSError as error:
            raise Refused(
                f"cannot create the store at {path}: {error.strerror}",
                hint="choose another place with HOLDFAST_HOME",
            ) from error
        connection = _connect(path)
        try:
            if not _is_current(connection, path):
                with _alone(path):
                    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                    connection.execute("PRAGMA journal_mode = WAL")
                    _in_transaction(connection, lambda: _apply(connection, now_ms))
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection for reading only, beside any number of writers."""
    with Translated(path):
        connection = _connect(path)
        connection.execute("PRAGMA query_only = ON")
        return connection


class Translated:
    """Turns SQLite's errors into ours, each with its remedy, where it is used as a context."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing has gone wrong yet."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.DatabaseError):
            raise _meaning(error, self._path) from error
        if isinstance(error, OverflowError) and "SQLite" in str(error):
            raise Refused(
                "a number is larger than the store can hold", hint="ids and counts are below 2**63"
            ) from error


def _meaning(error: sqlite3.DatabaseError, path: Path) -> HoldfastError:
    text = str(error)
    if "malformed" in text or "not a database" in text or "corrupt" in text:
        return Corrupt(
            f"the store {path} is damaged: {text}",
            hint=f"restore the last backup: holdfast restore --home {path.parent}",
        )
    if "full" in text or ("disk I/O" in text and _is_full(path)):
        return Unavailable(
            f"no space left to write {path}; nothing of this step was stored",
            hint="free some space, then `holdfast resume`",
            code="disk_full",
        )
    if "readonly" in text or "unable to open" in text or "attempt to write" in text:
        return Refused(f"cannot write the store {path}: {text}", hint="check its permissions")
    if "locked" in text or "busy" in text or "disk I/O" in text:
        return Unavailable(f"the store {path} does not answer: {text}", hint="try again")
    return HoldfastError(f"the store {path} refused a statement: {text}", code="store_error")


def _is_full(path: Path) -> bool:
    """Whether SQLite's own index of the log, 32 KB, has no room: it calls that an I/O error."""
    found = os.statvfs(path.parent)
    return found.f_bavail * found.f_frsize < 1 << 16


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        check_same_thread=False,
        timeout=BUSY_MS / 1000,
        cached_statements=256,
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _private(path: Path) -> None:
    """Create the file readable by its owner alone: it holds prompts and outputs."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether nothing is left to make or to migrate; refuses what is not ours or newer."""
    connection.execute("BEGIN")  # one look: another process may be making the store right now
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    connection.execute("ROLLBACK")
    if application != APPLICATION_ID and (application != 0 or tables != 0):
        raise Refused(f"{path} is a database of another program", hint="set HOLDFAST_HOME")
    if version > SCHEMA_VERSION:
        raise Refused(
            f"{path} has schema {version}, newer than this Holdfast knows ({SCHEMA_VERSION})",
            hint="upgrade holdfast; nothing was changed",
            code="newer_schema",
        )
    log = connection.execute("PRAGMA journal_mode").fetchone()[0]
    return bool(version == SCHEMA_VERSION and log == "wal")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the writers' turn: SQLite waits for nobody when a store's log changes its kind."""
    try:
        gate = Gate(path.parent / "write.lock")
    except OSError as error:
        raise Refused(
            f"cannot write beside the store {path}: {error.strerror}", hint="check its permissions"
        ) from error
    try:
        turn = gate.enter(time.monotonic() + BUSY_MS / 1000)
        if turn is None:
            raise held_by(holder(gate.path), BUSY_MS / 1000)
        try:
            yield
        finally:
            gate.leave(turn)
    finally:
        gate.close()


def _apply(connection: sqlite3.Connection, now_ms: int) -> None:
    """Runs under the write lock; the version is read anew, since another process may be first."""
    statements = queries.load()
    current = connection.execute("PRAGMA user_version").fetchone()[0]
    for version in range(current + 1, SCHEMA_VERSION + 1):
        for statement in _statements(queries.text(_SCHEMAS[version])):
            connection.execute(statement)
        for row in TRANSITIONS:
            connection.execute(statements["lifecycle.put"], row._asdict())
        connection.execute(statements["version.put"], {"version": version, "now": now_ms})
        connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _in_transaction(connection: sqlite3.Connection, work: Callable[[], None]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        work()
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
