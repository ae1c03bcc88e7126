"""Aggregates over collections and over a field of their items.

nil is skipped, other non-numbers are refused. A sum of integers is an integer; a mean is a float,
and nil of nothing. Of equal extremes the first item wins in `…-by`, the last in `…-key`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.lang.api import Value
from holdfast.lang.callables import as_function
from holdfast.lang.lib_colls import field_of, sum_all
from holdfast.lang.lib_numbers import number
from holdfast.lang.lib_seqs import Items, made
from holdfast.lang.meter import spend
from holdfast.lang.values import as_key, compare, seq_items

_NOTHING = object()


def _numbers(name: str, found: Iterable[Value]) -> list[Value]:
    return [number(name, item) for item in found if item is not None]


def sum_(coll: Value) -> Value:
    items = seq_items(coll)
    spend(len(items))
    return sum_all(0, tuple(_numbers("sum", items)))


def avg(coll: Value) -> float | None:
    found = _numbers("avg", seq_items(coll))
    return sum_all(0, tuple(found)) / len(found) if found else None


def sum_by(key: Value, coll: Value) -> Value:
    return sum_(tuple(map(field_of(key), seq_items(coll))))


def avg_by(key: Value, coll: Value) -> float | None:
    return avg(tuple(map(field_of(key), seq_items(coll))))


def _extreme_by(sign: int) -> Callable[[Value, Value], Value]:
    def extreme_by(key: Value, coll: Value) -> Value:
        read = field_of(key)
        best: Value = None
        best_rank: Value = _NOTHING
        for item in seq_items(coll):
            rank = read(item)
            if rank is None:
                continue
            if best_rank is _NOTHING or compare(rank, best_rank) * sign > 0:
                best, best_rank = item, rank
        return best

    return extreme_by


min_by, max_by = _extreme_by(-1), _extreme_by(1)


def _extreme_key(name: str, sign: int) -> Callable[..., Value]:
    def extreme_key(fn: Value, first: Value, *rest: Value) -> Value:
        call = as_function(fn)
        if not rest:
            return first
        best, best_rank = first, number(name, call(first))
        for item in rest:
            rank = number(name, call(item))
            if (rank - best_rank) * sign >= 0:
                best, best_rank = item, rank
        return best

    return extreme_key


min_key, max_key = _extreme_key("min-key", -1), _extreme_key("max-key", 1)


def distinct_by(key: Value, coll: Value) -> Items:
    read = field_of(key)
    seen: set[Any] = set()
    found = []
    for item in seq_items(coll):
        stored = as_key(read(item))
        if stored not in seen:
            seen.add(stored)
            found.append(item)
    return made(found)


def pluck(key: Value, coll: Value) -> Items:
    return made([*map(field_of(key), seq_items(coll))])
