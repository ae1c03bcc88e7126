"""Tree walks: `walk`, `prewalk`, `postwalk` and the key converters.

Owns no recursion limit of its own: Python's, set by the machine, ends a walk that is too deep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import as_function
from holdfast.lang.lib_seqs import made
from holdfast.lang.lib_types import identity
from holdfast.lang.meter import grow
from holdfast.lang.values import Entry, Keyword, as_key, elements, entries, keyword, make_set

Step = Callable[[Value], Value]


def _walk(inner: Step, outer: Step, form: Value) -> Value:
    kind = type(form)
    if kind is tuple:
        return outer(made([inner(item) for item in form]))
    if kind is Entry:
        return outer(Entry((inner(form[0]), inner(form[1]))))
    if kind is dict:
        grow(len(form) * 2)
        found: dict[Any, Value] = {}
        for entry in entries(form):
            pair = inner(entry)
            if pair is None:
                continue
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise LangError("type_error", "walk: a map entry must become a pair")
            found[as_key(pair[0])] = pair[1]
        return outer(found)
    if kind is frozenset:
        return outer(make_set([inner(item) for item in elements(form)]))
    return outer(form)


def walk(inner: Value, outer: Value, form: Value) -> Value:
    return _walk(as_function(inner), as_function(outer), form)


def postwalk(fn: Value, form: Value) -> Value:
    call = as_function(fn)

    def step(item: Value) -> Value:
        return _walk(step, call, item)

    return step(form)


def prewalk(fn: Value, form: Value) -> Value:
    call = as_function(fn)

    def step(item: Value) -> Value:
        return _walk(step, identity, call(item))

    return step(form)


def keywordize_keys(form: Value) -> Value:
    return _rekey(form, lambda key: keyword(key) if type(key) is str else key)


def stringify_keys(form: Value) -> Value:
    return _rekey(form, lambda key: key.name if type(key) is Keyword else key)


def _rekey(form: Value, change: Step) -> Value:
    def step(item: Value) -> Value:
        if type(item) is dict:
            return {as_key(change(entry[0])): entry[1] for entry in entries(item)}
        return item

    return postwalk(step, form)
