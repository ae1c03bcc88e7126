"""Named queries: SQL lives in `.sql` files and is fetched by name, never spelled in Python.

The files name their parameters; a connection is given them by position, which costs a step a tenth
less and is what every driver understands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

_NAME = re.compile(r"^-- name: (\S+)$", re.MULTILINE)
_PARAMETER = re.compile(r"'[^']*'|:([a-z_0-9]+)")


class Statement(NamedTuple):
    """SQL with `?` for each parameter, and what puts named values into that order.

    `bind` raises `KeyError` for a parameter without a value; values without a parameter are left
    out.
    """

    sql: str
    bind: Callable[[Mapping[str, Any]], tuple[Any, ...]]


def load(file: str = "queries.sql") -> Mapping[str, str]:
    """The statements of a file of this package by name; a name given twice is an error."""
    parts = _NAME.split(text(file))
    found: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        assert name not in found, f"{file} names {name!r} twice"
        found[name] = body.strip().rstrip(";")
    return MappingProxyType(found)


def prepare(statements: Mapping[str, str]) -> Mapping[str, Statement]:
    """Named statements with their parameters by position."""
    return MappingProxyType({name: _positional(sql) for name, sql in statements.items()})


def text(file: str) -> str:
    """The text of one SQL file of this package."""
    return Path(__file__).with_name(file).read_text(encoding="utf-8")


def _positional(sql: str) -> Statement:
    names: list[str] = []

    def mark(found: re.Match[str]) -> str:
        if found[1] is None:  # a literal in quotes
            return found[0]
        names.append(found[1])
        return "?"

    return Statement(_PARAMETER.sub(mark, sql), _binder(names))


def _binder(names: list[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)
