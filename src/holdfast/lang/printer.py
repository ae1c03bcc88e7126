"""Values to text: `readable` is the reader's inverse, `display` is what `str` and `println` show.

Owns the text form of every value. Work and output are bounded: the writer charges fuel per node
and stops at a size or nesting that the caller's limits name. Floats print as Java prints doubles.
Functions, dates and results of `def` print as marks that the reader refuses.
"""

from __future__ import annotations

import math

from holdfast.lang.api import Value
from holdfast.lang.dates import Temporal
from holdfast.lang.meter import ACTIVE, refuse_size, spend
from holdfast.lang.values import Entry, Keyword, Regex, Stored, elements, entries, int_or_none

_STRING_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
)


def readable(value: Value) -> str:
    """The text that reads back as an equal value (`pr-str`)."""
    return _write(value)


def display(value: Value, stop_chars: int = 0) -> str:
    """What `str` makes of one value: strings bare, nil empty, collections as `readable`.

    With `stop_chars` the text may end there, and work ends with it.
    """
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # the check above is the proof
    if value is None:
        return ""
    if kind is float and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if kind is Regex:
        return str(value.source)
    if isinstance(value, Temporal):
        return str(value)
    return _write(value, stop_chars)


def number_text(value: float) -> str:
    """A number as Clojure prints it. Refuses integers beyond `int_digits`."""
    if type(value) is int:
        limit = ACTIVE.get().limits.int_digits
        if value.bit_length() > limit * 3.33:
            refuse_size("int_digits", "printing an integer")
        return _int_text(value)
    if not math.isfinite(value):
        return "##NaN" if value != value else "##Inf" if value > 0 else "##-Inf"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        whole = int_or_none(value)
        return repr(value) if whole is None or value == 0 else f"{whole}.0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        mantissa, _, exponent = _scientific(value).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}E{int(exponent)}"


def _int_text(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python's own limit on digits, which is the process's and not ours
        base = 10**4000
        high, low = divmod(abs(value), base)
        sign = "-" if value < 0 else ""
        return f"{sign}{_int_text(high)}{low:04000d}"


def _scientific(value: float) -> str:
    """The shortest digits that round-trip, with an exponent, from `repr` without one."""
    sign, digits = ("-", repr(value)[1:]) if value < 0 else ("", repr(value))
    whole, _, fraction = digits.partition(".")
    if whole != "0":
        shift = len(whole) - 1
        significant = (whole + fraction).rstrip("0") or "0"
    else:
        stripped = fraction.lstrip("0")
        shift = -(len(fraction) - len(stripped) + 1)
        significant = stripped.rstrip("0")
    return f"{sign}{significant[0]}.{significant[1:] or '0'}e{shift}"


def _write(root: Value, stop_chars: int = 0) -> str:
    """Depth-first with an own stack of pending text and values; `_Text` tells them apart."""
    if type(root) is str:
        return f'"{root.translate(_STRING_ESCAPES)}"'
    limits = ACTIVE.get().limits
    out: list[str] = []
    size = 0
    stack: list[tuple[Value, int]] = [(root, 0)]
    while stack:
        value, depth = stack.pop()
        kind = type(value)
        if kind is _Text:
            piece = value.text
        elif kind is tuple or kind is dict or kind is frozenset or kind is Entry:
            if depth > limits.value_nesting:
                refuse_size("value_nesting", "the nesting of a printed value")
            spend(1 + len(value))
            piece = _open(value, depth, stack)
        else:
            piece = _atom(value)
        out.append(piece)
        size += len(piece)
        if stop_chars and size > stop_chars:
            break
        if size > limits.string_chars:
            refuse_size("string_chars", "the text of a value")
    return "".join(out)


class _Text:
    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


_SPACE = _Text(" ")
_COMMA = _Text(", ")


def _open(value: Value, depth: int, stack: list[tuple[Value, int]]) -> str:
    """Push a collection's parts, last first; returns its opener."""
    below = depth + 1
    if type(value) is dict:
        stack.append((_Text("}"), below))
        pairs = entries(value)
        for index in range(len(pairs) - 1, -1, -1):
            name, item = pairs[index]
            stack += ((item, below), (_SPACE, below), (name, below))
            if index:
                stack.append((_COMMA, below))
        return "{"
    opener, closer = ("#{", "}") if type(value) is frozenset else ("[", "]")
    stack.append((_Text(closer), below))
    items = elements(value) if type(value) is frozenset else value
    for index in range(len(items) - 1, -1, -1):
        stack.append((items[index], below))
        if index:
            stack.append((_SPACE, below))
    return opener


def _atom(value: Value) -> str:
    kind = type(value)
    if kind is str:
        return f'"{value.translate(_STRING_ESCAPES)}"'
    if kind is Keyword:
        return f":{value.name}"
    if value is None:
        return "nil"
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is float:
        return number_text(value)
    if kind is Regex:
        return '#"' + str(value.source).replace('"', '\\"') + '"'
    if isinstance(value, Temporal):
        tag = "inst" if value.NAME in ("date", "instant") else value.NAME
        return f'#{tag} "{value}"'
    if kind is Stored:
        return "#fn[stored]"
    if callable(value):
        return f"#fn[{function_name(value)}]"
    return repr(value)


def function_name(value: Value) -> str:
    """The name a function shows: its own in the language, never the host's."""
    name = getattr(value, "lisp_name", "")
    if name:
        return str(name)
    info = getattr(value, "__globals__", {}).get("k_info", {})
    found = info.get(getattr(value, "__code__", None))
    return found.name if found is not None and found.name else "anonymous"
