"""Named queries: SQL lives in `.sql` files and is fetched by name, never spelled in Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\S+)$", re.MULTILINE)


def load(file: str = "queries.sql") -> Mapping[str, str]:
    """The statements of a file of this package by name; a name given twice is an error."""
    parts = _NAME.split(text(file))
    found: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        assert name not in found, f"{file} names {name!r} twice"
        found[name] = body.strip().rstrip(";")
    return MappingProxyType(found)


def text(file: str) -> str:
    """The text of one SQL file of this package."""
    return files("holdfast.store").joinpath(file).read_text(encoding="utf-8")
