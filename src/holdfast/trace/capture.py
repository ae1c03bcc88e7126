"""What a failure event holds: error, place, the bottom frame's values, causes as text.

Owns the way from an exception to a payload. Does not own the hooks that bring exceptions here
(`hooks`), nor sessions. Invariants: the bottom frame is where the exception was raised, frames of
this package never count; only its locals are described, the names on the failing line first; no
code of the program runs (not `__str__` of the exception either: its arguments are described);
nothing here raises; no syntax tree is built.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from types import (
    CodeType,
    FrameType,
    FunctionType,
    ModuleType,
    TracebackType,
    WrapperDescriptorType,
)
from typing import Any

from holdfast.trace.describe import (
    LIMITS,
    Limits,
    class_name,
    clip,
    describe,
    isinstance_of,
    own_dict,
)
from holdfast.trace.redact import Redactor

LOCALS_MAX = 20
CAUSES_MAX = 5
MESSAGE_CHARS_MAX = 1000
SOURCE_CHARS_MAX = 300
SOURCE_BYTES_MAX = 4_000_000

_HERE = os.path.dirname(__file__)
_PLAIN: tuple[type, ...] = (str, int, float, bytes)
_NAME = re.compile(r"[A-Za-z_]\w*")
_FIRST = Limits(text_chars=600, items=12, depth=4, nodes=120)
_REST = Limits(text_chars=160, items=6, depth=3, nodes=24)


def failure(error: BaseException, redactor: Redactor, origin: str) -> dict[str, Any]:
    """The payload of a failure event. `origin` says how it came: main, thread, tool, …"""
    payload: dict[str, Any] = {"error": error_of(error, redactor), "origin": origin}
    bottom = bottom_frame(traceback_of(error))
    if bottom is not None:
        frame, line = bottom.tb_frame, bottom.tb_lineno
        file = frame.f_code.co_filename
        payload["location"] = {
            "file": redactor.text(file),
            "line": line,
            "function": frame.f_code.co_name,
        }
        first, last = _span(frame.f_code, bottom.tb_lasti, line)
        source = _source(file, first, last)
        payload["source"] = clip(source, redactor, SOURCE_CHARS_MAX)
        payload["locals"] = _locals(frame, source, redactor)
    causes = list(islice(_causes(error, redactor), CAUSES_MAX))
    if causes:
        payload["causes"] = causes
    return payload


def error_of(error: BaseException, redactor: Redactor) -> dict[str, str]:
    """Type and message, the message from the arguments and notes alone."""
    return {
        "type": class_name(type(error)),
        "msg": clip(_message(error, redactor), redactor, MESSAGE_CHARS_MAX),
    }


def traceback_of(error: BaseException) -> TracebackType | None:
    found = BaseException.__dict__["__traceback__"].__get__(error)
    return found if isinstance(found, TracebackType) else None


def bottom_frame(traceback: TracebackType | None) -> TracebackType | None:
    """The last entry that is not this package's own, so a capturing stream is never to blame."""
    bottom = None
    while traceback is not None:
        if os.path.dirname(traceback.tb_frame.f_code.co_filename) != _HERE or bottom is None:
            bottom = traceback
        traceback = traceback.tb_next
    return bottom


def _message(error: BaseException, redactor: Redactor) -> str:
    arguments = BaseException.__dict__["args"].__get__(error)
    if _is_plain(error, arguments) and _text_is_built_in(type(error)):
        text = str(error)
    else:
        described = [describe(item, redactor, limits=LIMITS) for item in arguments[:4]]
        text = ", ".join(str(item.get("value", item["type"])) for item in described)
    notes = (own_dict(error) or {}).get("__notes__")
    if type(notes) is not list:
        return text
    return "\n".join([text, *(note for note in notes if type(note) is str)])


def _is_plain(error: BaseException, arguments: tuple[Any, ...]) -> bool:
    """Whether the message can be put together from plain values alone."""
    parts = list(arguments)
    if isinstance_of(type(error), (OSError,)):
        parts += [OSError.__dict__[name].__get__(error) for name in ("filename", "filename2")]
    return all(part is None or any(type(part) is plain for plain in _PLAIN) for part in parts)


def _text_is_built_in(kind: type) -> bool:
    """Whether `str` of such an exception runs C code only."""
    for base in type.__dict__["__mro__"].__get__(kind):
        found = type.__dict__["__dict__"].__get__(base).get("__str__")
        if found is not None:
            return type(found) is WrapperDescriptorType
    return False


def _span(code: CodeType, last_instruction: int, line: int) -> tuple[int, int]:
    """First and last line of the failing expression, at most ten lines."""
    position = next(islice(code.co_positions(), last_instruction // 2, None), None)
    if position is None or position[0] is None or position[1] is None:
        return line, line
    first, last = position[0], position[1]
    return (first, min(last, first + 9)) if first <= line <= last else (line, line)


def _source(file: str, first: int, last: int) -> str:
    """The lines as they stand in the file now; empty where there is no such file."""
    try:
        if not os.path.isfile(file) or os.path.getsize(file) > SOURCE_BYTES_MAX:
            return ""
        with open(file, encoding="utf-8", errors="replace") as stream:
            lines = islice(stream, first - 1, last)
            return " ".join(line.strip() for line in lines)
    except (OSError, ValueError):
        return ""


def _locals(frame: FrameType, source: str, redactor: Redactor) -> dict[str, Any]:
    values = frame.f_locals
    if type(values) is not dict:  # a class body may run in a mapping of the program's own
        return {}
    on_the_line = [name for name in dict.fromkeys(_NAME.findall(source)) if name in values]
    others = [
        name
        for name, value in list(values.items())
        if type(name) is str and not name.startswith("__") and not _is_furniture(value)
    ]
    names = list(dict.fromkeys([*on_the_line, *others]))[:LOCALS_MAX]
    return {
        name: describe(
            values[name], redactor, name=name, limits=_FIRST if name in on_the_line else _REST
        )
        for name in names
    }


def _is_furniture(value: Any) -> bool:
    """Modules, functions and classes explain a crash only when they stand on the failing line."""
    return isinstance_of(type(value), (ModuleType, FunctionType, type))


def _causes(error: BaseException, redactor: Redactor) -> Iterator[str]:
    """Each exception behind this one, nearest first, as one line about its own bottom frame."""
    seen = {id(error)}
    waiting = _behind(error)
    while waiting:
        cause = waiting.pop(0)
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        described = error_of(cause, redactor)
        bottom = bottom_frame(traceback_of(cause))
        place = ""
        if bottom is not None:
            code = bottom.tb_frame.f_code
            place = f" at {code.co_filename}:{bottom.tb_lineno} in {code.co_name}"
        yield f"{described['type']}: {described['msg']}{redactor.text(place)}"
        waiting += _behind(cause)


def _behind(error: BaseException) -> list[BaseException]:
    members = BaseException.__dict__
    cause = members["__cause__"].__get__(error)
    found = [cause] if cause is not None else []
    if cause is None and not members["__suppress_context__"].__get__(error):
        context = members["__context__"].__get__(error)
        found = [context] if context is not None else []
    if isinstance_of(type(error), (BaseExceptionGroup,)):
        found += BaseExceptionGroup.__dict__["exceptions"].__get__(error)
    return found
