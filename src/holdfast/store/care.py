"""Care of the store: whole-store check, online backup that is opened and checked, restore.

A backup is made beside writers (SQLite's backup API) after the source passed its integrity check,
and counts only once the copy passed too. Restoring moves the damaged store aside, never deletes it.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from holdfast.errors import Corrupt, NotFound, Refused, Unavailable
from holdfast.store.database import APPLICATION_ID, Translated, open_reader

BACKUPS_KEPT = 3


def check(path: Path) -> list[str]:
    """Problems of a store, each a sentence; empty when it is sound. Reads the whole store."""
    with Translated(path):
        connection = open_reader(path)
        try:
            if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
                return ["it is no store of Holdfast"]
            problems = [row[0] for row in connection.execute("PRAGMA integrity_check(20)")]
            problems = [] if problems == ["ok"] else problems
            for row in connection.execute("PRAGMA foreign_key_check"):
                problems.append(f"table {row[0]} row {row[1]} points to a missing {row[2]}")
            return problems
        finally:
            connection.close()


def backup(path: Path, folder: Path, *, stamp_ms: int) -> Path:
    """Copy a sound store into `folder`; returns the new file. Keeps the newest few.

    Raises `Corrupt` when the store or the copy does not pass its check.
    """
    if not path.exists():
        raise NotFound(f"there is no store at {path}")
    problems = check(path)
    if problems:
        raise Corrupt(f"the store is damaged and was not copied: {problems[0]}", hint=_hint(path))
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    target = folder / f"holdfast-{stamp_ms}.db"
    making = target.with_suffix(".making")
    making.unlink(missing_ok=True)
    making.touch(mode=0o600)
    with Translated(path):
        source, copy = open_reader(path), sqlite3.connect(making)
        try:
            source.backup(copy)
        finally:
            source.close()
            copy.close()
    problems = check(making)
    if problems:
        making.unlink()
        raise Corrupt(f"the copy did not pass its check: {problems[0]}", hint="try again")
    making.rename(target)
    for old in backups(folder)[:-BACKUPS_KEPT]:
        old.unlink()
    return target


def restore(path: Path, source: Path, *, stamp_ms: int) -> Path | None:
    """Put a checked backup in the store's place; returns where the old store was moved to."""
    if not source.is_file():
        raise NotFound(f"there is no backup {source}")
    _own(source)
    problems = check(source)
    if problems:
        raise Corrupt(f"the backup is damaged too: {problems[0]}", hint="choose an older one")
    making = path.with_suffix(".restoring")
    try:
        _copy(source, making)
        aside = _move_aside(path, stamp_ms)
        making.rename(path)
        _sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            making.unlink()
        raise Unavailable(
            f"the backup could not be put in place: {error.strerror}",
            hint="make room or check the permissions, then `holdfast restore` again",
        ) from error
    return aside


def _copy(source: Path, target: Path) -> None:
    """The whole copy is on disk before anything is moved: a full disk must not cost the store."""
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    with source.open("rb") as original, target.open("r+b") as copy:
        shutil.copyfileobj(original, copy)  # a store may be larger than memory
    _sync(target)


def _move_aside(path: Path, stamp_ms: int) -> Path | None:
    aside: Path | None = None
    if path.exists():
        aside = path.with_name(f"{path.name}.damaged-{stamp_ms}")
        path.rename(aside)
    for suffix in ("-wal", "-shm"):
        leftover = path.with_name(path.name + suffix)
        if leftover.exists():
            leftover.rename(leftover.with_name(f"{leftover.name}.damaged-{stamp_ms}"))
    return aside


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def backups(folder: Path) -> list[Path]:
    """The backups of a folder, oldest first."""
    return sorted(folder.glob("holdfast-*.db"), key=lambda path: (len(path.name), path.name))


def _own(source: Path) -> None:
    with Translated(source):
        connection = open_reader(source)
        try:
            found = connection.execute("PRAGMA application_id").fetchone()[0]
        finally:
            connection.close()
    if found != APPLICATION_ID:
        raise Refused(f"{source} is no backup of Holdfast")


def _hint(path: Path) -> str:
    return f"holdfast restore --home {path.parent}"
