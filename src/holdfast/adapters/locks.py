"""Exclusive use of one workspace, proved by the kernel.

Owns one file lock per directory, kept beside it so that no sandbox mounts it. Whoever works in the
directory holds the lock, and so does every child it starts there: a `git` that outlives a killed
Holdfast, and the first process of a sandbox, inherit the descriptor. Obtaining the lock therefore
proves that nothing else still writes. Locks are advisory and vanish with their last holder.

Invariant: the file is a plain empty file. A directory descriptor must never reach a sandbox, which
could walk out of its root through it.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from holdfast.errors import Unavailable

_POLL_S = 0.005


def lock_path(directory: Path) -> Path:
    return directory.with_name(directory.name + ".lock")


def try_lock(directory: Path) -> int | None:
    """A descriptor that holds the lock until it and all its copies are closed; None when taken."""
    descriptor = os.open(lock_path(directory), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def wait_until_free(directory: Path) -> None:
    """Block until nobody holds the lock. Returns at once when nobody does."""
    descriptor = os.open(lock_path(directory), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


@contextmanager
def held(*directories: Path, wait_s: float = 60.0) -> Iterator[tuple[int, ...]]:
    """Hold the locks of all `directories`, in the order given; yields descriptors for children.

    Raises Unavailable when a lock is still taken after `wait_s`.
    """
    deadline = time.monotonic() + wait_s
    with ExitStack() as stack:
        descriptors = []
        for directory in directories:
            while (descriptor := try_lock(directory)) is None:
                if time.monotonic() > deadline:
                    raise Unavailable(
                        f"{directory} is still in use after {wait_s:g} s",
                        hint="another Holdfast process or its command works there",
                    )
                time.sleep(_POLL_S)
            stack.callback(os.close, descriptor)
            descriptors.append(descriptor)
        yield tuple(descriptors)
