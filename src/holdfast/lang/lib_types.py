"""What a value is: the predicates, `type` and `describe`.

Vectors are the only sequences, so `seq?` and `vector?` agree on them; characters are one-character
strings. `type` answers a small fixed vocabulary of keywords and never a host type.
"""

from __future__ import annotations

from typing import Any

from holdfast.lang.api import Value
from holdfast.lang.callables import is_callable
from holdfast.lang.meter import spend
from holdfast.lang.values import (
    Entry,
    Keyword,
    Symbol,
    Var,
    elements,
    entries,
    is_function,
    is_true,
    keyword,
    type_name,
)


def is_nil(value: Value) -> bool:
    return value is None


def is_some(value: Value) -> bool:
    return value is not None


def is_boolean(value: Value) -> bool:
    return type(value) is bool


def boolean(value: Value) -> bool:
    return is_true(value)


def identity(value: Value) -> Value:
    return value


def is_number(value: Value) -> bool:
    return type(value) is int or type(value) is float


def is_integer(value: Value) -> bool:
    return type(value) is int


def is_float(value: Value) -> bool:
    return type(value) is float


def is_natural(value: Value) -> bool:
    return type(value) is int and value >= 0


def is_positive_integer(value: Value) -> bool:
    return type(value) is int and value > 0


def is_negative_integer(value: Value) -> bool:
    return type(value) is int and value < 0


def never(value: Value) -> bool:
    return False


def is_string(value: Value) -> bool:
    return type(value) is str


def is_char(value: Value) -> bool:
    return type(value) is str and len(value) == 1


def is_keyword(value: Value) -> bool:
    return type(value) is Keyword


def is_symbol(value: Value) -> bool:
    return type(value) is Symbol


def is_ident(value: Value) -> bool:
    return type(value) in (Keyword, Symbol)


def is_vector(value: Value) -> bool:
    return isinstance(value, tuple)


def is_set(value: Value) -> bool:
    return type(value) is frozenset


def is_map(value: Value) -> bool:
    return type(value) is dict


def is_collection(value: Value) -> bool:
    return isinstance(value, tuple | dict | frozenset)


def is_seqable(value: Value) -> bool:
    return value is None or isinstance(value, tuple | dict | frozenset | str)


def is_associative(value: Value) -> bool:
    return isinstance(value, tuple | dict)


def is_map_entry(value: Value) -> bool:
    return type(value) is Entry


def is_fn(value: Value) -> bool:
    return is_function(value)


def is_ifn(value: Value) -> bool:
    return is_callable(value) or type(value) is Symbol


def is_var(value: Value) -> bool:
    return type(value) is Var


def is_true_value(value: Value) -> bool:
    return value is True


def is_false_value(value: Value) -> bool:
    return value is False


def type_of(value: Value) -> Value:
    return None if value is None else keyword(type_name(value))


def vector(*items: Value) -> tuple[Value, ...]:
    spend(len(items))
    return items


EXAMPLES = 3
KEYS_SHOWN = 50


def describe(value: Value) -> dict[Any, Value]:
    """A summary of a value's shape: type, count, and for rows the coverage of each key in %."""
    found: dict[Any, Value] = {keyword("type"): type_of(value)}
    if isinstance(value, str | tuple | dict | frozenset):
        found[keyword("count")] = len(value)
    if isinstance(value, dict):
        found[keyword("keys")] = tuple(pair[0] for pair in entries(value)[:KEYS_SHOWN])
    elif isinstance(value, tuple | frozenset):
        items = list(value) if isinstance(value, tuple) else elements(value)
        spend(len(items))
        rows = [item for item in items if type(item) is dict]
        names = sorted({type_name(item) for item in items})
        found[keyword("item-types")] = tuple(keyword(name) for name in names)
        if rows:
            found[keyword("keys")] = _coverage(rows)
        found[keyword("examples")] = tuple(items[:EXAMPLES])
    elif value is not None:
        found[keyword("example")] = value
    return found


def _coverage(rows: list[dict[Any, Value]]) -> dict[Any, Value]:
    counts: dict[Any, int] = {}
    for row in rows:
        spend(len(row))
        for key in row:
            counts[key] = counts.get(key, 0) + 1
    shown = list(counts.items())[:KEYS_SHOWN]
    return {key: round(100 * count / len(rows)) for key, count in shown}
