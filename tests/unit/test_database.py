"""Opening a store: whose it is, which schema, and what every kind of damage is called."""

import fcntl
import multiprocessing
import os
import resource
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from desk import Desk, task
from holdfast.engine.outlook import events
from holdfast.errors import Corrupt, HoldfastError, Refused, Unavailable
from holdfast.store import Translated, database, open_reader, open_store
from holdfast.store.database import APPLICATION_ID, SCHEMA_VERSION
from simulate.faults import SimClock

STORES = 20


def pragma(path: Path, name: str) -> object:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


def test_a_new_store_is_ours_private_and_durable(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "holdfast.db"
    connection = open_store(path, now_ms=42)
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert connection.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    versions = [tuple(row) for row in connection.execute("SELECT * FROM schema_version")]
    assert versions == [(version, 42) for version in range(1, SCHEMA_VERSION + 1)]
    connection.close()
    assert pragma(path, "application_id") == APPLICATION_ID
    assert pragma(path, "user_version") == SCHEMA_VERSION
    assert pragma(path, "journal_mode") == "wal"
    assert path.stat().st_mode & 0o777 == 0o600


def test_migrations_run_twice_safely(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    open_store(path, now_ms=1).close()
    before = path.read_bytes()
    open_store(path, now_ms=2).close()
    assert path.read_bytes() == before


def test_a_migration_that_fails_half_way_leaves_an_empty_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.store import queries

    path, text = tmp_path / "holdfast.db", queries.text
    monkeypatch.setattr(
        queries, "text", lambda file: text(file) + ("SELECT nope;" if "schema" in file else "")
    )
    with pytest.raises(HoldfastError, match="refused a statement: no such column"):
        open_store(path, now_ms=1)
    assert pragma(path, "user_version") == 0
    monkeypatch.undo()
    open_store(path, now_ms=1).close()
    assert pragma(path, "user_version") == SCHEMA_VERSION


def test_a_newer_schema_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    open_store(path, now_ms=1).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Refused, match="newer than this Holdfast") as refused:
        open_store(path, now_ms=1)
    assert refused.value.code == "newer_schema"
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Refused, match="another program"):
        open_store(path, now_ms=1)
    assert path.read_bytes() == before


def test_bytes_that_are_no_database_are_corrupt_and_name_the_way_back(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    path.write_bytes(b"this is not a database, it is a text" * 100)
    with pytest.raises(Corrupt, match="damaged") as corrupt:
        open_store(path, now_ms=1)
    assert corrupt.value.hint.startswith("restore the last backup: holdfast restore")


def test_damage_is_corrupt_at_any_time_also_while_reading(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for _ in range(20):
        desk.goal(task("a", prompt="x" * 3000))
    desk.close()
    content = bytearray(desk.path.read_bytes())
    content[2048 * 3 : 2048 * 60] = os.urandom(2048 * 57)
    desk.path.write_bytes(content)

    def read_all() -> None:
        reopened = Desk(tmp_path)
        reopened.engine.read(lambda tx: [tx.all("task.of_goal", goal=n) for n in range(30)])

    with pytest.raises(Corrupt, match="holdfast restore"):
        read_all()


def test_a_folder_that_cannot_be_written_is_refused_with_the_remedy(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with pytest.raises(Refused, match="cannot create the store") as refused:
        open_store(blocked / "holdfast.db", now_ms=1)
    assert "HOLDFAST_HOME" in refused.value.hint


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    open_store(path, now_ms=1).close()
    reader = open_reader(path)
    with pytest.raises(Refused, match="cannot write the store"), Translated(path):
        reader.execute("DELETE FROM log")
    reader.close()


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("database disk image is malformed", Corrupt, "corrupt"),
        ("file is not a database", Corrupt, "corrupt"),
        ("database or disk is full", Unavailable, "disk_full"),
        ("attempt to write a readonly database", Refused, "refused"),
        ("unable to open database file", Refused, "refused"),
        ("database is locked", Unavailable, "unavailable"),
        ("disk I/O error", Unavailable, "unavailable"),
        ("no such table: x", HoldfastError, "store_error"),
    ],
)
def test_every_error_of_sqlite_has_a_meaning(
    tmp_path: Path, text: str, kind: type[HoldfastError], code: str
) -> None:
    with pytest.raises(kind) as raised, Translated(tmp_path / "holdfast.db"):
        raise sqlite3.OperationalError(text)
    assert type(raised.value) is kind
    assert raised.value.code == code


def _fill(folder: str, told: "multiprocessing.SimpleQueue[tuple[int, str]]") -> None:
    """Submit goals until the file may not grow; report how many were acknowledged, and the end."""
    os.environ["COVERAGE_PROCESS_START"] = ""
    desk = Desk(Path(folder))
    desk.goal()
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    acknowledged = 1
    try:
        while True:
            desk.goal(task("a", prompt="x" * 900))
            acknowledged += 1
    except HoldfastError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        told.put((acknowledged, error.code))


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    told: multiprocessing.SimpleQueue[tuple[int, str]] = context.SimpleQueue()
    process = context.Process(target=_fill, args=(str(tmp_path), told))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    acknowledged, code = told.get()
    assert code in ("disk_full", "unavailable")
    desk = Desk(tmp_path)
    assert len(desk.rows("SELECT 1 FROM goals")) == acknowledged > 5
    desk.goal()  # with room again, work goes on
    desk.close()


def _create(folder: str, start: "multiprocessing.synchronize.Barrier") -> None:
    for number in range(STORES):
        start.wait(60)
        open_store(Path(folder) / f"{number}.db", now_ms=1).close()


def test_processes_may_create_a_store_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(3)
    all_of_them = [context.Process(target=_create, args=(str(tmp_path), start)) for _ in range(3)]
    for process in all_of_them:
        process.start()
    for process in all_of_them:
        process.join(120)
        assert process.exitcode == 0
    for number in range(STORES):
        assert pragma(tmp_path / f"{number}.db", "user_version") == SCHEMA_VERSION


def test_a_number_that_no_store_can_hold_is_refused_and_other_overflows_stay_bugs(
    tmp_path: Path,
) -> None:
    desk = Desk(tmp_path)
    with pytest.raises(Refused, match="larger than the store can hold"):
        desk.engine.read(events, goal=1 << 63)
    with pytest.raises(Refused, match="larger than the store can hold"):
        desk.engine.call(lambda tx: tx.one("goal.get", id=1 << 63))
    assert desk.engine.read(events, goal=(1 << 63) - 1) == []
    with pytest.raises(OverflowError):
        desk.engine.read(lambda tx: int(float("inf")))
    desk.close()


def test_a_store_that_somebody_else_is_making_is_waited_for_and_then_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_MS", 50)
    path = tmp_path / "holdfast.db"
    with (tmp_path / "write.lock").open("w") as maker:
        fcntl.flock(maker, fcntl.LOCK_EX)
        with pytest.raises(Unavailable, match="has kept the store") as caught:
            open_store(path, now_ms=1)
        assert caught.value.code == "store_held"
        assert pragma(path, "user_version") == 0, "nothing was made beside the maker"
    open_store(path, now_ms=1).close()
    with (tmp_path / "write.lock").open("w") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        open_store(path, now_ms=1).close()  # one that is made waits for no writer


def test_a_store_beside_which_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "write.lock").mkdir()
    with pytest.raises(Refused, match="cannot write beside the store"):
        open_store(tmp_path / "holdfast.db", now_ms=1)


class Overtaken(sqlite3.Connection):
    """A connection beside which another program makes a store, between two looks at the file."""

    path: Path

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        found = super().execute(sql, *values)
        if sql == "PRAGMA application_id":
            with closing(sqlite3.connect(self.path)) as other, suppress(sqlite3.OperationalError):
                other.execute("PRAGMA busy_timeout = 0")
                other.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                other.execute("CREATE TABLE made (at INTEGER)")
        return found


def test_a_store_that_is_made_meanwhile_is_not_taken_for_another_programs(tmp_path: Path) -> None:
    path = Overtaken.path = tmp_path / "holdfast.db"
    with closing(sqlite3.connect(path, isolation_level=None, factory=Overtaken)) as looking:
        assert database._is_current(looking, path) is False


def test_a_desk_is_a_store_like_any_other(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert isinstance(desk.clock, SimClock)
    desk.close()
    desk.close()
