"""Signatures: the typed contract of a program, a tool or a question to a model.

Owns the types and the grammar `[ "(" fields ")" "->" ] type` with its errors. Checking values
against a type is `conform`.

Invariants: `parse(render(s)) == s`. Every error names a line, a column and what to write instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, assert_never

from holdfast.lang.api import LangError
from holdfast.lang.values import Keyword

PrimitiveKind = Literal["string", "int", "float", "bool", "keyword", "any", "map"]
PRIMITIVES: tuple[PrimitiveKind, ...] = ("string", "int", "float", "bool", "keyword", "any", "map")

SOURCE_CHARS_MAX = 20_000
NESTING_MAX = 32

_ALIASES = {
    "str": "string", "text": "string", "datetime": "string", "date": "string",
    "integer": "int", "long": "int", "number": "float", "double": "float", "boolean": "bool",
    "atom": "keyword", "symbol": "keyword", "object": "map", "dict": "map",
}  # fmt: skip
_SPACE = re.compile(r"[\s]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*[?!]?")
_KIND = re.compile(r":([A-Za-z][A-Za-z0-9_-]*)")


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


def show(value: Any) -> str:
    """A value in a message: short, on one line."""
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
            raise self._error(f"nothing may follow the output type, found {show(rest)}", "")
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
                    f"expected a type, found {show(near[0] if near else other)}", hint
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
            found = show(self.source[self.at]) if self.at < len(self.source) else "the end"
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
