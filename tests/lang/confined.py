"""Walls for tests: a thread that is confined ends with its confinement, the process does not."""

import ctypes
import errno
import struct
import threading
from collections.abc import Callable

from holdfast.lang import walls

ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def on_a_thread_of_its_own(work: Callable[[], object]) -> object:
    """Run `work` where Landlock and seccomp end with the thread, not with the test process."""
    answer: list[object] = []

    def body() -> None:
        try:
            answer.append(work())
        except BaseException as error:
            answer.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return answer[0]


def refuse_landlock() -> None:
    """Put this thread under a filter that answers every Landlock call with ENOSYS."""
    refuse_call(444, 447)


def refuse_call(first: int, end: int | None = None) -> None:
    """Answer the calls from `first` up to `end` with ENOSYS on this thread."""
    ctypes.CDLL(None).prctl(walls.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    code = [
        (0x20, 0, 0, 0),
        (0x35, 0, 2, first),
        (0x35, 1, 0, end or first + 1),
        (0x06, 0, 0, ERRNO | errno.ENOSYS),
        (0x06, 0, 0, ALLOW),
    ]
    walls.restrict_calls(b"".join(struct.pack("=HBBI", *row) for row in code))
