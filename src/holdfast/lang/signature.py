"""Signatures: the typed contract of a program, a tool or a question to a model.

Owns the grammar `[ "(" fields ")" "->" ] type`, the strict validator for what comes out, the
lenient coercion of what goes in, and the JSON Schema of a type. It runs no program and knows no
tool. Language values are Python's own plus `Keyword`; a field is found under its keyword or its
string name.

Invariants: `parse(render(s)) == s`. Every error names a path (`results[0].id`) or a line and
column. `to_json_schema(t)` accepts a JSON document exactly if `validate(t, from_json(t, document))`
finds nothing; JSON has no keywords and one kind of number, so `from_json` reads `1.0` as the int 1
and, where the type asks for a keyword, the string "done" or ":done" as `:done`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, assert_never

from holdfast.lang.api import LangError
from holdfast.lang.values import Keyword, keyword

PrimitiveKind = Literal["string", "int", "float", "bool", "keyword", "any", "map"]
PRIMITIVES: tuple[PrimitiveKind, ...] = ("string", "int", "float", "bool", "keyword", "any", "map")

SOURCE_CHARS_MAX = 20_000
NESTING_MAX = 32
PROBLEMS_MAX = 20

_ALIASES = {
    "str": "string",
    "text": "string",
    "integer": "int",
    "long": "int",
    "number": "float",
    "double": "float",
    "boolean": "bool",
    "atom": "keyword",
    "symbol": "keyword",
    "object": "map",
    "dict": "map",
    "datetime": "string",
    "date": "string",
}
_SPACE = re.compile(r"[\s]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*[?!]?")
_KIND = re.compile(r":([A-Za-z][A-Za-z0-9_-]*)")
_INT = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)
_FLOAT = re.compile(r"[+-]?[0-9]{1,100}(\.[0-9]{1,100})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_KEYWORD_NAME = r"[A-Za-z*+!?<>=_-][A-Za-z0-9*+!?<>=_'-]*"
_KEYWORD = re.compile(f":?({_KEYWORD_NAME})", re.ASCII)


@dataclass(frozen=True)
class Primitive:
    """One of `PRIMITIVES`; an optional one also accepts nil, and as a field may be absent."""

    kind: PrimitiveKind
    optional: bool = False


@dataclass(frozen=True)
class ListOf:
    """A vector whose items all have one type."""

    item: Type


@dataclass(frozen=True)
class Field:
    """A named value; a name that starts with `_` is hidden from prompts, not from checks."""

    name: str
    type: Type

    @property
    def hidden(self) -> bool:
        return self.name.startswith("_")

    @property
    def required(self) -> bool:
        return not (isinstance(self.type, Primitive) and self.type.optional)


@dataclass(frozen=True)
class Record:
    """A map with the named fields; others are allowed unless the check is strict."""

    fields: tuple[Field, ...]


Type = Primitive | ListOf | Record


@dataclass(frozen=True)
class Signature:
    """Inputs by name and the type of the output. `id :int` alone has no inputs."""

    inputs: tuple[Field, ...]
    output: Type


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


def parse(source: str) -> Signature:
    """The signature that `source` spells; a LangError `signature_error` names line and column."""
    return _Parser(source).signature()


def render(shape: Signature | Type) -> str:
    """The canonical spelling, which `parse` reads back as the same signature."""
    match shape:
        case Signature(inputs, output):
            return f"({_render_fields(inputs)}) -> {render(output)}" if inputs else render(output)
        case Primitive(kind, optional):
            return f":{kind}{'?' if optional else ''}"
        case ListOf(item):
            return f"[{render(item)}]"
        case Record(fields):
            return f"{{{_render_fields(fields)}}}"
        case unreachable:
            assert_never(unreachable)


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
            return _primitive_schema(kind, optional)
        case ListOf(item):
            return {"type": "array", "items": to_json_schema(item, strict=strict)}
        case Record(fields):
            schema: dict[str, Any] = {
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
        if (value is None and shape.optional) or _has_kind(shape.kind, value):
            return value
        if self.coerce:
            repaired = _repair(shape.kind, value)
            if repaired is not None:
                text = f"{_show(value)} was read as {shape.kind} {_show(repaired)}"
                self.warnings.append(Problem(path, text))
                return repaired
        return self._wrong(shape, value, path)

    def _wrong(self, shape: Type, value: Any, path: str) -> Any:
        text = f"expected {_expected(shape)}, got {_describe(value)}"
        self.problems.append(Problem(path, text))
        return value


def _has_kind(kind: PrimitiveKind, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "bool":
            return isinstance(value, bool)
        case "keyword":
            return isinstance(value, Keyword)
        case "any":
            return True
        case "map":
            return isinstance(value, Mapping)
        case unreachable:
            assert_never(unreachable)


def _repair(kind: PrimitiveKind, value: Any) -> Any:
    """The value of this kind that `value` plainly means, else None."""
    text = value.strip() if isinstance(value, str) else None
    match kind:
        case "string":
            return value.name if isinstance(value, Keyword) else None
        case "int":
            if isinstance(value, float) and value.is_integer():
                return int(value)
            return int(text) if text is not None and _INT.fullmatch(text) else None
        case "float":
            number = float(text) if text is not None and _FLOAT.fullmatch(text) else None
            return number if number is not None and math.isfinite(number) else None
        case "bool":
            return {"true": True, "false": False}.get(text.lower()) if text is not None else None
        case "keyword":
            match = _KEYWORD.fullmatch(text) if text is not None else None
            return keyword(match[1]) if match else None
        case "any" | "map":
            return None
        case unreachable:
            assert_never(unreachable)


def _primitive_schema(kind: PrimitiveKind, optional: bool) -> dict[str, Any]:
    match kind:
        case "any":
            return {}
        case "keyword":
            schema: dict[str, Any] = {"type": "string", "pattern": f"^:?{_KEYWORD_NAME}$"}
        case "string" | "int" | "float" | "bool" | "map":
            names = {"int": "integer", "float": "number", "bool": "boolean", "map": "object"}
            schema = {"type": names.get(kind, "string")}
        case unreachable:
            assert_never(unreachable)
    return {**schema, "type": [schema["type"], "null"]} if optional else schema


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
    kind = next((kind for kind in kinds if _has_kind(kind, value)), None)
    return f"{kind} {_show(value)}" if kind else "a value of another kind"


def _show(value: Any) -> str:
    if isinstance(value, Keyword):
        return f":{value.name}"[:60]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        cut = value if len(value) <= 40 else value[:37] + "..."
        return '"' + cut.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, int) and value.bit_length() > 200:
        return "of many digits"
    return repr(value)


def _render_fields(fields: tuple[Field, ...]) -> str:
    return ", ".join(f"{field.name} {render(field.type)}" for field in fields)


class _Parser:
    """Recursive descent over one signature; depth is bounded by `NESTING_MAX`."""

    def __init__(self, source: str) -> None:
        self.source, self.at = source, 0
        if len(source) > SOURCE_CHARS_MAX:
            raise self._error(f"the signature has more than {SOURCE_CHARS_MAX} characters", "")

    def signature(self) -> Signature:
        inputs: tuple[Field, ...] = ()
        if self._peek() == "(":
            self.at += 1
            inputs = self._fields(")", 0)
            if not self.source.startswith("->", self._skip()):
                raise self._error("expected -> after the inputs", "write (name :type) -> :type")
            self.at += 2
        elif self._peek() == "":
            raise self._error("the signature is empty", "write a type such as :string")
        output = self._type(0)
        if self._peek() != "":
            rest = self.source[self.at : self.at + 20]
            if self.source.startswith("->", self.at):
                raise self._error("the inputs are not in parentheses", "write (x :int) -> :int")
            raise self._error(f"nothing may follow the output type, found {_show(rest)}", "")
        return Signature(inputs, output)

    def _type(self, depth: int) -> Type:
        if depth >= NESTING_MAX:
            raise self._error(f"types are nested more than {NESTING_MAX} deep", "")
        match self._peek():
            case ":":
                return self._primitive()
            case "[":
                start = self.at
                self.at += 1
                if self._peek() == "]":
                    raise self._error("a vector type names the type of its items", "write [:any]")
                item = self._type(depth + 1)
                self._expect("]", start)
                return self._not_optional(ListOf(item))
            case "{":
                self.at += 1
                return self._not_optional(Record(self._fields("}", depth + 1)))
            case "":
                raise self._error("a type is missing at the end", "write a type such as :string")
            case other:
                near = _NAME.match(self.source, self.at)
                hint = f"write :{near[0]}" if near and near[0] in PRIMITIVES else _KINDS_HINT
                raise self._error(
                    f"expected a type, found {_show(near[0] if near else other)}", hint
                )

    def _primitive(self) -> Primitive:
        match = _KIND.match(self.source, self.at)
        if match is None:
            raise self._error("a type name follows the colon", _KINDS_HINT)
        kind = next((kind for kind in PRIMITIVES if kind == match[1]), None)
        if kind is None:
            raise self._error(f"there is no type :{match[1]}", _kind_hint(match[1]))
        self.at = match.end()
        optional = self.source.startswith("?", self.at)
        self.at += optional
        return Primitive(kind, optional)

    def _fields(self, close: str, depth: int) -> tuple[Field, ...]:
        start, fields = self.at - 1, dict[str, Field]()
        if self._peek() == close:
            self.at += 1
            return ()
        while True:
            self._skip()
            match = _NAME.match(self.source, self.at)
            if match is None:
                raise self._error("expected a field name", "write name :type")
            if match[0] in fields:
                raise self._error(f"the field {match[0]} is named twice", "")
            self.at = match.end()
            fields[match[0]] = Field(match[0], self._type(depth))
            if self._peek() != ",":
                self._expect(close, start)
                return tuple(fields.values())
            self.at += 1

    def _not_optional(self, shape: Type) -> Type:
        if self.source.startswith("?", self.at):
            raise self._error(
                "only a primitive type can be optional", "write :any? or :map? to allow nil"
            )
        return shape

    def _expect(self, close: str, start: int) -> None:
        if self._peek() != close:
            opened = self.source[start]
            _, column = self._position(start)
            hint = f"{opened} at column {column} is open; separate fields with commas"
            found = _show(self.source[self.at]) if self.at < len(self.source) else "the end"
            raise self._error(f"expected {close}, found {found}", hint)
        self.at += 1

    def _skip(self) -> int:
        match = _SPACE.match(self.source, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _peek(self) -> str:
        return self.source[self._skip() : self.at + 1]

    def _position(self, at: int) -> tuple[int, int]:
        line_start = self.source.rfind("\n", 0, at) + 1
        return self.source.count("\n", 0, at) + 1, at - line_start + 1

    def _error(self, message: str, hint: str) -> LangError:
        line, column = self._position(self.at)
        lines = self.source.split("\n")
        return LangError(
            "signature_error",
            message,
            line=line,
            column=column,
            source_line=lines[line - 1][:200],
            hint=hint,
        )


_KINDS_HINT = (
    "types are " + " ".join(f":{kind}" for kind in PRIMITIVES) + ", [type] and {name type}"
)


def _kind_hint(word: str) -> str:
    if word in ("list", "vector", "array", "seq"):
        return "a vector type is written [:any] or [:int]"
    near = _ALIASES.get(word) or next(iter(get_close_matches(word, PRIMITIVES, n=1)), "")
    return f"write :{near}" if near else _KINDS_HINT
