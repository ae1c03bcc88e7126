"""One lock file between processes: a fair wait with a deadline, and who makes others wait.

The queue is the kernel's (`flock`), which knows no time limit: a process that is stopped while it
holds the lock would hold everyone for ever. Here a wait ends at its deadline and can name the
holder. Nothing is taken away from anyone: a lock ends with its process, a stopped one may go on.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

from holdfast.errors import Unavailable

YIELD_S = 0.0005


class Gate:
    """A lock file. For one thread at a time.

    Free, it costs one system call. A wait as short as a commit on a fast disk only yields the
    processor; a longer one is worth a descriptor and a thread of its own.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._own = path, _open(path)

    def enter(self, deadline: float) -> int | None:
        """The descriptor that holds the lock, None when it does not come before the deadline.

        A deadline that is over only looks whether the lock is free.
        """
        soon = 0.0  # known once somebody else has it
        while True:
            try:
                fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                now = time.monotonic()
                soon = soon or min(deadline, now + YIELD_S)
                if now >= deadline:
                    return None
                if now >= soon:
                    return _Wait(self.path).until(deadline)
                os.sched_yield()
            else:
                return self._own

    def leave(self, turn: int) -> None:
        if turn == self._own:
            fcntl.flock(turn, fcntl.LOCK_UN)
        else:
            os.close(turn)

    def close(self) -> None:
        os.close(self._own)


class _Wait(threading.Thread):
    """A wait in the kernel's queue, which has no time limit: so a thread stands there for us.

    Whoever gives up leaves the thread in the queue; when its turn comes it lets it go at once.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(name="holdfast-turnstile", daemon=True)
        self._turn = _open(path)
        self._came, self._agree, self._given_up = threading.Event(), threading.Lock(), False

    def until(self, deadline: float) -> int | None:
        self.start()
        try:
            self._came.wait(max(0.0, deadline - time.monotonic()))
        except BaseException:  # Ctrl-C
            if not self._give_up():
                os.close(self._turn)
            raise
        return None if self._give_up() else self._turn

    def run(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        with self._agree:
            if self._given_up:
                os.close(self._turn)
            else:
                self._came.set()

    def _give_up(self) -> bool:
        """Want the turn no more, unless it came."""
        with self._agree:
            self._given_up = not self._came.is_set()
            return self._given_up


def holder(path: Path) -> int:
    """The process that holds a `flock` on this file, 0 when the kernel does not say."""
    inode = str(path.stat().st_ino)
    for line in _read("/proc/locks").splitlines():
        words = line.split()  # "1: FLOCK  ADVISORY  WRITE 4711 fe:01:123456 0 EOF"; "->" waits
        if words[1:2] == ["FLOCK"] and words[5].rpartition(":")[2] == inode:
            return max(0, int(words[4]))
    return 0


def held_by(process: int, wait_s: float) -> Unavailable:
    """What to say to those who waited in vain."""
    if not process:
        return Unavailable(
            f"another process has kept the store for {wait_s:g} s",
            hint="try again",
            code="store_held",
        )
    stopped = _read(f"/proc/{process}/stat").rpartition(") ")[2][:1] in ("T", "t")
    name = _read(f"/proc/{process}/comm").strip()
    return Unavailable(
        f"process {process} ({name}) has kept the store for {wait_s:g} s"
        + (" and is stopped" if stopped else ""),
        hint=f"`kill -CONT {process}` lets it go on, `kill -9 {process}` ends it: both are safe"
        if stopped
        else "try again",
        code="store_held",
    )


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _read(path: str) -> str:
    """A file of /proc; empty where there is none, or its process has just gone."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
