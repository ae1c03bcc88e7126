"""What a value is: the predicates, `type` and `describe`.

Vectors are the only sequences, so `seq?` and `vector?` agree on them; characters are one-character
strings. `type` answers a small fixed vocabulary of keywords and never a host type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from holdfast.lang.api import Value
from holdfast.lang.meter import spend
from holdfast.lang.printer import display
from holdfast.lang.values import Entry, as_key, elements, graphemes, keyword, type_name, unkey


def identity(value: Value) -> Value:
    return value


def never(value: Value) -> bool:
    return False


def of(*kinds: type) -> Callable[[Value], bool]:
    """The predicate of values whose kind is one of these."""
    return lambda value: type(value) in kinds


is_integer, is_float = of(int), of(float)
is_vector = of(tuple, Entry)
is_collection = of(tuple, Entry, dict, frozenset)


def vector(*items: Value) -> tuple[Value, ...]:
    spend(len(items))
    return items


EXAMPLES, EXAMPLE_CHARS = 3, 120
ROWS_SCANNED, KEYS_SHOWN = 1000, 100
_KINDS: dict[type, str] = {int: "integer", float: "float"}
Table = dict[Any, Value]


def describe(value: Value) -> Table:
    """A bounded summary of a value's shape: type, count, and for each key its coverage in %.

    Of a collection at most `ROWS_SCANNED` items are looked at and `KEYS_SHOWN` keys shown.
    """
    found: Table = {"type": kind_name(value)}
    if type(value) is dict:
        found["count"] = len(value)
        found["keys"] = _keys([value], present=False)
    elif isinstance(value, tuple | frozenset):
        items = list(value) if isinstance(value, tuple) else elements(value)
        found["count"] = len(items)
        items = items[:ROWS_SCANNED]
        spend(len(items))
        found["scanned"] = len(items)
        found["item_types"] = _histogram(items)
        if any(type(item) is dict for item in items):
            found["keys"] = _keys(items, present=True)
        found["examples"] = _examples(items)
    else:
        if type(value) is str:
            found["count"] = len(graphemes(value))
        found["sample"] = _example(value)
    return _keyed(found)


def _keyed(found: Table) -> Table:
    return {keyword(name): item for name, item in found.items()}


def kind_name(value: Value) -> str:
    return _KINDS.get(type(value)) or type_name(value)


def _histogram(items: list[Value]) -> Table:
    return dict(Counter(map(kind_name, items)))


def _keys(rows: list[Value], *, present: bool) -> Table:
    values: dict[Any, list[Value]] = {}
    for row in rows:
        if type(row) is dict:
            spend(len(row))
            for key, item in row.items():
                if key in values or len(values) < KEYS_SHOWN:
                    values.setdefault(key, []).append(item)
    found = {}
    for key, items in values.items():
        about: Table = {"types": _histogram(items), "examples": _examples(items)}
        if present:
            about |= {"present": len(items), "pct": round(100 * len(items) / len(rows), 1)}
        found[key] = _keyed(about)
    return found


def _examples(items: list[Value]) -> tuple[Value, ...]:
    shown = dict.fromkeys(as_key(_example(item)) for item in items)
    return tuple(map(unkey, list(shown)[:EXAMPLES]))


def _example(value: Value) -> Value:
    """The value itself where it is small, else the beginning of its text."""
    if is_collection(value) or type(value) is str:
        text = display(value, EXAMPLE_CHARS)
        if type(value) is not str:
            return text[:EXAMPLE_CHARS]
        return value if len(value) <= EXAMPLE_CHARS else text[:EXAMPLE_CHARS] + "…"
    return value
