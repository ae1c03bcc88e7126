"""JSON: `json/parse-string`, `json/parse-lines`, `json/generate-string`.

Parsing answers nil for what is not JSON and string keys for objects; generating refuses what JSON
cannot say: keywords, sets, NaN and infinities, keys that are neither strings nor integers.
Nesting is bounded by `json_nesting` before Python's recursive parser sees the text.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.meter import ACTIVE, grow, refuse_size, spend, text_size
from holdfast.lang.printer import number_text
from holdfast.lang.values import entries, type_name, whole

# Also takes a string that is never closed, so that no text is scanned twice.
_STRING = re.compile(r'"(?>(?:[^"\\]++|\\.)*)"?', re.DOTALL)


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _bounded_int(text: str) -> int:
    if len(text) > ACTIVE.get().limits.int_digits:
        raise ValueError("too many digits")
    return int(text)


def parse_string(text: Value) -> Value:
    """The value of a JSON text, nil where it is none."""
    if type(text) is not str:
        return None
    spend(1 + len(text) // 8)
    depth = deepest = 0
    for char in _STRING.sub("", text):
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    if deepest > ACTIVE.get().limits.json_nesting:
        refuse_size("json_nesting", "the nesting of a JSON text")
    try:
        found = json.loads(text, parse_constant=_refuse_constant, parse_int=_bounded_int)
    except (ValueError, RecursionError):
        return None
    grow(len(text) // 2)
    return from_json(found)


def from_json(value: Any) -> Value:
    """Plain JSON data as values: lists become vectors."""
    kind = type(value)
    if kind is list:
        return tuple([from_json(item) for item in value])
    if kind is dict:
        return {whole(key): from_json(item) for key, item in value.items()}
    return whole(value) if kind is str else value


def parse_lines(text: Value) -> Value:
    """One value per line that holds JSON; blank lines are skipped, bad ones are nil."""
    if type(text) is not str:
        return None
    return tuple([parse_string(line) for line in text.split("\n") if line.strip()])


def generate_string(value: Value) -> str:
    found = _generate(value, 0)
    text_size(len(found))
    return found


def _generate(value: Value, depth: int) -> str:
    if depth > ACTIVE.get().limits.json_nesting:
        refuse_size("json_nesting", "the nesting of a value")
    if type(value) is str:
        return json.dumps(value, ensure_ascii=False)
    if value is None or type(value) is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if type(value) is int:
        return number_text(value)
    if type(value) is float and math.isfinite(value):
        return repr(value)
    if isinstance(value, tuple):
        spend(len(value))
        return "[" + ",".join([_generate(item, depth + 1) for item in value]) + "]"
    if type(value) is dict:
        spend(len(value))
        pairs = [f"{_key(name)}:{_generate(item, depth + 1)}" for name, item in entries(value)]
        return "{" + ",".join(pairs) + "}"
    what = f"the number {number_text(value)}" if type(value) is float else f"a {type_name(value)}"
    raise LangError(
        "type_error",
        f"json/generate-string: {what} is no JSON value",
        hint="convert it with name or str",
    )


def _key(name: Value) -> str:
    if type(name) is str:
        return json.dumps(name, ensure_ascii=False)
    if type(name) is int:
        return f'"{number_text(name)}"'
    raise LangError(
        "type_error",
        f"json/generate-string: a {type_name(name)} is no JSON key",
        hint="use (update-keys m name)",
    )
