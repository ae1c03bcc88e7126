"""Death is proved where it can be: a lock that the kernel lets go of when its holder dies.

Each process that holds leases keeps an exclusive `flock` on `run/<worker>.lock`. Whoever obtains
another worker's lock knows that it is dead and expires its attempts at once. A stopped or remote
worker keeps its lock, so it loses its leases only by time.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from holdfast.domain.ports import Clock
from holdfast.engine import Engine, expire, holders

SILENT = "silent"
DIED = "died"


class LifeLine:
    """This process's proof of life, held from construction to `close`."""

    def __init__(self, home: Path, worker: str) -> None:
        self.worker = worker
        self._path = _lock_path(home, worker)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Let go, and leave no file behind. Idempotent."""
        if self._file >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


def reap(engine: Engine, home: Path, me: str, clock: Clock) -> int:
    """Expire the attempts of workers that are dead or silent; returns how many."""
    ended = 0
    for worker, fence, until_ms in engine.read(holders):
        if worker == me:
            continue
        if is_dead(home, worker):
            reason = DIED
        elif until_ms < clock.now_ms():
            reason = SILENT
        else:
            continue
        ended += engine.call(expire, fence, reason=reason) is not None
    return ended


def is_dead(home: Path, worker: str) -> bool:
    """True when nobody holds the worker's lock. A missing file is a worker that closed it."""
    try:
        descriptor = os.open(_lock_path(home, worker), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def workers(home: Path) -> list[str]:
    """The workers of a home that are alive, by their locks: the store is not asked."""
    names = sorted(path.stem for path in (home / "run").glob("*.lock"))
    return [name for name in names if not is_dead(home, name)]


def _lock_path(home: Path, worker: str) -> Path:
    return home / "run" / f"{worker}.lock"
