"""Migrations: from every earlier version, twice safely, and never from a newer one (C34)."""

import sqlite3
from pathlib import Path

import pytest

from context_world import task, world
from holdfast.engine.listing import goals
from holdfast.errors import Refused
from holdfast.store import open_store, queries
from holdfast.store.database import _SCHEMAS, APPLICATION_ID, SCHEMA_VERSION

IN_FLIGHT = """
INSERT INTO plans (id, goal_id, revision, source, state, created_ms)
VALUES (1, 1, 1, 'single', 'running', 7);
INSERT INTO tasks (id, goal_id, plan_id, key, position, priority, spec, state, attempts, take,
                   take_open)
VALUES (1, 1, 1, 'a', 0, 0, '{}', 'running', 2, 1, 1);
INSERT INTO takes (task_id, number, opened_ms) VALUES (1, 1, 7);
INSERT INTO attempts (task_id, number, take, worker, state, outcome, lease_until_ms, started_ms)
VALUES (1, 1, 1, 'w', 'ended', 'expired', 0, 7), (1, 2, 1, 'w', 'open', '', 0, 7);
INSERT INTO steps (task_id, take, key, generation, position, kind, effect, state, attempt, request,
                   reserve_tokens, reserve_nusd, intended_ms)
VALUES (1, 1, 'one', 1, 1, 'model', 'idempotent', 'intended', 2, '{}', 40, 7, 7),
       (1, 1, 'two', 1, 2, 'model', 'idempotent', 'intended', 2, '{}', 2, 2, 7),
       (1, 1, 'did', 1, 3, 'model', 'idempotent', 'done', 2, '{}', 500, 500, 7),
       (1, 1, 'old', 1, 4, 'model', 'idempotent', 'intended', 1, '{}', 900, 900, 7);
"""


def shape(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Every table, view and index with its columns."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type <> 'trigger'").fetchall()
    return {
        name: [row[1] for row in connection.execute(f"PRAGMA table_info('{name}')")]
        for (name,) in names
    }


def earlier(path: Path, version: int) -> None:
    """A store as an earlier version made it: a goal, and a task with an attempt that is open.

    It has two steps in flight, one done, and one in flight that an attempt before it began.
    """
    connection = sqlite3.connect(path)
    for number in range(1, version + 1):
        connection.executescript(queries.text(_SCHEMAS[number]))
        connection.execute("INSERT INTO schema_version VALUES (?, 7)", (number,))
    connection.execute(
        "INSERT INTO goals (id, text, repository, base_commit, base_tree, branch, tip_commit,"
        " branch_commit, shown_commit, model, budget_tokens, budget_usd, seed, state, created_ms)"
        " VALUES (1, 'old', '', '', '', '', '', '', '', '', 0, 0, 0, 'complete', 7)"
    )
    connection.executescript(IN_FLIGHT)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_store_of_an_earlier_version_is_brought_up_to_date_and_keeps_its_rows(
    tmp_path: Path, version: int
) -> None:
    earlier(tmp_path / "holdfast.db", version)
    with world(tmp_path) as w:
        assert [row["text"] for row in w.engine.read(goals)] == ["old"]
        assert w.goal(task("a")) == 2
    fresh = open_store(tmp_path / "fresh.db", now_ms=1)
    old = open_store(tmp_path / "holdfast.db", now_ms=2)
    assert shape(old) == shape(fresh)
    versions = [tuple(row) for row in old.execute("SELECT version FROM schema_version")]
    assert versions == [(number,) for number in range(1, SCHEMA_VERSION + 1)]
    old.close()
    fresh.close()


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_in_flight_before_version_3_is_still_reserved(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "holdfast.db"
    earlier(path, version)
    for now_ms in (1, 2):
        open_store(path, now_ms=now_ms).close()
    with sqlite3.connect(path) as connection:
        rows = connection.execute(
            "SELECT number, reserved_tokens, reserved_nusd FROM attempts ORDER BY number"
        ).fetchall()
    connection.close()
    assert rows == [(1, 0, 0), (2, 42, 9)]


@pytest.mark.parametrize("version", range(1, 5))
def test_steps_are_the_same_behind_row_ids_and_their_names_stay_unique(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "holdfast.db"
    earlier(path, version)
    with sqlite3.connect(path) as connection:
        before = connection.execute("SELECT * FROM steps ORDER BY position").fetchall()
    connection.close()
    connection = open_store(path, now_ms=1)
    after = connection.execute("SELECT * FROM steps ORDER BY rowid").fetchall()
    assert list(map(tuple, after)) == before
    assert len(before) == 4
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute("INSERT INTO steps SELECT * FROM steps WHERE key = 'one'")
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        connection.execute("UPDATE steps SET take = 9 WHERE key = 'one'")
    connection.close()


def test_opening_twice_migrates_once(tmp_path: Path) -> None:
    for _ in range(2):
        connection = open_store(tmp_path / "holdfast.db", now_ms=1)
        rows = connection.execute("SELECT count(*) FROM schema_version").fetchone()[0]
        connection.close()
        assert rows == SCHEMA_VERSION


def test_a_newer_store_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    open_store(path, now_ms=1).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(Refused, match="newer"):
        open_store(path, now_ms=1)
