"""Checks a tool call's arguments against the tool's JSON Schema, before the tool is called.

Owns the small subset of JSON Schema that tool parameters here are written in: `type` (one or a
list), `properties`, `required`, `additionalProperties`, `items`, `enum`, `minimum`, `maximum`,
`minLength`, `maxLength`, `minItems`. A schema that uses another keyword is a bug and raises, so
that no constraint is ever silently ignored. Problems are sentences a model can act on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from holdfast.domain.ports import ToolSpec

_PYTHON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def takes(required: Sequence[str] = (), /, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    needed = {"required": list(required)} if required else {}
    return {
        "type": "object",
        "properties": properties,
        **needed,
        "additionalProperties": False,
    }


def check_arguments(spec: ToolSpec, arguments: object) -> list[str]:
    """What is wrong with `arguments`, in the order of the schema; empty when nothing is."""
    return list(_problems(spec.parameters, arguments, "arguments"))


def _problems(schema: Mapping[str, Any], value: object, where: str) -> Iterator[str]:
    kinds = schema.get("type")
    if kinds is not None and not _is(kinds, value):
        kinds = [kinds] if isinstance(kinds, str) else kinds
        yield f"{where} must be of type {' or '.join(kinds)}, not {_kind(value)}"
        return
    for keyword, bound in schema.items():
        assert keyword in _CHECKS, f"{where}: nothing checks {keyword!r}"
        check = _CHECKS[keyword]
        if check is not None:
            yield from check(bound, value, where, schema)


def _enum(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if value not in bound:
        yield f"{where} must be one of {', '.join(map(repr, bound))}"


def _required(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, dict):
        for name in bound:
            if name not in value:
                yield f"{where} lacks {name!r}"


def _properties(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, dict):
        for name, schema in bound.items():
            if name in value:
                inside = name if where == "arguments" else where
                yield from _problems(schema, value[name], inside)


def _no_others(bound: Any, value: object, where: str, schema: Mapping[str, Any]) -> Iterator[str]:
    known = schema.get("properties", {})
    if bound is False and isinstance(value, dict) and not known.keys() >= value.keys():
        for name in (name for name in value if name not in known):
            close = get_close_matches(str(name), list(known), n=1)
            meant = f"; did you mean {close[0]!r}?" if close else f"; known: {sorted(known)}"
            yield f"{where} has no {name!r}{meant}"


def _items(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(bound, item, f"{where}[{index}]")


def _min_items(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, list) and len(value) < bound:
        yield f"{where} needs at least {bound} items"


def _min_length(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, str) and len(value) < bound:
        yield f"{where} must have at least {bound} characters"


def _max_length(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, str) and len(value) > bound:
        yield f"{where} must have at most {bound} characters"


def _minimum(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, (int, float)) and value < bound:
        yield f"{where} must be at least {bound}"


def _maximum(bound: Any, value: object, where: str, _: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, (int, float)) and value > bound:
        yield f"{where} must be at most {bound}"


# None: it was looked at before, or says nothing of a value.
_CHECKS: Mapping[str, Callable[[Any, object, str, Mapping[str, Any]], Iterator[str]] | None] = {
    "type": None,
    "enum": _enum,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _no_others,
    "items": _items,
    "minItems": _min_items,
    "minLength": _min_length,
    "maxLength": _max_length,
    "minimum": _minimum,
    "maximum": _maximum,
    **dict.fromkeys(("description", "title", "default", "examples")),
}


def _is(kinds: str | Sequence[str], value: object) -> bool:
    if not isinstance(kinds, str):
        return any(_is(kind, value) for kind in kinds)
    if isinstance(value, bool):
        return kinds == "boolean"
    if kinds == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES[kinds])


def _kind(value: object) -> str:
    return next((kind for kind in _PYTHON_TYPES if _is(kind, value)), type(value).__name__)
