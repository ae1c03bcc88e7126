"""The language's own values and what equality, order, keys and truth mean for them.

Owns: `Keyword`, `Symbol`, `Var`, `Regex`, the key wrapper `Key`, `equal`, `compare`, `as_key` and
the ordered views of maps and sets. Numbers, strings, vectors, maps and sets are Python's int,
float, str, tuple, dict and frozenset; Python's own `==` and `hash` are not enough for them, since
`True == 1` and `1 == 1.0` there. The rules here:

- `equal` (the `=` of the language) ignores int/float and never confuses booleans with numbers.
- Keys of maps and elements of sets are told apart strictly: 1, 1.0 and true are three keys.
  `as_key` wraps exactly the values that Python would confuse; `unkey` is its inverse.
- A published value is never mutated; dict order is never shown: views are sorted by `order`.
- Keywords are interned weakly, so names from source text cannot fill the table.
"""

from __future__ import annotations

import re
import threading
from codecs import utf_16_le_encode
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from operator import attrgetter, is_
from types import FunctionType
from typing import Any
from weakref import WeakValueDictionary

from holdfast.lang.api import LangError, Value
from holdfast.lang.dates import TEMPORAL, Temporal
from holdfast.lang.meter import ACTIVE, grow, spend


class Keyword:
    """A name that evaluates to itself. Identity is equality: make them with `keyword` only."""

    __slots__ = ("__weakref__", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f":{self.name}"


class _Named:
    """A name that equals those of its own kind."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Named) and type(other) is type(self) and other.name == self.name

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))


class Symbol(_Named):
    """A quoted name."""

    __slots__ = ()

    def __repr__(self) -> str:
        return self.name


class Var(_Named):
    """What `def` answers: the name that was defined."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"#'{self.name}"


class Regex:
    """A pattern with the source it was written as; one that was sent compiles at its first use."""

    __slots__ = ("_compiled", "source")

    def __init__(
        self, source: str, compiled: re.Pattern[str] | Callable[[], re.Pattern[str]]
    ) -> None:
        self.source = source
        self._compiled = compiled

    @property
    def compiled(self) -> re.Pattern[str]:
        made = self._compiled
        if not isinstance(made, re.Pattern):
            made = self._compiled = made()
        return made

    def __repr__(self) -> str:
        return f'#"{self.source}"'


class Reduced:
    """A reduction's early answer, as `reduced` makes it."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "#reduced"


class Stored:
    """A function as a parent holds it: its source and what it closes over. Never compiled there."""

    __slots__ = ("env", "source")

    def __init__(self, source: str, env: dict[str, Value]) -> None:
        self.source = source
        self.env = env


class Entry(tuple[Value, Value]):
    """A map entry: a pair that `key`, `val` and `map-entry?` know from other vectors."""

    __slots__ = ()


_INTERNED: WeakValueDictionary[str, Keyword] = WeakValueDictionary()
_INTERNING = threading.Lock()


def keyword(name: str) -> Keyword:
    found = _INTERNED.get(name)
    if found is None:
        with _INTERNING:
            found = _INTERNED.get(name)
            if found is None:
                found = Keyword(name)
                _INTERNED[name] = found
    return found


class Key:
    """A map key or set element that Python's own equality would confuse with another."""

    __slots__ = ("hashed", "token", "value")

    def __init__(self, value: Value, token: object) -> None:
        self.value = value
        self.token = token
        self.hashed = hash(token)

    def __eq__(self, other: object) -> bool:
        return type(other) is Key and self.hashed == other.hashed and self.token == other.token

    def __hash__(self) -> int:
        return self.hashed


TRUE_KEY = Key(True, ("bool", "true"))
FALSE_KEY = Key(False, ("bool", "false"))
PLAIN = frozenset({str, int, Keyword, type(None), Symbol, Var, Regex, FunctionType, *TEMPORAL})


def as_key(value: Value) -> Any:
    """The form in which a value is a key. Charges containers, refuses nothing."""
    return value if type(value) in PLAIN else _wrap(value)


def unkey(key: Any) -> Value:
    return key.value if type(key) is Key else key


def _wrap(value: Value) -> Any:
    if value is True:
        return TRUE_KEY
    if value is False:
        return FALSE_KEY
    kind = type(value)
    if kind is float:
        if value != value:
            return Key(value, ("nan", id(value)))
        return Key(value, ("float", value)) if value == int_or_none(value) else value
    if kind is tuple or kind is Entry:
        spend(len(value))
        items = tuple(as_key(item) for item in value)
        if all(map(is_, items, value)) and not _holds_tuple(items):
            return items
        return Key(value, ("vector", items))
    if kind is dict:
        spend(len(value))
        return Key(value, ("map", frozenset((key, as_key(item)) for key, item in value.items())))
    if kind is Key:
        raise AssertionError("a key is never wrapped twice")
    return value


def _holds_tuple(items: tuple[Any, ...]) -> bool:
    # Nested raw tuples are hashed by C code without a depth check, so they get wrapped.
    return any(type(item) is tuple for item in items)


def int_or_none(number: float) -> int | None:
    """The integer a float stands for exactly; None for fractions, infinities and NaN."""
    return int(number) if number.is_integer() else None


def is_true(value: Value) -> bool:
    return value is not None and value is not False


def equal(one: Value, other: Value) -> bool:
    """The language's `=`. Charges the elements it compares."""
    kind, there = type(one), type(other)
    if kind is there:
        if kind is tuple or kind is Entry:
            return _same_items(one, other)
        if kind is dict:
            return one is other or _same_entries(one, other)
        return bool(one == other)
    if kind is int or kind is float:
        return (there is int or there is float) and bool(one == other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return _same_items(one, other)
    return False


def _same_items(one: tuple[Value, ...], other: tuple[Value, ...]) -> bool:
    if one is other:
        return True
    if len(one) != len(other):
        return False
    spend(len(one))
    return all(map(equal, one, other))


def _same_entries(one: dict[Any, Value], other: dict[Any, Value]) -> bool:
    if len(one) != len(other):
        return False
    spend(len(one))
    return all(key in other and equal(item, other[key]) for key, item in one.items())


def compare(one: Value, other: Value) -> int:
    """Negative, zero or positive as Clojure's `compare`; refuses values without a common order."""
    if one is other:
        return 0
    if one is None:
        return -1
    if other is None:
        return 1
    kind, there = type(one), type(other)
    if (kind is int or kind is float) and (there is int or there is float):
        return int(one > other) - int(one < other)
    if kind is there:
        if kind is str:
            return compare_text(one, other)
        if kind is Keyword or kind is Symbol:
            return compare_text(one.name, other.name)
        if kind is bool or kind in TEMPORAL:
            return int(one > other) - int(one < other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        if len(one) != len(other):
            return -1 if len(one) < len(other) else 1
        spend(len(one))
        return next((found for found in map(compare, one, other) if found), 0)
    raise LangError("type_error", f"cannot compare {type_name(one)} with {type_name(other)}")


def compare_text(one: str, other: str) -> int:
    """Java's: the difference of the first differing characters, else of the lengths."""
    for left, right in zip(one, other, strict=False):
        if left != right:
            return ord(left) - ord(right)
    return len(one) - len(other)


def sort_values(
    items: Iterable[Value], key: Callable[[Value], Value] | None = None, *, reverse: bool = False
) -> list[Value]:
    """A stable sort by `compare`, in C where all keys are of one plain kind."""
    values = list(items)
    count = len(values)
    grow(count)
    spend(count * max(count.bit_length() - 1, 0))
    keys = values if key is None else [key(value) for value in values]
    kinds = set(map(type, keys))
    if kinds == {int} or kinds == {str}:
        ranks = keys
    elif kinds == {Keyword}:
        ranks = [each.name for each in keys]
    else:
        ranks = list(map(cmp_to_key(compare), keys))
    with ACTIVE.get().sorting():
        order = sorted(range(count), key=ranks.__getitem__, reverse=reverse)
    return [values[index] for index in order]


_RANKS: dict[type, int] = {
    type(None): 0, bool: 1, int: 2, float: 2, Keyword: 3, Symbol: 4, Var: 4, str: 5,
    **dict.fromkeys(TEMPORAL, 6), tuple: 7, Entry: 7, frozenset: 8, dict: 9, Regex: 10,
    FunctionType: 11,
}  # fmt: skip


def order(one: Value, other: Value) -> int:
    """A total order over all values, for views that must not depend on hashing."""
    ranks = _RANKS.get(type(one), 12) - _RANKS.get(type(other), 12)
    if ranks:
        return ranks
    if isinstance(one, tuple):
        spend(min(len(one), len(other)))
        found = next((found for found in map(order, one, other) if found), 0)
        return found or len(one) - len(other)
    if type(one) is frozenset:
        return order(tuple(elements(one)), tuple(elements(other)))
    if type(one) is dict:
        return order(tuple(entries(one)), tuple(entries(other)))
    if type(one) is type(other) is Regex:
        return compare_text(one.source, other.source)
    if type(one) is FunctionType:
        return compare_text(one.__qualname__, other.__qualname__)
    if type(one) is Var:
        return compare_text(one.name, other.name)
    found = compare(one, other)
    # 1 and 1.0 are equal but two keys: the integer comes first, and NaN, equal to all, last.
    return found or (one != one) - (other != other) or (type(one) is float) - (type(other) is float)


_ORDER = cmp_to_key(order)


def sorted_keys(keys: Iterable[Any]) -> list[Any]:
    """Keys as stored, in the order views show. Charges the sort."""
    found = list(keys)
    spend(len(found))
    kinds = set(map(type, found))
    if kinds == {Keyword}:
        found.sort(key=attrgetter("name"))
    elif kinds == {str} or kinds == {int}:
        found.sort()
    elif found:
        with ACTIVE.get().sorting():
            found.sort(key=lambda key: _ORDER(unkey(key)))
    return found


def entries(table: dict[Any, Value]) -> list[Entry]:
    return [Entry((unkey(key), table[key])) for key in sorted_keys(table)]


def elements(group: frozenset[Any]) -> list[Value]:
    return [unkey(key) for key in sorted_keys(group)]


def make_set(items: Iterable[Value]) -> frozenset[Any]:
    return frozenset(map(as_key, items))


def type_name(value: Value) -> str:
    """What an error message calls a value."""
    kind = type(value)
    names: dict[type, str] = {
        type(None): "nil", bool: "boolean", int: "number", float: "number", str: "string",
        Keyword: "keyword", Symbol: "symbol", Var: "var", tuple: "vector", Entry: "vector",
        dict: "map", frozenset: "set", Regex: "regex", FunctionType: "function",
    }  # fmt: skip
    if isinstance(value, Temporal):
        return value.NAME
    return names.get(kind, "value")


def expected(name: str, what: str, value: Value, *, hint: str = "") -> LangError:
    """The refusal of an argument by the built-in of this name."""
    return LangError("type_error", f"{name} expects {what}, got {type_name(value)}", hint=hint)


def seq_items(value: Value) -> tuple[Value, ...]:
    """The items of anything seqable as a tuple; charged. Refuses what is not seqable."""
    kind = type(value)
    if kind is tuple:
        return value  # type: ignore[no-any-return]  # the check above is the proof
    if value is None:
        return ()
    if kind is str:
        grow(len(value))
        return tuple(graphemes(value))
    if kind is dict:
        grow(len(value))
        return tuple(entries(value))
    if kind is frozenset:
        grow(len(value))
        return tuple(elements(value))
    if kind is Entry:
        return tuple(value)
    raise LangError("type_error", f"expected a collection, got {type_name(value)}")


def utf16(text: str) -> bytes:
    """Java's units of a text, two bytes each.

    Not by the codec's name: a walled worker could not import what a first look-up imports.
    """
    return utf_16_le_encode(text, "surrogatepass")[0]


def whole(text: str) -> str:
    """Text that every file and channel takes: pairs of surrogates joined, lone ones U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


_COMBINING = re.compile(
    "(?:\r\n|[\U0001f1e6-\U0001f1ff]{2}|."
    "(?:[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0900-\u0903"
    "\u093a-\u094f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
    "\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef]"
    "|\u200d.)*)",
    re.DOTALL,
)


def graphemes(text: str) -> list[str]:
    """User-visible characters, by a stated approximation of UAX 29 in the standard library.

    One code point with the combining marks, variation selectors and skin tones after it, code
    points joined by U+200D, pairs of regional indicators and CR LF each count as one.
    """
    if text.isascii() and "\r" not in text:
        return list(text)
    return _COMBINING.findall(text)
