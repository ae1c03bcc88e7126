"""`apropos`, `dir`, `doc`, `source`, `export-meta`: what a program can ask about its language.

They read the catalogue that the machine carries: built-ins, forms, tools and definitions.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.lib_control import println
from holdfast.lang.machine import current
from holdfast.lang.values import Keyword, Symbol, Var, expected, keyword


def _name(function: str, query: Value) -> str:
    if isinstance(query, Keyword | Symbol | Var):
        return str(query.name)
    if isinstance(query, FunctionType):
        return str(getattr(query, "lisp_name", ""))
    if type(query) is not str:
        raise expected(function, "a name", query)
    return query


def apropos(query: Value) -> tuple[str, ...]:
    """Names that contain a text, else names whose doc does; nothing for a blank text."""
    part = _name("apropos", query).lower().strip()
    if not part:
        return ()
    rows = current().machine.catalog()
    hits = [name for name, row in rows.items() if part in name.lower()]
    if not hits:
        hits = [name for name, row in rows.items() if part in row["doc"].lower()]
    return tuple(sorted(hits))


def directory(*query: Value) -> tuple[str, ...]:
    """The names of a namespace or group; without one, the namespaces and groups themselves."""
    rows = current().machine.catalog()
    spaces = {name: {row["group"], *row["aliases"]} for name, row in rows.items()}
    if not query:
        return tuple(sorted(set().union(*spaces.values())))
    wanted = _name("dir", query[0])
    return tuple(sorted(name for name, found in spaces.items() if wanted in found))


def doc(query: Value) -> None:
    """Prints usage and doc of a name, as Clojure's `doc` does: a print is what a model sees."""
    name = _name("doc", query)
    row = current().machine.catalog().get(name)
    if row is None:
        println(f'There is no documentation of "{name}".')
        return
    lines = [row["usage"] or name, row["doc"]]
    if row["example"]:
        lines.append(f"{row['example']} ;=> {row['value']}")
    println("\n".join(line for line in lines if line))


def source(value: Value) -> str | None:
    machine = current().machine
    if isinstance(value, Var | Symbol):
        try:
            value = machine.root.definition(value.name)
        except LangError:
            return None
    if not isinstance(value, FunctionType):
        return None
    info = machine.infos.get(value.__code__)
    return info.text or None if info is not None else None


def meta(query: Value) -> dict[Any, Value] | None:
    row = current().machine.catalog().get(_name("export-meta", query))
    if row is None:
        return None
    return {keyword(key): item for key, item in row.items()}
