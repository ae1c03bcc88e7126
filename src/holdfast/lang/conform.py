"""Values against the types of `signature`: strict out, lenient in, and as JSON.

Owns the validator, the coercion of inputs, the JSON Schema of a type and the reading of a JSON
document where a type is due. Language values are Python's own plus `Keyword`; a field is found
under its keyword or its string name.

Invariants: every problem names a path (`results[0].id`). What is right comes back as it is.
`to_json_schema(t)` accepts a JSON document exactly if `validate(t, from_json(t, document))` finds
nothing; JSON has no keywords and one kind of number, so `from_json` reads `1.0` as the int 1 and,
where the type asks for a keyword, the string "done" or ":done" as `:done`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple, assert_never

from holdfast.lang.signature import (
    Field,
    ListOf,
    Primitive,
    PrimitiveKind,
    Record,
    Type,
    render,
    show,
)
from holdfast.lang.values import Keyword, keyword

PROBLEMS_MAX = 20

_INT = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)
_FLOAT = re.compile(r"[+-]?[0-9]{1,100}(\.[0-9]{1,100})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_KEYWORD_NAME = r"[A-Za-z*+!?<>=_-][A-Za-z0-9*+!?<>=_'-]*"
_KEYWORD = re.compile(f":?({_KEYWORD_NAME})", re.ASCII)
_KEYWORD_SCHEMA = {"type": "string", "pattern": f"^:?{_KEYWORD_NAME}(?![\\s\\S])"}
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Problem:
    """One difference between a value and its type. The path of the value itself is empty."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True)
class Coerced:
    """A value after coercion, what was changed to get it, and what is still wrong with it."""

    value: Any
    warnings: tuple[Problem, ...]
    problems: tuple[Problem, ...]


def validate(shape: Type, value: Any, *, strict: bool = False) -> tuple[Problem, ...]:
    """What is wrong with `value`, at most `PROBLEMS_MAX`; empty means it has the type.

    Ints pass for floats, floats never for ints, booleans for neither, strings never for keywords.
    `strict` also refuses fields that a record does not name.
    """
    check = _Check(strict=strict, coerce=False)
    check.walk(shape, value, "")
    return tuple(check.problems)


def coerce(inputs: tuple[Field, ...] | Type, value: Any) -> Coerced:
    """`value` with harmless differences repaired, each with a warning: "42" becomes 42.

    For what comes in only; what a program returns is never repaired. A value that is already
    right comes back as it is.
    """
    check = _Check(strict=False, coerce=True)
    shape = Record(inputs) if isinstance(inputs, tuple) else inputs
    repaired = check.walk(shape, value, "")
    return Coerced(repaired, tuple(check.warnings), tuple(check.problems))


def to_json_schema(shape: Type, *, strict: bool = False, wrapped: bool = False) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a type.

    `wrapped` puts a type that is no record into an object under "value", for services whose
    answer must be an object; `from_json` takes it out again.
    """
    if wrapped and not isinstance(shape, Record):
        return {
            "type": "object",
            "properties": {"value": to_json_schema(shape, strict=strict)},
            "required": ["value"],
            "additionalProperties": False,
        }
    match shape:
        case Primitive(kind, optional):
            schema: dict[str, Any] = dict(_KINDS[kind].schema)
            return {**schema, "type": [schema["type"], "null"]} if optional and schema else schema
        case ListOf(item):
            return {"type": "array", "items": to_json_schema(item, strict=strict)}
        case Record(fields):
            schema = {
                "type": "object",
                "properties": {f.name: to_json_schema(f.type, strict=strict) for f in fields},
                "required": [f.name for f in fields if f.required],
            }
            if strict:
                schema["additionalProperties"] = False
            return schema
        case unreachable:
            assert_never(unreachable)


def from_json(shape: Type, document: Any, *, wrapped: bool = False) -> Any:
    """The language value that a JSON document stands for where a value of this type is due.

    Never fails: what does not fit is left as it is, for `validate` to name.
    """
    if wrapped and not isinstance(shape, Record):
        if isinstance(document, dict) and set(document) == {"value"}:
            return from_json(shape, document["value"])
        return document
    match shape:
        case Primitive("int"):
            whole = isinstance(document, float) and document.is_integer()
            return int(document) if whole else document
        case Primitive("keyword"):
            match = _KEYWORD.fullmatch(document) if isinstance(document, str) else None
            return keyword(match[1]) if match else document
        case Primitive():
            return document
        case ListOf(item):
            if not isinstance(document, list):
                return document
            return tuple(from_json(item, element) for element in document)
        case Record(fields):
            if not isinstance(document, dict):
                return document
            types = {field.name: field.type for field in fields}
            return {
                key: from_json(types[key], element) if key in types else element
                for key, element in document.items()
            }
        case unreachable:
            assert_never(unreachable)


class _Check:
    """One walk over a value beside its type; collects problems, and repairs when asked."""

    def __init__(self, *, strict: bool, coerce: bool) -> None:
        self.strict, self.coerce = strict, coerce
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def walk(self, shape: Type, value: Any, path: str) -> Any:
        if len(self.problems) >= PROBLEMS_MAX:
            return value
        match shape:
            case Primitive():
                return self._primitive(shape, value, path)
            case ListOf(item):
                if not isinstance(value, list | tuple):
                    return self._wrong(shape, value, path)
                items = [self.walk(item, e, f"{path}[{i}]") for i, e in enumerate(value)]
                return value if _same(items, value) else tuple(items)
            case Record(fields):
                if not isinstance(value, Mapping):
                    return self._wrong(shape, value, path)
                return self._record(fields, value, path)
            case unreachable:
                assert_never(unreachable)

    def _record(self, fields: tuple[Field, ...], value: Mapping[Any, Any], path: str) -> Any:
        repaired = {}
        for field in fields:
            here = f"{path}.{field.name}" if path else field.name
            key = keyword(field.name) if keyword(field.name) in value else field.name
            if key in value:
                old = value[key]
                new = self.walk(field.type, old, here)
                if new is not old:
                    repaired[key] = new
            elif field.required:
                self.problems.append(Problem(here, f"is missing (expected {render(field.type)})"))
        if self.strict:
            self._refuse_others(fields, value, path)
        return {**value, **repaired} if repaired else value

    def _refuse_others(
        self, fields: tuple[Field, ...], value: Mapping[Any, Any], path: str
    ) -> None:
        names = [field.name for field in fields]
        for key in value:
            name = key.name if isinstance(key, Keyword) else key
            if name not in names:
                near = get_close_matches(str(name), names, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                here = f"{path}.{name}" if path else str(name)
                self.problems.append(Problem(here, f"is not a field of this record{hint}"))

    def _primitive(self, shape: Primitive, value: Any, path: str) -> Any:
        if (value is None and shape.optional) or _KINDS[shape.kind].holds(value):
            return value
        if self.coerce:
            repaired = _KINDS[shape.kind].repaired(value)
            if repaired is not None:
                text = f"{show(value)} was read as {shape.kind} {show(repaired)}"
                self.warnings.append(Problem(path, text))
                return repaired
        return self._wrong(shape, value, path)

    def _wrong(self, shape: Type, value: Any, path: str) -> Any:
        text = f"expected {_expected(shape)}, got {_describe(value)}"
        self.problems.append(Problem(path, text))
        return value


class _Kind(NamedTuple):
    """A primitive type: whether a value has it, what plainly means one (else None), its schema."""

    holds: Callable[[Any], bool]
    repaired: Callable[[Any], Any]
    schema: Mapping[str, str]


def _a(*kinds: type) -> Callable[[Any], bool]:
    """Whether a value is one of these; a boolean is a number only in Python."""
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _as_int(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(_text(value)) if _INT.fullmatch(_text(value)) else None


def _as_float(value: Any) -> float | None:
    number = float(_text(value)) if _FLOAT.fullmatch(_text(value)) else math.nan
    return number if math.isfinite(number) else None


def _as_keyword(value: Any) -> Keyword | None:
    match = _KEYWORD.fullmatch(_text(value))
    return keyword(match[1]) if match else None


_KINDS: Mapping[PrimitiveKind, _Kind] = {
    "string": _Kind(
        _a(str), lambda v: v.name if isinstance(v, Keyword) else None, {"type": "string"}
    ),
    "int": _Kind(_a(int), _as_int, {"type": "integer"}),
    "float": _Kind(_a(int, float), _as_float, {"type": "number"}),
    "bool": _Kind(_a(bool), lambda v: _BOOLEANS.get(_text(v).lower()), {"type": "boolean"}),
    "keyword": _Kind(_a(Keyword), _as_keyword, _KEYWORD_SCHEMA),
    "map": _Kind(_a(Mapping), lambda v: None, {"type": "object"}),
    "any": _Kind(lambda v: True, lambda v: None, {}),
}


def _same(new: list[Any], old: Any) -> bool:
    return all(map(operator.is_, new, old))


def _expected(shape: Type) -> str:
    match shape:
        case Primitive(kind, optional):
            return f"{kind} or nil" if optional else kind
        case ListOf():
            return f"vector {render(shape)}"
        case Record():
            return "map"
        case unreachable:
            assert_never(unreachable)


def _describe(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a vector"
    kinds: tuple[PrimitiveKind, ...] = ("bool", "int", "float", "keyword", "string")
    kind = next((kind for kind in kinds if _KINDS[kind].holds(value)), None)
    return f"{kind} {show(value)}" if kind else "a value of another kind"
