"""`apropos`, `dir`, `doc`, `source`, `export-meta`: what a program can ask about its language.

They read the catalogue that the machine carries: built-ins, forms, tools and definitions.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from holdfast.lang.api import Value
from holdfast.lang.machine import current
from holdfast.lang.values import Keyword, Symbol, Var, keyword


def _name(query: Value) -> str:
    if isinstance(query, Keyword | Symbol | Var):
        return str(query.name)
    return str(getattr(query, "lisp_name", "")) or (query if isinstance(query, str) else "")


def apropos(query: Value) -> tuple[str, ...]:
    part = _name(query).lower()
    rows = current().machine.catalog()
    hits = [name for name, row in rows.items() if part in name.lower()]
    if not hits:
        hits = [name for name, row in rows.items() if part in row["doc"].lower()]
    return tuple(sorted(hits))


def directory(query: Value) -> tuple[str, ...]:
    wanted = _name(query)
    rows = current().machine.catalog()
    return tuple(
        sorted(name for name, row in rows.items() if wanted in (row["group"], *row["aliases"]))
    )


def doc(query: Value) -> str | None:
    row = current().machine.catalog().get(_name(query))
    if row is None:
        return None
    lines = [row["usage"] or _name(query), row["doc"]]
    if row["example"]:
        lines.append(f"{row['example']} ;=> {row['value']}")
    return "\n".join(line for line in lines if line)


def source(value: Value) -> str | None:
    machine = current().machine
    if isinstance(value, Var | Symbol):
        value = machine.root.definition(value.name)
    if not isinstance(value, FunctionType):
        return None
    info = machine.infos.get(value.__code__)
    return info.text or None if info is not None else None


def meta(query: Value) -> dict[Any, Value] | None:
    row = current().machine.catalog().get(_name(query))
    if row is None:
        return None
    return {keyword(key): item for key, item in row.items()}
