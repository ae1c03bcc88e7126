"""Backup, restore and check: only what is sound counts, and nothing is deleted to restore."""

import sqlite3
from pathlib import Path

import pytest

from desk import Desk
from holdfast.errors import Corrupt, NotFound, Refused, Unavailable
from holdfast.store import care


def made(folder: Path) -> Path:
    desk = Desk(folder)
    desk.goal()
    desk.work(commit="c1", parent="c0")
    desk.close()
    return desk.path


def damage(path: Path) -> None:
    """Rows that no longer fit their table: only a check of the whole store finds them."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute(
        "UPDATE sqlite_master SET sql = replace(sql, 'undone_ms      INTEGER',"
        " 'undone_ms      INTEGER NOT NULL') WHERE name = 'goals'"
    )
    connection.close()


def test_a_sound_store_has_no_problems_and_its_backup_holds_the_same(tmp_path: Path) -> None:
    path = made(tmp_path / "home")
    assert care.check(path) == []
    copy = care.backup(path, tmp_path / "backups", stamp_ms=5)
    assert copy.name == "holdfast-5.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(found.name for found in (tmp_path / "backups").iterdir()) == ["holdfast-5.db"]
    with sqlite3.connect(copy) as one, sqlite3.connect(path) as other:
        assert list(one.iterdump()) == list(other.iterdump())
    one.close()
    other.close()


def test_a_backup_is_made_beside_a_writer(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home")
    desk.goal()
    copy = care.backup(desk.path, tmp_path / "backups", stamp_ms=1)
    desk.goal()
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT count(*) FROM goals").fetchone()[0] == 1
    connection.close()
    desk.close()


def test_the_newest_three_backups_are_kept(tmp_path: Path) -> None:
    path = made(tmp_path / "home")
    for stamp in (9, 10, 11, 100):
        care.backup(path, tmp_path / "backups", stamp_ms=stamp)
    kept = [found.name for found in care.backups(tmp_path / "backups")]
    assert kept == ["holdfast-10.db", "holdfast-11.db", "holdfast-100.db"]


def test_a_damaged_store_is_reported_and_never_copied(tmp_path: Path) -> None:
    path = made(tmp_path / "home")
    damage(path)
    assert care.check(path), "an integrity check must find a broken index"
    with pytest.raises(Corrupt, match="was not copied") as corrupt:
        care.backup(path, tmp_path / "backups", stamp_ms=1)
    assert corrupt.value.hint.startswith("holdfast restore")
    assert not (tmp_path / "backups").exists()


def test_a_row_that_points_to_nothing_is_a_problem(tmp_path: Path) -> None:
    path = made(tmp_path / "home")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DELETE FROM goals")
    connection.close()
    assert any("points to a missing goals" in problem for problem in care.check(path))


def test_a_copy_that_does_not_pass_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, check = made(tmp_path / "home"), care.check
    monkeypatch.setattr(
        care, "check", lambda found: ["torn"] if found.suffix == ".making" else check(found)
    )
    with pytest.raises(Corrupt, match="copy did not pass its check: torn"):
        care.backup(path, tmp_path / "backups", stamp_ms=1)
    assert list((tmp_path / "backups").iterdir()) == []


def test_restoring_puts_the_backup_in_place_and_the_damaged_store_aside(tmp_path: Path) -> None:
    path = made(tmp_path / "home")
    copy = care.backup(path, tmp_path / "backups", stamp_ms=1)
    path.write_bytes(b"ruined" * 1000)
    path.with_name(path.name + "-wal").write_bytes(b"ruined too")
    aside = care.restore(path, copy, stamp_ms=7)
    assert aside is not None
    assert aside.read_bytes().startswith(b"ruined")
    assert (path.parent / "holdfast.db-wal.damaged-7").exists()
    assert care.check(path) == []
    assert path.stat().st_mode & 0o777 == 0o600
    desk = Desk(path.parent)
    assert desk.state("goals", 1) == "complete"
    desk.close()


def test_restoring_where_no_store_is_left_needs_nothing_aside(tmp_path: Path) -> None:
    copy = care.backup(made(tmp_path / "home"), tmp_path / "backups", stamp_ms=1)
    target = tmp_path / "other.db"
    assert care.restore(target, copy, stamp_ms=7) is None
    assert care.check(target) == []


def test_what_is_no_backup_is_refused_before_anything_moves(tmp_path: Path) -> None:
    path = made(tmp_path / "home")
    before = path.read_bytes()
    with pytest.raises(NotFound, match="no backup"):
        care.restore(path, tmp_path / "missing.db", stamp_ms=7)
    broken = care.backup(path, tmp_path / "backups", stamp_ms=1)
    damage(broken)
    with pytest.raises(Corrupt, match="damaged too"):
        care.restore(path, broken, stamp_ms=7)
    theirs = tmp_path / "theirs.db"
    connection = sqlite3.connect(theirs)
    connection.execute("CREATE TABLE x (y)")
    connection.close()
    with pytest.raises(Refused, match="no backup of Holdfast"):
        care.restore(path, theirs, stamp_ms=7)
    assert path.read_bytes() == before
    with pytest.raises(NotFound, match="no store"):
        care.backup(tmp_path / "nowhere.db", tmp_path / "backups", stamp_ms=1)


def test_a_database_of_nobody_is_no_sound_store(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    path.touch()
    assert care.check(path) == ["it is no store of Holdfast"]


def test_a_backup_that_cannot_be_copied_leaves_the_store_where_it_is(tmp_path: Path) -> None:
    path = made(tmp_path)
    copy = care.backup(path, tmp_path / "backups", stamp_ms=1)
    before = path.read_bytes()
    blocked = path.with_suffix(".restoring")
    blocked.mkdir()
    with pytest.raises(Unavailable, match="could not be put in place"):
        care.restore(path, copy, stamp_ms=2)
    assert path.read_bytes() == before
    blocked.rmdir()
    assert care.restore(path, copy, stamp_ms=3) is not None
