"""Collections as a whole: mapping, filtering, reducing, grouping, sorting, combining.

Functions accept any callable. Maps are seen as their entries and sets as their elements, both in
sorted order. Aggregates skip nil and refuse other non-numbers; `sum` of integers is an integer and
`avg` is a float, or nil of nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from itertools import combinations as _combinations
from math import comb
from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import as_function, lookup, read_all
from holdfast.lang.lib_numbers import add, greater, less
from holdfast.lang.lib_seqs import Items, made, positional
from holdfast.lang.meter import ACTIVE, copied, grow, refuse_size, spend
from holdfast.lang.values import (
    PLAIN,
    Keyword,
    Reduced,
    as_key,
    entries,
    equal,
    expected,
    is_true,
    make_set,
    seq_items,
    sort_values,
    unkey,
)

_NOTHING = object()
# What one entry of a map or set takes, about a quarter of the truth: copies soon become garbage.
ENTRY_BYTES = 24


# --- mapping and filtering -----------------------------------------------------------------------


def _rows(colls: tuple[Value, ...]) -> Iterable[tuple[Value, ...]]:
    return zip(*[seq_items(coll) for coll in colls], strict=False)


def results(fn: Value, items: Items) -> list[Value]:
    """`fn` of every item; a keyword over rows is read in one go."""
    if type(fn) is Keyword and (found := read_all(fn, items)) is not None:
        return found
    call = as_function(fn)
    return [call(item) for item in items]


def map_(fn: Value, coll: Value, *more: Value) -> Items:
    if more:
        call = as_function(fn)
        return made([call(*row) for row in _rows((coll, *more))])
    items = seq_items(coll)
    grow(len(items))
    return tuple(results(fn, items))


def map_indexed(fn: Value, coll: Value) -> Items:
    call = as_function(fn)
    return made([call(index, item) for index, item in enumerate(seq_items(coll))])


def mapcat(fn: Value, coll: Value, *more: Value) -> Items:
    call = as_function(fn)
    found: list[Value] = []
    for row in _rows((coll, *more)):
        items = seq_items(call(*row))
        grow(len(items))
        found += items
    return tuple(found)


def filter_(pred: Value, coll: Value) -> Items:
    items = seq_items(coll)
    grow(len(items))
    if type(pred) is Keyword:
        kept = zip(items, results(pred, items), strict=True)
        return tuple([item for item, r in kept if r is not None and r is not False])
    test = as_function(pred)
    return tuple([item for item in items if (r := test(item)) is not None and r is not False])


def remove(pred: Value, coll: Value) -> Items:
    test = as_function(pred)
    items = seq_items(coll)
    grow(len(items))
    return tuple([item for item in items if (r := test(item)) is None or r is False])


def keep(fn: Value, coll: Value) -> Items:
    call = as_function(fn)
    return _kept(call(item) for item in seq_items(coll))


def keep_indexed(fn: Value, coll: Value) -> Items:
    call = as_function(fn)
    return _kept(call(index, item) for index, item in enumerate(seq_items(coll)))


def _kept(results: Iterable[Value]) -> Items:
    return made([each for each in results if each is not None])


def replace_items(table: Value, coll: Value) -> Items:
    """The two-argument `replace`: items that are keys of the table become their values."""
    return made([lookup(table, item, item) for item in seq_items(coll)])


# --- questions -----------------------------------------------------------------------------------


def some(pred: Value, coll: Value) -> Value:
    test = as_function(pred)
    items = seq_items(coll)
    spend(len(items))
    for item in items:
        found = test(item)
        if is_true(found):
            return found
    return None


def every(pred: Value, coll: Value) -> bool:
    test = as_function(pred)
    items = seq_items(coll)
    spend(len(items))
    return all(is_true(test(item)) for item in items)


def not_any(pred: Value, coll: Value) -> bool:
    return some(pred, coll) is None


def not_every(pred: Value, coll: Value) -> bool:
    return not every(pred, coll)


def distinct_question(first: Value, *rest: Value) -> bool:
    return len(make_set((first, *rest))) == len(rest) + 1


# --- reducing ------------------------------------------------------------------------------------


def reduce(fn: Value, first: Value, *rest: Value) -> Value:
    call, args = as_function(fn), (first, *rest)
    items = seq_items(args[-1])
    spend(len(items))
    if len(args) == 2:
        total = args[0]
    elif not items:
        return call()
    else:
        total, items = items[0], items[1:]
    if fn is add:
        return sum_all(total, items)
    if fn is conj and total is not None:
        return into(total, items)
    for item in items:
        total = call(total, item)
        if type(total) is Reduced:
            return total.value
    return total


def sum_all(total: Value, items: Items) -> Value:
    if items and type(total) is int and set(map(type, items)) == {int}:
        return sum(items, total)
    return add(total, *items) if items else total


def reductions(fn: Value, first: Value, *rest: Value) -> Items:
    call, args = as_function(fn), (first, *rest)
    items = seq_items(args[-1])
    if len(args) == 1:
        if not items:
            return (call(),)
        found, items = [items[0]], items[1:]
    else:
        found = [args[0]]
    for item in items:
        total = call(found[-1], item)
        if type(total) is Reduced:
            found.append(total.value)
            break
        found.append(total)
    return made(found)


def run_all(fn: Value, coll: Value) -> None:
    call = as_function(fn)
    for item in seq_items(coll):
        spend(1)
        call(item)


def reduced(value: Value) -> Reduced:
    return Reduced(value)


def is_reduced(value: Value) -> bool:
    return type(value) is Reduced


def unreduced(value: Value) -> Value:
    return value.value if type(value) is Reduced else value


def reduce_kv(fn: Value, init: Value, coll: Value) -> Value:
    call = as_function(fn)
    total = init
    pairs: Iterable[tuple[Value, Value]]
    if isinstance(coll, tuple):
        pairs = enumerate(coll)
    elif coll is None or type(coll) is dict:
        pairs = entries(coll or {})
    else:
        raise expected("reduce-kv", "a map", coll)
    for key, item in pairs:
        total = call(total, key, item)
        if type(total) is Reduced:
            return total.value
    return total


def frequencies(coll: Value) -> dict[Any, Value]:
    items = seq_items(coll)
    grow(len(items))
    found: dict[Any, Value] = {}
    for item in items:
        key = as_key(item)
        found[key] = found.get(key, 0) + 1
    return found


def group_by(fn: Value, coll: Value) -> dict[Any, Value]:
    items = seq_items(coll)
    grow(len(items) * 2)
    found = results(fn if type(fn) is not str else key_of(fn), items)
    keys = found if PLAIN.issuperset(map(type, found)) else map(as_key, found)
    groups: defaultdict[Any, list[Value]] = defaultdict(list)
    for item, key in zip(items, keys, strict=True):
        groups[key].append(item)
    return {key: tuple(group) for key, group in groups.items()}


# --- reading a field ----------------------------------------------------------------------------


def field_of(key: Value) -> Callable[[Value], Value]:
    """What `…-by` functions read: a keyword or string as a key, a vector as a path."""
    if type(key) is str:
        return lambda item: lookup(item, key)
    if isinstance(key, tuple):
        return lambda item: _path(item, key)
    return as_function(key)


def key_of(key: Value) -> Callable[[Value], Value]:
    """What `group-by` and `sort-by` read: any callable, or a string as a key."""
    return field_of(key) if type(key) is str else as_function(key)


def _path(item: Value, path: Items) -> Value:
    for key in path:
        item = lookup(item, key)
    return item


# --- order ---------------------------------------------------------------------------------------


def comparator(fn: Value) -> Callable[[Value, Value], int]:
    """A comparator as Clojure takes it: numbers by sign, booleans as "comes before"."""
    call = as_function(fn)

    def compare_with(one: Value, other: Value) -> int:
        found = call(one, other)
        if type(found) is int or type(found) is float:
            return (found > 0) - (found < 0)
        if is_true(found):
            return -1
        return 1 if is_true(call(other, one)) else 0

    return compare_with


def _sorted(coll: Value, key: Callable[[Value], Value] | None, how: Value) -> Items:
    items = seq_items(coll)
    direction = how.name if type(how) is Keyword else ""
    if how is _NOTHING or how is None or direction in ("asc", "desc"):
        return made(sort_values(items, key, reverse=direction == "desc"))
    if direction:
        raise LangError("type_error", f"sort knows :asc and :desc, not :{direction}")
    if how is greater or how is less:
        keys = items if key is None else [key(item) for item in items]
        if set(map(type, keys)) == {int}:
            # `sorted` is stable in both directions, as a comparator would be.
            spend(len(items) * max(len(items).bit_length(), 1))
            order_of = sorted(range(len(items)), key=keys.__getitem__, reverse=how is greater)
            return made([items[index] for index in order_of])
    order = cmp_to_key(comparator(how))
    spend(len(items) * max(len(items).bit_length(), 1))
    ranks = [order(item if key is None else key(item)) for item in items]
    with ACTIVE.get().sorting():
        indexes = sorted(range(len(items)), key=ranks.__getitem__)
    return made([items[index] for index in indexes])


def sort(first: Value, *rest: Value) -> Items:
    return _sorted(rest[0], None, first) if rest else _sorted(first, None, _NOTHING)


def sort_by(key: Value, first: Value, *rest: Value) -> Items:
    if rest:
        return _sorted(rest[0], key_of(key), first)
    return _sorted(first, key_of(key), _NOTHING)


def distinct(coll: Value) -> Items:
    items = positional("distinct", coll)
    grow(len(items))
    found: dict[Any, None] = {}
    for item in items:
        found.setdefault(as_key(item))
    return tuple(map(unkey, found))


def dedupe(coll: Value) -> Items:
    found: list[Value] = []
    for item in positional("dedupe", coll):
        if not found or not equal(found[-1], item):
            found.append(item)
    return made(found)


# --- building ------------------------------------------------------------------------------------


def conj(*args: Value) -> Value:
    if not args:
        return ()
    coll, items = args[0], args[1:]
    if coll is None:
        return made(items) if items else None
    if isinstance(coll, tuple):
        copied(len(coll) + len(items))
        return coll + items
    if type(coll) is frozenset:
        copied(len(coll), ENTRY_BYTES)
        return coll | make_set(items)
    if type(coll) is dict:
        copied(len(coll), ENTRY_BYTES)
        found = dict(coll)
        for item in items:
            conj_entry(found, item)
        return found
    raise expected("conj", "a collection", coll)


def conj_entry(table: dict[Any, Value], item: Value) -> None:
    """Add an entry, a pair or a whole map to a map under construction."""
    if item is None:
        return
    if type(item) is dict:
        grow(len(item))
        table.update(item)
    elif isinstance(item, tuple) and len(item) == 2:
        table[as_key(item[0])] = item[1]
    else:
        raise LangError("type_error", "a map takes pairs [key value] or maps")


def into(*args: Value) -> Value:
    if len(args) < 2:
        return args[0] if args else ()
    target, source = args[0], args[-1]
    if len(args) == 3:
        raise LangError("arity_error", "into takes a target and a source: there are no transducers")
    items = seq_items(source)
    if isinstance(target, tuple) or target is None:
        if target is None and not items:
            return None
        return made((*(target or ()), *items))
    if type(target) is frozenset:
        grow(len(target) + len(items))
        return target | make_set(items)
    if type(target) is dict:
        grow(len(target) + len(items) * 2)
        found = dict(target)
        for item in items:
            conj_entry(found, item)
        return found
    raise expected("into", "a collection", target)


def _bounded(name: str, size: int) -> None:
    limit = ACTIVE.get().limits.combinations
    if size > limit:
        refuse_size("combinations", f"{name} of {size} results")
    spend(size)


def combinations(coll: Value, size: Value) -> Items:
    items = seq_items(coll)
    if type(size) is not int or size < 0:
        return ()
    _bounded("combinations", comb(len(items), size) * max(size, 1))
    grow(comb(len(items), size) * max(size, 1))
    return tuple(_combinations(items, size))


def pairs(coll: Value) -> Items:
    return combinations(coll, 2)


def empty(coll: Value) -> Value:
    if type(coll) is tuple:
        return ()
    if type(coll) is dict:
        return {}
    return frozenset() if type(coll) is frozenset else None


def is_empty(coll: Value) -> bool:
    if isinstance(coll, tuple | dict | frozenset | str):
        return not coll
    return not seq_items(coll)


def not_empty(coll: Value) -> Value:
    return None if is_empty(coll) else coll


def tree_seq(branch: Value, children: Value, root: Value) -> Items:
    test, below = as_function(branch), as_function(children)
    found: list[Value] = []
    stack = [root]
    while stack:
        node = stack.pop()
        found.append(node)
        grow(1)
        if is_true(test(node)):
            under = seq_items(below(node))
            if type(node) is str and under == (node,):
                # A character's only item is itself, since characters are strings here.
                continue
            stack.extend(reversed(under))
    return tuple(found)
