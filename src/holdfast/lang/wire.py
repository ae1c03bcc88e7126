"""Values to JSON-safe data and back, without loss.

Owns the encoding that the cases file, the journal and the sandbox's pipe share: keywords are
":k", a string that starts with ":" is {"$str": …}, sets {"$set": […]}, maps whose keys are not all
plain texts or keywords {"$map": [[k, v], …]}, floats JSON lacks {"$num": "Inf"}, and
{"$sym"} {"$var"} {"$regex"} {"$entry"} {"$return"} {"$fail"} {"$inst"} {"$instant"} {"$date"}
{"$duration"}. A function is {"$fn": source, "env": {name: value}} and becomes a `Stored`: text
that only a run, behind its walls, compiles.

What comes in may be hostile: shapes are checked, depth is bounded, unknown tags are refused.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from gc import get_referents
from itertools import chain, repeat
from math import isfinite
from types import FunctionType
from typing import Any

from holdfast.lang import library
from holdfast.lang.api import LangError, Limits, Value
from holdfast.lang.dates import Date, Duration, Instant, LocalDate, Temporal
from holdfast.lang.machine import Ending
from holdfast.lang.regexes import sent_regex
from holdfast.lang.values import (
    Entry,
    Keyword,
    Regex,
    Stored,
    Symbol,
    Var,
    as_key,
    elements,
    entries,
    keyword,
    type_name,
    whole,
)

DEPTH_MAX = 200
INT_PLAIN = 10**4000
COLLISIONS_MAX = 64
_LIMITS = Limits()  # made once: decoding is on the path of every tool call
_FIELDS = frozenset({type(None), bool, int, float, str})
_NUMERIC = frozenset({int, float})
_NUMBERS = {"Inf": math.inf, "-Inf": -math.inf, "NaN": math.nan}


# --- out -----------------------------------------------------------------------------------------


def encode(value: Value) -> Any:
    """JSON-safe data for a value. Raises `LangError` for a function that has no source."""
    return _encode(value, 0)


def canonical(data: Any) -> str:
    """Encoded data as text that tells 1, 1.0 and true apart, which Python's equality does not."""
    return json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _encode(value: Value, depth: int) -> Any:
    if depth > DEPTH_MAX:
        raise LangError("type_error", f"a value nested deeper than {DEPTH_MAX} cannot be sent")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        # JSON readers, Python's among them, refuse long digit strings; hexadecimal is linear.
        return value if -INT_PLAIN < value < INT_PLAIN else {"$int": hex(value)}
    if kind is str:
        return {"$str": whole(value)} if value.startswith(":") else whole(value)
    if kind is Keyword:
        return f":{value.name}"
    if kind is tuple:
        if _as_they_are(value, depth):
            return list(map(dict.copy, value))
        return [_encode(item, depth + 1) for item in value]
    if kind is dict:
        return _encode_map(value, depth)
    if kind is float:
        if math.isfinite(value):
            return value
        return {"$num": "NaN" if value != value else "Inf" if value > 0 else "-Inf"}
    if kind is frozenset:
        return {"$set": [_encode(item, depth + 1) for item in elements(value)]}
    if kind is Entry:
        return {"$entry": [_encode(item, depth + 1) for item in value]}
    return _encode_rare(value, depth)


def _as_they_are(rows: Sequence[Any], depth: int) -> bool:
    """Whether these are maps of texts to plain fields that encode as themselves.

    Asked of all at once, at the speed of C: what a host hands over is mostly this. The collector
    visits the values of a map, and its keys only if one of them is no plain text.
    """
    if not rows or depth > DEPTH_MAX - 2 or set(map(type, rows)) != {dict}:
        return False
    fields = get_referents(*rows)
    if len(fields) != sum(map(len, rows)) or not _FIELDS.issuperset(map(type, fields)):
        return False
    keys = {*chain.from_iterable(rows)}
    texts = {field for field in fields if type(field) is str}
    joined = "".join(chain(keys, texts))
    try:
        return (
            all(map(isfinite, [field for field in fields if type(field) in _NUMERIC]))
            and not any(map(str.startswith, texts, repeat(":")))
            and not any(map(str.startswith, keys, repeat((":", "$"))))
            and whole(joined) is joined
        )
    except OverflowError:  # an integer beyond floats may be beyond readers of JSON too
        return False


def _encode_map(value: dict[Any, Value], depth: int) -> Any:
    plain = True
    for key in value:
        if type(key) is str:
            plain = plain and key[:1] not in (":", "$")
        elif type(key) is not Keyword:
            plain = False
    if plain:
        return {
            (f":{key.name}" if type(key) is Keyword else whole(key)): _encode(item, depth + 1)
            for key, item in value.items()
        }
    return {
        "$map": [
            [_encode(key, depth + 1), _encode(item, depth + 1)] for key, item in entries(value)
        ]
    }


def _encode_rare(value: Value, depth: int) -> Any:
    tagged = _TAGGED.get(type(value))
    if tagged is not None:
        return {tagged[0]: getattr(value, tagged[1])}
    if type(value) is Ending:
        tag = "$return" if value.kind == "returned" else "$fail"
        return {tag: _encode(value.value, depth + 1)}
    env: Mapping[str, Value]
    if type(value) is Stored:
        text, env = value.source, value.env
    elif type(value) is FunctionType:
        text, env = _source_of(value)
    else:
        raise LangError("type_error", f"a {type_name(value)} cannot be sent")
    encoded = {name: _encode(item, depth + 1) for name, item in env.items()}
    return {"$fn": text, "env": encoded} if encoded else {"$fn": text}


_TAGGED: Mapping[type, tuple[str, str]] = {
    Symbol: ("$sym", "name"), Var: ("$var", "name"), Regex: ("$regex", "source"),
    Date: ("$inst", "ms"), Instant: ("$instant", "ns"), LocalDate: ("$date", "day"),
    Duration: ("$duration", "ns"),
}  # fmt: skip


def _source_of(fn: Any) -> tuple[str, Mapping[str, Value]]:
    """The text that makes a function again, and what its names stand for there."""
    made = getattr(fn, "lisp_made", None)
    if made is not None:
        return _making(*made)
    info = fn.__globals__.get("k_info", {}).get(fn.__code__)
    builtins = (name for name, row in library.ROWS.items() if row.fn is fn)
    text = next(builtins, "") if info is None else info.text
    if not text:
        raise LangError("type_error", "this function cannot be stored: it has no source")
    if info is None:
        return text, {}
    names = {python: name for name, python in info.captures.items()}
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    held = {python: cell.cell_contents for python, cell in cells}
    env = {names[p]: item for p, item in held.items() if p in names and item is not fn}
    return text, env


def _making(name: str, args: tuple[Value, ...]) -> tuple[str, Mapping[str, Value]]:
    """The call by which a built-in made a function."""
    names = [f"a{index}" for index in range(len(args))]
    text = f"({' '.join([name, *names])})"
    if name == "%where":
        text = "(where a0)" if len(args) == 1 else f"(where a0 {args[1]} a2)"
    return text, dict(zip(names, args, strict=True))


# --- in ------------------------------------------------------------------------------------------


def decode(data: Any, *, limits: Limits | None = None) -> Value:
    """The value of JSON-safe data. Raises `LangError` `type_error` for what is no encoding.

    Functions stay text: nothing that a worker or a journal says is compiled by who reads it.
    """
    return _decode(data, 0, limits or _LIMITS)


def _decode(data: Any, depth: int, limits: Limits) -> Value:
    if depth > DEPTH_MAX:
        raise LangError("type_error", f"data is nested deeper than {DEPTH_MAX}")
    kind = type(data)
    if data is None or kind is bool or kind is int or kind is float:
        return data
    if kind is str:
        return keyword(data[1:]) if len(data) > 1 and data[0] == ":" else whole(data)
    if kind is list or kind is tuple:
        if _as_they_are(data, depth):
            return tuple(map(dict.copy, data))
        return tuple([_decode(item, depth + 1, limits) for item in data])
    if kind is not dict:
        raise LangError("type_error", f"a {kind.__name__} is no encoded value")
    tag = next(iter(data), "") if len(data) <= 2 else ""
    if type(tag) is str and tag.startswith("$"):
        return _decode_tagged(tag, data, depth, limits)
    return {_decode_key(key): _decode(item, depth + 1, limits) for key, item in data.items()}


def _decode_key(key: Any) -> Any:
    if type(key) is not str:
        raise LangError("type_error", "keys of encoded maps are texts")
    return keyword(key[1:]) if len(key) > 1 and key[0] == ":" else whole(key)


def _decode_tagged(tag: str, data: dict[str, Any], depth: int, limits: Limits) -> Value:
    body = data[tag]

    def below(item: Any) -> Value:
        return _decode(item, depth + 1, limits)

    if tag == "$fn":
        env = data.get("env", {})
        if type(body) is str and type(env) is dict and set(data) <= {"$fn", "env"}:
            return Stored(body, {name: below(item) for name, item in env.items()})
    elif len(data) == 1:
        if tag in ("$str", "$sym", "$var", "$regex") and type(body) is str:
            return _decode_text(tag, body, limits)
        if tag == "$num" and type(body) is str and body in _NUMBERS:
            return _NUMBERS[body]
        if tag == "$int" and type(body) is str and len(body) <= limits.int_digits:
            return _decode_int(body)
        if tag in _TIMES and type(body) is int:
            return _TIMES[tag](body)
        if tag in ("$return", "$fail"):
            return Ending("returned" if tag == "$return" else "failed", below(body))
        if type(body) is list:
            return _decode_items(tag, body, below)
    raise LangError("type_error", f"{tag[:20]} is no encoded value")


_TIMES: Mapping[str, Callable[[int], Value]] = {
    tag: kind for kind, (tag, _) in _TAGGED.items() if issubclass(kind, Temporal)
}


def _decode_text(tag: str, body: str, limits: Limits) -> Value:
    if tag == "$regex":
        return sent_regex(body, limits)
    return {"$str": whole, "$sym": Symbol, "$var": Var}[tag](body)


def _decode_int(body: str) -> int:
    try:
        return int(body, 16)
    except ValueError:
        raise LangError("type_error", "$int is no encoded value") from None


def _decode_items(tag: str, body: list[Any], below: Callable[[Any], Value]) -> Value:
    if tag == "$set":
        return frozenset(_spread([as_key(below(item)) for item in body]))
    if tag == "$entry" and len(body) == 2:
        return Entry((below(body[0]), below(body[1])))
    if tag == "$map" and all(type(pair) is list and len(pair) == 2 for pair in body):
        keys = _spread([as_key(below(key)) for key, _ in body])
        return {key: below(item) for key, (_, item) in zip(keys, body, strict=True)}
    raise LangError("type_error", f"{tag[:20]} is no encoded value")


def _spread(keys: list[Any]) -> list[Any]:
    """The keys, refused when so many share a hash that making a table of them would never end."""
    if len(keys) > COLLISIONS_MAX:
        most = max(Counter(map(hash, keys)).values())
        if most > COLLISIONS_MAX:
            raise LangError("type_error", f"{most} keys of encoded data have one hash")
    return keys


# --- definitions, inputs and arguments -----------------------------------------------------------


def encode_all(values: Mapping[str, Value]) -> dict[str, Any]:
    return {name: encode(value) for name, value in values.items()}


def decode_all(data: Mapping[str, Any], limits: Limits | None = None) -> dict[str, Value]:
    return {name: decode(item, limits=limits) for name, item in data.items()}
