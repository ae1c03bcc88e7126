"""Migrations: from every earlier version, twice safely, and never from a newer one (C34)."""

import sqlite3
from pathlib import Path

import pytest

from context_world import task, world
from holdfast.engine.listing import goals
from holdfast.errors import Refused
from holdfast.store import open_store, queries
from holdfast.store.database import APPLICATION_ID, SCHEMA_VERSION


def tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    return {row[0] for row in rows}


def version_1(path: Path) -> None:
    """A store as version 1 made it, with a goal in it."""
    connection = sqlite3.connect(path)
    connection.executescript(queries.text("schema.sql"))
    connection.execute("INSERT INTO schema_version VALUES (1, 7)")
    connection.execute(
        "INSERT INTO goals (id, text, repository, base_commit, base_tree, branch, tip_commit,"
        " branch_commit, shown_commit, model, budget_tokens, budget_usd, seed, state, created_ms)"
        " VALUES (1, 'old', '', '', '', '', '', '', '', '', 0, 0, 0, 'complete', 7)"
    )
    connection.execute("PRAGMA user_version = 1")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.commit()
    connection.close()


def test_a_store_of_version_1_is_brought_up_to_date_and_keeps_its_rows(tmp_path: Path) -> None:
    version_1(tmp_path / "holdfast.db")
    with world(tmp_path) as w:
        assert [row["text"] for row in w.engine.read(goals)] == ["old"]
        assert w.goal(task("a")) == 2
    fresh = open_store(tmp_path / "fresh.db", now_ms=1)
    old = open_store(tmp_path / "holdfast.db", now_ms=2)
    assert tables(old) == tables(fresh)
    versions = [tuple(row) for row in old.execute("SELECT version FROM schema_version")]
    assert versions == [(number,) for number in range(1, SCHEMA_VERSION + 1)]
    old.close()
    fresh.close()


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
