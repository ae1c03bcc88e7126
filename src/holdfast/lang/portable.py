"""Values to and from what a host holds: plain Python data, sizes, tool arguments.

Owns the conversion at the border: lists become vectors, dicts maps with checked keys, and nothing
else passes, so that no host object can be reached from a program. Work is iterative or bounded by
depth; sizes are estimates of the memory a value takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from gc import get_referents
from itertools import chain
from types import FunctionType
from typing import Any

from holdfast.lang.api import LangError, Value, over_limit
from holdfast.lang.dates import TEMPORAL
from holdfast.lang.meter import ACTIVE
from holdfast.lang.values import (
    Entry,
    Key,
    Keyword,
    Regex,
    Stored,
    Symbol,
    Var,
    as_key,
    keyword,
    type_name,
    unkey,
)

DEPTH_MAX = 200
_PLAIN = frozenset(
    {type(None), bool, int, float, str, Keyword, Symbol, Var, Regex, Stored, *TEMPORAL}
)
_TEXT_KEYS = frozenset({str, Keyword})


def from_host(value: Any, depth: int = 0) -> Value:
    """A host's data as a value; refuses objects that the language has no value for."""
    kind = type(value)
    if kind in _PLAIN or kind is FunctionType:
        return value
    if depth > DEPTH_MAX:
        raise LangError("type_error", f"data from the host is nested deeper than {DEPTH_MAX}")
    if kind is tuple or kind is list:
        if _are_rows(value):
            return tuple(map(dict.copy, value))
        below = depth + 1
        return tuple([item if type(item) in _PLAIN else from_host(item, below) for item in value])
    if kind is Entry:
        return value
    if kind is dict:
        if _TEXT_KEYS.issuperset(map(type, value)) and _PLAIN.issuperset(map(type, value.values())):
            return value.copy()  # a row of plain fields, checked at the speed of C
        below = depth + 1
        return {
            (key if type(key) is str else as_key(from_host(unkey(key), below))): (
                item if type(item) in _PLAIN else from_host(item, below)
            )
            for key, item in value.items()
        }
    if isinstance(value, Mapping):
        return {
            as_key(from_host(unkey(key), depth + 1)): from_host(item, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, Set):
        return frozenset(as_key(from_host(unkey(item), depth + 1)) for item in value)
    if isinstance(value, (int, float, str)):
        for plain in (bool, int, float, str):
            if isinstance(value, plain):
                return plain(value)
    raise LangError("type_error", f"the host gave a {kind.__name__}, which is no value")


def _are_rows(items: Sequence[Any]) -> bool:
    """Whether all are maps of plain fields under text keys, asked at the speed of C.

    The collector visits the values of a map, and its keys only if one of them is no plain text.
    """
    if set(map(type, items)) != {dict}:
        return False
    parts = get_referents(*items)
    only_values = len(parts) == sum(map(len, items))
    return _PLAIN.issuperset(map(type, parts)) and (
        only_values or _TEXT_KEYS.issuperset(map(type, chain.from_iterable(items)))
    )


class Granted(Mapping[Any, Value]):
    """A context that was checked and copied once, for a host that runs many programs over it."""

    __slots__ = ("_values",)

    def __init__(self, context: Mapping[Any, Any]) -> None:
        self._values = {key: from_host(value) for key, value in context.items()}

    def __getitem__(self, key: Any) -> Value:
        return self._values[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def tool_args(name: str, args: Value) -> dict[str, Value]:
    """A tool's named arguments: keyword keys as strings, hyphens as underscores, at every depth."""
    if args is None:
        return {}
    if type(args) is not dict:
        raise LangError(
            "tool_error",
            f"tool/{name} takes one map, got {type_name(args)}",
            hint=f"write (tool/{name} {{:name value}})",
        )
    found = _named(args)
    assert isinstance(found, dict)
    return found


def _named(value: Value) -> Value:
    kind = type(value)
    if kind is dict:
        return {_key(key): _named(item) for key, item in value.items()}
    if kind is tuple:
        return tuple([_named(item) for item in value])
    return value


def _key(key: Any) -> Any:
    return key.name.replace("-", "_") if type(key) is Keyword else key


def bounded(value: Value, what: str, limit: str) -> None:
    """Refuse a value whose size or nesting is beyond what may leave the program.

    Shared parts count every time they occur, as they would when the value is written.
    """
    limits = ACTIVE.get().limits
    most = getattr(limits, limit)
    if measured_bytes(value, most) > most:
        code = "memory_limit_exceeded" if limit.startswith("memory") else "memory_exceeded"
        hint = "keep ids, counts and summaries, not whole results"
        raise over_limit(limit, f"{what} exceeds {most} bytes ({limit})", code=code, hint=hint)
    level, depth = [value], 0
    while level:
        if depth > limits.value_nesting:
            raise over_limit(
                "value_nesting",
                f"{what} is nested deeper than {limits.value_nesting} (value_nesting)",
            )
        level, depth = [part for item in level for part in _parts(item)], depth + 1


def _parts(value: Value) -> Iterable[Value]:
    if isinstance(value, tuple | frozenset):
        return value
    if type(value) is dict:
        return [*value.keys(), *value.values()]
    return (value.value,) if type(value) is Key else ()


def measured_bytes(value: Value, stop_bytes: int) -> int:
    """About how much memory a value takes; stops counting once it is over `stop_bytes`."""
    size = 0
    stack = [value]
    while stack and size <= stop_bytes:
        item = stack.pop()
        kind = type(item)
        if kind is str:
            size += 49 + len(item)
        elif kind is tuple or kind is Entry or kind is frozenset:
            size += 56 + 8 * len(item)
            stack.extend(item)
        elif kind is dict:
            size += 64 + 24 * len(item)
            stack.extend(item.keys())
            stack.extend(item.values())
        elif kind is Key:
            stack.append(item.value)
        elif kind is int:
            size += 28 + item.bit_length() // 8
        else:
            size += 32
    return size


def named_input(context: Mapping[Any, Any], name: str) -> Value:
    """The value of `data/name`: exact, as a keyword, or with underscores for hyphens; else nil."""
    for key in (name, keyword(name), name.replace("-", "_"), keyword(name.replace("-", "_"))):
        if key in context:
            value = context[key]
            return value if type(context) is Granted else from_host(value)
    return None
