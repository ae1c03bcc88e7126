"""Maps and sets: reading, changing, merging and set algebra.

Reading is flexible about keyword and string keys (`callables.lookup`), writing is exact, except
that changing an existing key under its other spelling changes that key. nil is an empty map.
"""

from __future__ import annotations

from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import MISSING, as_function, find_key, has_key, lookup
from holdfast.lang.lib_colls import ENTRY_BYTES, conj, conj_entry
from holdfast.lang.lib_seqs import Items, count_arg, made
from holdfast.lang.meter import copied, grow
from holdfast.lang.values import (
    Entry,
    as_key,
    elements,
    entries,
    equal,
    expected,
    make_set,
    seq_items,
    sorted_keys,
    type_name,
    unkey,
)

Table = dict[Any, Value]


def table_of(name: str, value: Value) -> Table:
    if type(value) is dict:
        return value
    if value is None:
        return {}
    raise expected(name, "a map", value)


def copy_of(table: Table) -> Table:
    copied(len(table), ENTRY_BYTES)
    return dict(table)


# --- reading -------------------------------------------------------------------------------------


def get_in(container: Value, path: Value, default: Value = None) -> Value:
    for key in seq_items(path):
        container = lookup(container, key, MISSING)
        if container is MISSING:
            return default
    return container


def contains(coll: Value, key: Value) -> bool:
    if isinstance(coll, tuple):
        return any(equal(item, key) for item in coll)
    if coll is None or isinstance(coll, dict | frozenset):
        return has_key(coll, key)
    if type(coll) is str and type(key) in (int, float):
        return has_key(coll, count_arg("contains?", key))
    raise expected("contains?", "a collection", coll)


def find(coll: Value, key: Value) -> Value:
    if type(coll) is dict:
        found = find_key(coll, key)
        return None if found is MISSING else Entry((unkey(found), coll[found]))
    if isinstance(coll, tuple):
        return Entry((key, lookup(coll, key))) if has_key(coll, key) else None
    if coll is None:
        return None
    raise expected("find", "a map and a key", coll)


def keys(table: Value) -> Items | None:
    found = _viewed("keys", table)
    return made([unkey(key) for key in sorted_keys(found)]) or None


def vals(table: Value) -> Items | None:
    found = _viewed("vals", table)
    return made([found[key] for key in sorted_keys(found)]) or None


def _viewed(name: str, table: Value) -> Table:
    """The map behind a view; of anything without items there is nothing to see, as in Clojure."""
    if isinstance(table, tuple | frozenset | str) and not table:
        return {}
    return table_of(name, table)


def entries_of(table: Value) -> Items:
    return made(entries(table_of("entries", table)))


def key(entry: Value) -> Value:
    return _entry("key", entry)[0]


def val(entry: Value) -> Value:
    return _entry("val", entry)[1]


def _entry(name: str, entry: Value) -> Items:
    if type(entry) is not Entry:
        raise expected(
            name,
            "a map entry",
            entry,
            hint="entries come from seq, entries, find or iterating a map; use first and second",
        )
    return entry


# --- changing ------------------------------------------------------------------------------------


def assoc(coll: Value, key: Value, value: Value, *more: Value) -> Value:
    pairs = (key, value, *more)
    if len(pairs) % 2:
        raise LangError("arity_error", "assoc takes pairs of key and value")
    if isinstance(coll, tuple):
        return _assoc_vector(coll, pairs)
    found = copy_of(table_of("assoc", coll))
    for index in range(0, len(pairs), 2):
        found[as_key(pairs[index])] = pairs[index + 1]
    return found


def _assoc_vector(coll: Items, pairs: Items) -> Items:
    copied(len(coll))
    found = list(coll)
    for index in range(0, len(pairs), 2):
        at = pairs[index]
        if type(at) is not int or not 0 <= at <= len(found):
            shown = at if type(at) is int else f"that is a {type_name(at)}"
            raise LangError(
                "type_error", f"assoc: a vector of {len(found)} items has no index {shown}"
            )
        found[at : at + 1] = [pairs[index + 1]]
    return tuple(found)


def dissoc(coll: Value, *gone: Value) -> Value:
    if coll is None:
        return None
    found = copy_of(table_of("dissoc", coll))
    for each in gone:
        found.pop(as_key(each), None)
    return found


def _writable(coll: Value, key: Value) -> Value:
    """The spelling under which `update` writes: that of an existing key, else its own."""
    if type(coll) is dict:
        found = find_key(coll, key)
        if found is not MISSING:
            return unkey(found)
    return key


def update(coll: Value, key: Value, fn: Value, *args: Value) -> Value:
    place = _writable(coll, key)
    return assoc(coll, place, as_function(fn)(lookup(coll, place), *args))


def assoc_in(coll: Value, path: Value, value: Value) -> Value:
    return _change(coll, seq_items(path) or (None,), lambda _: value)


def update_in(coll: Value, path: Value, fn: Value, *args: Value) -> Value:
    call = as_function(fn)
    return _change(coll, seq_items(path) or (None,), lambda old: call(old, *args))


def _change(coll: Value, path: Items, fn: Any) -> Value:
    places = []
    level = coll
    for each in path:
        place = _writable(level, each)
        places.append((level, place))
        level = lookup(level, place)
    found = fn(level)
    for container, place in reversed(places):
        found = assoc(container, place, found)
    return found


def merge(*maps: Value) -> Value:
    found: Value = None
    for each in maps:
        if each is None:
            continue
        if found is None:
            found = each
        elif type(found) is dict:
            table = copy_of(found)
            conj_entry(table, each)
            found = table
        else:
            found = conj(found, each)
    return found


def merge_with(fn: Value, *maps: Value) -> Value:
    call = as_function(fn)
    found: Value = None
    for each in maps:
        if each is None:
            continue
        if found is None:
            found = each
            continue
        table = table_of("merge-with", each)
        for stored in sorted_keys(table):
            name = unkey(stored)
            if has_key(found, name):
                place = _writable(found, name)
                found = assoc(found, place, call(lookup(found, place), table[stored]))
            else:
                found = assoc(found, name, table[stored])
    return found


def select_keys(coll: Value, wanted: Value) -> Table:
    found: Table = {}
    for each in seq_items(wanted):
        value = lookup(coll, each, MISSING)
        if value is not MISSING:
            found[as_key(each)] = value
    grow(len(found) * 3)
    return found


def update_vals(coll: Value, fn: Value) -> Value:
    if isinstance(coll, tuple):
        call = as_function(fn)
        return made([call(item) for item in coll])
    if callable(coll) and type(fn) is dict:
        coll, fn = fn, coll  # v0.7 took the function first, for ->>
    call = as_function(fn)
    table = table_of("update-vals", coll)
    grow(len(table) * 3)
    return {stored: call(table[stored]) for stored in sorted_keys(table)}


def update_keys(coll: Value, fn: Value) -> Table:
    call = as_function(fn)
    if isinstance(coll, tuple):
        coll = dict(enumerate(coll))
    table = table_of("update-keys", coll)
    grow(len(table) * 3)
    return {as_key(call(unkey(stored))): table[stored] for stored in sorted_keys(table)}


def zipmap(names: Value, values: Value) -> Table:
    found = dict(zip(map(as_key, seq_items(names)), seq_items(values), strict=False))
    grow(len(found) * 3)
    return found


def make_map(*items: Value) -> Table:
    """`hash-map` and computed map literals: later keys win."""
    if len(items) % 2:
        raise LangError("arity_error", "a map needs pairs of key and value")
    grow(len(items) * 2)
    return {as_key(items[index]): items[index + 1] for index in range(0, len(items), 2)}


# --- sets ----------------------------------------------------------------------------------------


def to_set(coll: Value) -> frozenset[Any]:
    items = seq_items(coll)
    grow(len(items) * 3)
    return make_set(items)


def hash_set(*items: Value) -> frozenset[Any]:
    grow(len(items) * 3)
    return make_set(items)


def disj(group: Value, *gone: Value) -> Value:
    if group is None:
        return None
    if type(group) is not frozenset:
        raise expected("disj", "a set", group)
    grow(len(group))
    return group - make_set(gone)


def union(*groups: Value) -> Value:
    found = [each for each in groups if each is not None]
    if not found:
        return frozenset() if not groups else None
    total = found[0]
    if type(total) is frozenset and all(type(each) is frozenset for each in found):
        grow(sum(map(len, found)) * 3)
        return total.union(*found[1:])
    # Clojure's own steps: the largest is the base, the last of equals where there are three.
    sizes = [len(seq_items(each)) for each in found]
    tied = [index for index, size in enumerate(sizes) if size == max(sizes)]
    total = found.pop(tied[-1] if len(found) > 2 else tied[0])
    for each in found:
        total = conj(total, *seq_items(each))
    return total


def _members(name: str, coll: Value) -> frozenset[Any]:
    if type(coll) is frozenset:
        return coll
    raise expected(name, "sets", coll)


def intersection(first: Value, *rest: Value) -> Value:
    found = first
    for each in rest:
        if type(found) is frozenset and type(each) is frozenset:
            grow(min(len(found), len(each)))
            found = found & each
        else:
            found = _intersect(found, each)
    return found


def _intersect(one: Value, other: Value) -> Value:
    """Clojure's own steps, which also answer for collections that are no sets."""
    if one is None or other is None:
        return None
    if len(seq_items(other)) < len(seq_items(one)):
        one, other = other, one
    for item in seq_items(one):
        if not _has(other, item):
            one = _without(one, item)
    return one


def difference(first: Value, *rest: Value) -> Value:
    found = first
    for each in rest:
        if type(found) is frozenset and type(each) is frozenset:
            grow(len(found))
            found = found - each
        elif found is not None and each is not None and type(each) is not str:
            smaller = len(seq_items(found)) < len(seq_items(each))
            gone = [item for item in seq_items(found) if _has(each, item)] if smaller else each
            for item in gone if smaller else seq_items(each):
                found = _without(found, item)
    return found


def _has(coll: Value, item: Value) -> bool:
    """Clojure's `contains?`, by index for vectors."""
    return (
        type(item) is int and 0 <= item < len(coll)
        if isinstance(coll, tuple)
        else has_key(coll, item)
    )


def _without(coll: Value, item: Value) -> Value:
    if type(coll) is frozenset:
        return disj(coll, item)
    if type(coll) is dict:
        return dissoc(coll, item)
    raise LangError("type_error", f"a set is expected, got {type_name(coll)}")


def rename_keys(table: Value, names: Value) -> Value:
    found = copy_of(table_of("rename-keys", table))
    renamed = [(as_key(old), new) for old, new in entries(table_of("rename-keys", names))]
    for old, _ in renamed:
        found.pop(old, None)
    for old, new in renamed:
        if old in table:
            found[as_key(new)] = table[old]
    return found


def map_invert(table: Value) -> Table:
    found = table_of("map-invert", table)
    grow(len(found) * 3)
    return {as_key(found[key]): unkey(key) for key in sorted_keys(found)}


def is_subset(one: Value, other: Value) -> bool:
    return _members("subset?", one) <= _members("subset?", other)


def is_superset(one: Value, other: Value) -> bool:
    return _members("superset?", one) >= _members("superset?", other)


def to_vector(coll: Value) -> Items:
    if type(coll) is frozenset:
        return made(elements(coll))
    return made(seq_items(coll))
