"""Exclusive use of one workspace, proved by the kernel.

Owns one file lock per directory, kept beside it so that no sandbox mounts it. Whoever works in the
directory holds the lock, and so does every child it starts there: a `git` that outlives a killed
Holdfast, and the first process of a sandbox, inherit the descriptor. Locks are advisory and vanish
with their last holder.

bwrap's second process waits for its first to set up its users, without end: if the first is killed
in that instant, the second never runs a command, never ends, and holds the lock for ever. Whoever
waits for a lock therefore ends such orphans (`end_orphans`).

A dying process closes its files before its pid namespace is emptied, so a sandbox's first process
is named in the lock file too, by bwrap itself, and whoever obtains the lock waits for its end.
Obtaining the lock therefore proves that nothing else still writes.

Invariant: the lock is a plain file of its own. A directory descriptor must never reach a sandbox,
which could walk out of its root through it.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from holdfast.errors import Unavailable

_POLL_S = 0.005
_ORPHANS_S = 0.2
_DYING_S = 5.0
_FIRST_PROCESS = re.compile(rb'"child-pid": (\d+)')


def lock_path(directory: Path) -> Path:
    return directory.with_name(directory.name + ".lock")


def try_lock(directory: Path) -> int | None:
    """A descriptor that holds the lock until it and all its copies are closed; None when taken."""
    descriptor = os.open(lock_path(directory), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _outlive_recorded(descriptor)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor


def wait_until_free(directory: Path) -> None:
    """Block until nobody holds the lock and the recorded process is dead."""
    os.close(_obtain(directory, deadline=None))


def open_record(directory: Path) -> int:
    """A descriptor, without the lock, into which bwrap writes its first process (`--info-fd`)."""
    return os.open(lock_path(directory), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def held(*directories: Path, wait_s: float = 60.0) -> Iterator[tuple[int, ...]]:
    """Hold the locks of all `directories`, in the order given; yields descriptors for children.

    Raises Unavailable when a lock is still taken after `wait_s`.
    """
    deadline = time.monotonic() + wait_s
    with ExitStack() as stack:
        descriptors = []
        for directory in directories:
            descriptors.append(_obtain(directory, deadline))
            stack.callback(os.close, descriptors[-1])
        yield tuple(descriptors)


def end_orphans(directory: Path) -> None:
    """Kill sandboxes of `directory` whose first process is dead. A living sandbox is left alone."""
    wanted = b"\0--bind\0" + os.fsencode(directory) + b"\0"
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it ended meanwhile
            process = Path(entry.path)
            if _name(process) != "bwrap" or wanted not in (process / "cmdline").read_bytes():
                continue
            status = dict(
                line.split(":\t", 1)
                for line in (process / "status").read_text().splitlines()
                if ":\t" in line
            )
            # The first process of a pid namespace of its own, without the bwrap that made it.
            inside = status["NSpid"].split()[1:] == ["1"]
            if inside and _name(Path("/proc") / status["PPid"]) != "bwrap":
                os.kill(int(entry.name), signal.SIGKILL)


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except FileNotFoundError:
        return ""


def _obtain(directory: Path, deadline: float | None) -> int:
    """The lock of `directory`; raises Unavailable past the deadline, a `time.monotonic` value."""
    started = looked = time.monotonic()
    while (descriptor := try_lock(directory)) is None:
        now = time.monotonic()
        if deadline is not None and now > deadline:
            raise Unavailable(
                f"{directory} is still in use after {now - started:.0f} s",
                hint="another Holdfast process or its command works there",
            )
        if now > looked + _ORPHANS_S:
            end_orphans(directory)
            looked = now
        time.sleep(_POLL_S)
    return descriptor


def _outlive_recorded(descriptor: int) -> None:
    """Wait for the recorded process, which is past its last file already, and forget it."""
    told = _FIRST_PROCESS.search(os.pread(descriptor, 4096, 0))
    if told is None:
        return
    with suppress(OSError):
        process = os.pidfd_open(int(told[1]))
        try:
            # Another program by now means that the number was given away again.
            if Path(f"/proc/{int(told[1])}/comm").read_text().strip() == "bwrap":
                select.select([process], [], [], _DYING_S)
        finally:
            os.close(process)
    os.ftruncate(descriptor, 0)
