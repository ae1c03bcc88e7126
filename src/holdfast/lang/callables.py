"""What can be called: functions, keywords, maps, sets, vectors and definitions.

Owns lookup by key (`lookup`, with the flexible match of keyword and string keys) and `as_function`,
which turns every callable into a plain Python function. Owns no control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from operator import contains, itemgetter
from types import FunctionType
from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.meter import ACTIVE
from holdfast.lang.values import Entry, Keyword, Symbol, Var, as_key, graphemes, keyword, type_name

MISSING = object()
Function = Callable[..., Any]


def find_key(table: dict[Any, Value], key: Value) -> Any:
    """The stored key that answers for `key`: itself, the other type, hyphens as underscores.

    `MISSING` when there is none. The exact key wins.
    """
    stored = as_key(key)
    if stored in table:
        return stored
    if type(key) is Keyword:
        name: str = key.name
        if name in table:
            return name
        if "-" in name:
            name = name.replace("-", "_")
            other = keyword(name)
            return other if other in table else name if name in table else MISSING
    elif type(key) is str and key:
        other = keyword(key)
        if other in table:
            return other
        if "-" in key:
            name = key.replace("-", "_")
            other = keyword(name)
            return name if name in table else other if other in table else MISSING
    return MISSING


def lookup(container: Value, key: Value, default: Value = None) -> Value:
    """`get`: maps by flexible key, sets by member, vectors and strings by index; else default."""
    kind = type(container)
    if kind is dict:
        found = find_key(container, key)
        return default if found is MISSING else container[found]
    if kind is tuple or kind is Entry:
        index = _index(key)
        return container[index] if 0 <= index < len(container) else default
    if kind is frozenset:
        stored = as_key(key)
        return key if stored in container else default
    if kind is str:
        index = _index(key)
        if index < 0:
            return default
        chars = graphemes(container)
        return chars[index] if index < len(chars) else default
    return default


def has_key(container: Value, key: Value) -> bool:
    return lookup(container, key, MISSING) is not MISSING


def _index(key: Value) -> int:
    return key if type(key) is int else -1


def is_callable(value: Value) -> bool:
    return type(value) in _CALLABLE


_CALLABLE = frozenset({FunctionType, Keyword, Symbol, dict, frozenset, tuple, Entry, Var})


def read_all(key: Keyword, rows: Sequence[Value]) -> list[Value] | None:
    """The field of every row at the speed of C; None where a row is no map or lacks the key.

    Text keys answer only when no row has the keyword itself, which would win.
    """
    try:
        return list(map(itemgetter(key), rows))
    except KeyError:
        pass
    except TypeError:  # of all values, only a map takes a keyword or a text in brackets
        return None
    try:
        found = list(map(itemgetter(key.name), rows))
        return None if any(map(contains, rows, repeat(key))) else found
    except (KeyError, TypeError):
        return None


def as_function(value: Value) -> Function:
    """A plain Python function for anything callable; refuses the rest."""
    kind = type(value)
    if kind is FunctionType:
        return value  # type: ignore[no-any-return]  # the check above is the proof
    if kind is Keyword:
        name = value.name

        def by_keyword(container: Value, default: Value = None) -> Value:
            if type(container) is dict:
                if value in container:
                    return container[value]
                if name in container:
                    return container[name]
            return lookup(container, value, default)

        return by_keyword
    if kind is Symbol:
        return lambda container, default=None: lookup(container, value, default)
    if kind is dict:
        return lambda key, default=None: lookup(value, key, default)
    if kind is frozenset:
        return lambda key: key if as_key(key) in value else None
    if kind is tuple or kind is Entry:

        def by_index(index: Value) -> Value:
            if type(index) is not int or not 0 <= index < len(value):
                shown = index if type(index) is int else f"that is a {type_name(index)}"
                raise LangError(
                    "type_error", f"a vector of {len(value)} items has no index {shown}"
                )
            return value[index]

        return by_index
    if kind is Var:
        return as_function(ACTIVE.get().definition(value.name))
    raise LangError(
        "not_callable",
        f"{type_name(value)} cannot be called",
        hint="the first form in ( ) must be a function, keyword, map, set or vector",
    )
