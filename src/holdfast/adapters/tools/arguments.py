"""Checks a tool call's arguments against the tool's JSON Schema, before the tool is called.

Owns the small subset of JSON Schema that tool parameters here are written in: `type` (one or a
list), `properties`, `required`, `additionalProperties`, `items`, `enum`, `minimum`, `maximum`,
`minLength`, `maxLength`, `minItems`. A schema that uses another keyword is a bug and raises, so
that no constraint is ever silently ignored. Problems are sentences a model can act on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
_KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    *("description", "title", "default", "examples"),  # which say nothing of a value
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
    assert _KEYWORDS.issuperset(schema), f"{where}: {sorted(schema.keys() - _KEYWORDS)}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        yield f"{where} must be of type {' or '.join(kinds)}, not {_kind(value)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} must be one of {', '.join(map(repr, schema['enum']))}"
    match value:
        case dict():
            yield from _object_problems(schema, value, where)
        case list():
            if len(value) < schema.get("minItems", 0):
                yield f"{where} needs at least {schema['minItems']} items"
            for index, item in enumerate(value):
                yield from _problems(schema.get("items", {}), item, f"{where}[{index}]")
        case str():
            if len(value) < schema.get("minLength", 0):
                yield f"{where} must have at least {schema['minLength']} characters"
            if len(value) > schema.get("maxLength", len(value)):
                yield f"{where} must have at most {schema['maxLength']} characters"
        case bool() | None:
            pass
        case int() | float():
            if value < schema.get("minimum", value):
                yield f"{where} must be at least {schema['minimum']}"
            if value > schema.get("maximum", value):
                yield f"{where} must be at most {schema['maximum']}"


def _object_problems(
    schema: Mapping[str, Any], value: Mapping[str, Any], where: str
) -> Iterator[str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where} lacks {name!r}"
    for name, item in value.items():
        if name in properties:
            yield from _problems(properties[name], item, name if where == "arguments" else where)
        elif schema.get("additionalProperties", True) is False:
            close = get_close_matches(str(name), list(properties), n=1)
            meant = f"; did you mean {close[0]!r}?" if close else f"; known: {sorted(properties)}"
            yield f"{where} has no {name!r}{meant}"


def _is(kind: str, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES[kind])


def _kind(value: object) -> str:
    return next((kind for kind in _PYTHON_TYPES if _is(kind, value)), type(value).__name__)
