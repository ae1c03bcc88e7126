"""Descriptors: what a value looks like, without running one line of its code.

Owns the walk from any Python object to plain, bounded, redacted JSON. Never calls `repr`, `str`,
properties, `__getattr__`, iteration or comparison of a class that is not built in: attributes come
from the instance's own dict and slots through the C descriptors, and containers are read through
the methods of the built-in type. Does not own which values are worth describing (`capture`).

A descriptor is `{"type"}` and, where they apply, `value` (a JSON scalar), `len` (the full size),
`items` (of a sequence), `entries` (of a mapping), `attrs` (of an object).
Invariants: bounded in depth, width, text and total nodes, whatever the value; every text passed the
redactor before it was cut; never raises; a cycle ends at the depth.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from holdfast.trace.redact import MARGIN, Redactor, mark_of_name

Descriptor = dict[str, Any]

_CLASS_NAME = type.__dict__["__name__"].__get__
_CLASS_DICT = type.__dict__["__dict__"].__get__
_CLASS_MRO = type.__dict__["__mro__"].__get__
_MISSING = object()

# Written in C or in the standard library, so that their `str` runs no code of the program.
_PLAIN_TEXT = {
    "datetime": ("datetime", "date", "time", "timedelta"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "pathlib": ("PosixPath", "WindowsPath", "PurePosixPath"),
    "uuid": ("UUID",),
    "builtins": ("complex", "range", "slice"),
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one descriptor: characters of a text, items of a container, levels, nodes."""

    text_chars: int = 400
    items: int = 8
    depth: int = 4
    nodes: int = 80


LIMITS = Limits()


def describe(
    value: Any, redactor: Redactor, *, name: str = "", limits: Limits = LIMITS
) -> Descriptor:
    """The descriptor of a value known to the program as `name`, which can make it a secret."""
    try:
        if type(value) is str and not name and len(value) <= limits.text_chars:  # mostly it is
            return {"type": "str", "value": clip(value, redactor, limits.text_chars)}
        return _Walk(redactor, limits).any(value, name, limits.depth)
    except Exception as error:  # a hostile class found a way in: say so, harm nobody
        return {"type": "unknown", "value": f"not described: {_CLASS_NAME(type(error))}"}


def clip(text: str, redactor: Redactor, chars_max: int) -> str:
    """The text redacted, then cut in the middle to at most `chars_max` characters and a note.

    A huge text is sliced before; what a slice may have cut in half stays out of what is shown.
    """
    size = len(text)
    if size <= chars_max + 4 * MARGIN:
        redacted = redactor.text(text)
        if len(redacted) <= chars_max:
            return redacted
        head, tail = redacted, redacted
    else:
        head = redactor.text(text[: chars_max + 2 * MARGIN])
        head = head[: max(0, len(head) - MARGIN)]
        tail = redactor.text(text[-(chars_max + 2 * MARGIN) :])[MARGIN:]
    first = chars_max * 2 // 3
    last = chars_max - first
    return f"{head[:first]}…[{size - chars_max} more]…{tail[len(tail) - last :]}"


def class_name(kind: type) -> str:
    """The name of a class, even if its metaclass would rather not say."""
    return str(_CLASS_NAME(kind))


def own_dict(value: object) -> dict[str, Any] | None:
    """The instance's own attributes, by the C descriptor only; None if there is none."""
    descriptor = _class_attribute(type(value), "__dict__")
    if type(descriptor) is GetSetDescriptorType or type(descriptor) is MemberDescriptorType:
        found = descriptor.__get__(value)
        return found if type(found) is dict else None
    return None


class _Walk:
    """One descriptor in the making; counts the nodes it has left."""

    def __init__(self, redactor: Redactor, limits: Limits) -> None:
        self.redactor, self.limits, self.nodes = redactor, limits, limits.nodes

    def any(self, value: Any, name: str, depth: int) -> Descriptor:
        kind = type(value)
        self.nodes -= 1
        if value is None or kind is bool:
            return {"type": class_name(kind), "value": value}
        sign = mark_of_name(name) if name else ""
        if sign:
            return {"type": class_name(kind), "value": sign}
        if kind is str:
            return self.text(value, name)
        if kind is int or kind is float:
            return self.number(value, kind)
        if isinstance_of(kind, (str, int, float, bytes, bytearray)):
            return self.scalar_subclass(value, name, kind)
        if depth == 0 or self.nodes <= 0:
            return {"type": class_name(kind)}
        if isinstance_of(kind, (dict,)):
            return self.mapping(value, kind, depth)
        if isinstance_of(kind, (list, tuple, set, frozenset)):
            return self.sequence(value, kind, depth)
        return self.object(value, kind, depth)

    def text(self, value: str, name: str = "") -> Descriptor:
        shown = clip(value, self.redactor, self.limits.text_chars)
        if name:
            hidden = self.redactor.value(shown, name)
            shown = hidden if isinstance(hidden, str) else shown
        found: Descriptor = {"type": "str", "value": shown}
        if len(value) > self.limits.text_chars:
            found["len"] = len(value)
        return found

    def number(self, value: float, kind: type) -> Descriptor:
        if kind is float:
            return {"type": "float", "value": value if math.isfinite(value) else str(value)}
        if value.bit_length() > 63:  # type: ignore[attr-defined]  # an int of any size
            shown = str(value) if value.bit_length() < 400 else f"{value.bit_length()} bits"  # type: ignore[attr-defined]  # as above
            return {"type": "int", "value": shown}
        return {"type": "int", "value": value}

    def scalar_subclass(self, value: Any, name: str, kind: type) -> Descriptor:
        """Strings, numbers and bytes of a class of the program's own, and bytes themselves."""
        if isinstance_of(kind, (str,)):
            found = self.text(str.__getitem__(value, slice(None)), name)
        elif isinstance_of(kind, (int,)):
            found = self.number(int.__add__(value, 0), int)
        elif isinstance_of(kind, (float,)):
            found = self.number(float.__add__(value, 0.0), float)
        else:
            base = bytes if isinstance_of(kind, (bytes,)) else bytearray
            size = base.__len__(value)
            shown = bytes(base.__getitem__(value, slice(0, self.limits.text_chars + 2 * MARGIN)))
            found = self.text(shown.decode("utf-8", "backslashreplace"), name)
            found["len"] = size
        return {**found, "type": class_name(kind)}

    def mapping(self, value: Any, kind: type, depth: int) -> Descriptor:
        entries: dict[str, Descriptor] = {}
        for key, item in islice(_pairs(value), self.limits.items):
            label = self.key(key)
            entries[label] = self.any(item, label, depth - 1)
        return {"type": class_name(kind), "len": dict.__len__(value), "entries": entries}

    def sequence(self, value: Any, kind: type, depth: int) -> Descriptor:
        """Of a long list or tuple both ends, the first half first: a prompt's end says most."""
        base = next(b for b in (list, tuple, set, frozenset) if isinstance_of(kind, (b,)))
        size, shown = base.__len__(value), self.limits.items
        if size > shown and (base is list or base is tuple):
            first = (shown + 1) // 2
            ends = (slice(0, first), slice(size - (shown - first), size))
            items = [item for part in ends for item in base.__getitem__(value, part)]
        else:
            items = list(islice(base.__iter__(value), shown))
        described = [self.any(item, "", depth - 1) for item in items]
        return {"type": class_name(kind), "len": size, "items": described}

    def object(self, value: Any, kind: type, depth: int) -> Descriptor:
        found: Descriptor = {"type": class_name(kind)}
        plain = _plain_text(value, kind)
        if plain:
            found["value"] = clip(plain, self.redactor, self.limits.text_chars)
            return found
        if isinstance_of(kind, (BaseException,)):
            arguments = BaseException.__dict__["args"].__get__(value)
            found["items"] = [self.any(item, "", depth - 1) for item in arguments[:4]]
        attrs: dict[str, Descriptor] = {}
        for name, item in islice(_attributes(value, kind), self.limits.items):
            label = self.key(name)
            attrs[label] = self.any(item, label, depth - 1)
        if attrs:
            found["attrs"] = attrs
        return found

    def key(self, key: Any) -> str:
        if type(key) is str:
            return clip(key, self.redactor, 80)
        found = self.any(key, "", 1)
        shown = str(found.get("value", found["type"]))
        plain = type(key) is int or type(key) is float or type(key) is bool
        return shown if plain else f"{found['type']} {shown}"


def isinstance_of(kind: type, bases: tuple[type, ...]) -> bool:
    """`issubclass` by the real bases, not by what a metaclass or `__class__` claims."""
    # Identity, not equality: a metaclass may define `__eq__`.
    return any(base is wanted for base in _CLASS_MRO(kind) for wanted in bases)


def _pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    # A copy, made in C, so that another thread's change does not end the walk.
    return iter(list(dict.items(value)))


def _class_attribute(kind: type, name: str) -> Any:
    for base in _CLASS_MRO(kind):
        found = _CLASS_DICT(base).get(name, _MISSING)
        if found is not _MISSING:
            return found
    return None


def _attributes(value: Any, kind: type) -> Iterator[tuple[str, Any]]:
    for key, item in list((own_dict(value) or {}).items()):
        if type(key) is str:
            yield key, item
    for base in _CLASS_MRO(kind):
        for name, member in list(_CLASS_DICT(base).items()):
            if isinstance(member, MemberDescriptorType) and not name.startswith("__"):
                try:
                    yield name, member.__get__(value)
                except AttributeError:
                    continue  # an empty slot
    shape = _class_attribute(kind, "shape")
    if isinstance(shape, GetSetDescriptorType):  # arrays, which are written in C
        yield "shape", shape.__get__(value)


def _plain_text(value: Any, kind: type) -> str:
    """The text of functions, classes, modules and some types of the standard library."""
    if kind is FunctionType or kind is BuiltinFunctionType:
        return str(value.__qualname__)
    if kind is MethodType:
        function = value.__func__
        return str(function.__qualname__) if type(function) is FunctionType else "method"
    if isinstance_of(kind, (type,)):
        return class_name(value)
    if kind is ModuleType:
        return str((own_dict(value) or {}).get("__name__", ""))
    for module, names in _PLAIN_TEXT.items():
        for name in names:
            if getattr(sys.modules.get(module), name, None) is kind:
                return str(value)
    return ""
