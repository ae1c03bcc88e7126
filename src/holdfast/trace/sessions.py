"""Which session the running code belongs to: by context variable, so tasks and threads never mix.

Owns the ambient session and its fallback. Does not own the rows (`store`). A nested session's id is
`parent/child`, so the tree needs no column. Code without a session of its own (a bare thread)
belongs to the process's first one. Invariants: ending the current session gives back its parent;
an exception that leaves a session's block remembers that session, whoever records it later.
"""

from __future__ import annotations

import os
from contextvars import ContextVar

from holdfast.trace.describe import own_dict

ID_CHARS_MAX = 180
_NOTE = "__agentlog__"

_current: ContextVar[str] = ContextVar("agentlog_session", default="")


class Sessions:
    """The sessions this process opened. `parent` is what its outermost ones nest below."""

    def __init__(self, parent: str = "") -> None:
        self.parent, self.first = parent, ""
        self._open: dict[str, int] = {}  # by which process: a fork inherits, it does not own

    def current(self) -> str:
        """The ambient session id; empty when there is none yet."""
        return _current.get() or self.first

    def enter(self, session_id: str) -> None:
        _current.set(session_id)
        self.first = self.first or session_id
        self._open[session_id] = os.getpid()

    def nest(self, own: str) -> str:
        """The full id of a new session with this own part, below the ambient one."""
        parent = self.current() or self.parent
        return f"{parent}/{own}" if parent and len(parent) < ID_CHARS_MAX else own

    def leave(self, session_id: str) -> None:
        if _current.get() == session_id:
            above = session_id.rpartition("/")[0]
            _current.set(above if above in self._open else "")
        if self.first == session_id:
            self.first = ""
        self._open.pop(session_id, None)

    def left_open(self) -> list[str]:
        """What this process opened and did not end, innermost first; nothing that a fork had."""
        return [name for name, owner in reversed(self._open.items()) if owner == os.getpid()]


def remember(error: BaseException, session_id: str) -> None:
    """Note on the exception where it was raised; the innermost session's note stands."""
    notes = own_dict(error)
    if notes is not None:
        notes.setdefault(_NOTE, [session_id, False])


def raised_in(error: BaseException) -> str:
    """The session an exception was raised in, if its block has been left already."""
    note = (own_dict(error) or {}).get(_NOTE)
    return note[0] if type(note) is list else ""


def first_time(error: BaseException) -> bool:
    """Whether this exception has not been recorded yet; marks it as recorded."""
    notes = own_dict(error)
    if notes is None:
        return True
    note = notes.setdefault(_NOTE, ["", False])
    fresh = type(note) is list and not note[1]
    if type(note) is list:
        note[1] = True
    return fresh
