"""Sequences by position: access, slices and partitions.

Everything is an eager vector. Maps and sets have no positions, so they are refused here: `seq`,
`entries`, `keys` or `vals` give an ordered view first. Out-of-range positions answer nil or clamp.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import as_function
from holdfast.lang.lib_numbers import number
from holdfast.lang.meter import ACTIVE, grow, refuse_size
from holdfast.lang.values import equal, expected, is_true, seq_items, type_name

Items = tuple[Value, ...]


def positional(name: str, value: Value) -> Items:
    """The items of something that has an order."""
    kind = type(value)
    if kind is tuple:
        return value  # type: ignore[no-any-return]  # the check above is the proof
    if kind is dict or kind is frozenset:
        raise LangError(
            "type_error",
            f"{name} needs an order, and a {type_name(value)} has none",
            hint="take (seq m), (entries m), (keys m) or (vals m) first"
            if kind is dict
            else "take (seq s) or (sort s) first",
        )
    return seq_items(value)


def made(items: Sequence[Value]) -> Items:
    """A new vector, charged."""
    grow(len(items))
    return tuple(items)


def count_arg(name: str, value: Value) -> int:
    """A count or index as Clojure's `int` coercion gives it."""
    found = number(name, value)
    if found != found:
        return 0
    if found in (float("inf"), float("-inf")):
        return 2**31 - 1 if found > 0 else -(2**31)
    return int(found)


# --- one item ------------------------------------------------------------------------------------


def first(coll: Value) -> Value:
    items = positional("first", coll)
    return items[0] if items else None


def second(coll: Value) -> Value:
    items = positional("second", coll)
    return items[1] if len(items) > 1 else None


def last(coll: Value) -> Value:
    items = positional("last", coll)
    return items[-1] if items else None


def rest(coll: Value) -> Items:
    return made(positional("rest", coll)[1:])


def next_(coll: Value) -> Items | None:
    return made(positional("next", coll)[1:]) or None


def butlast(coll: Value) -> Items | None:
    return made(positional("butlast", coll)[:-1]) or None


_NOTHING = object()


def nth(coll: Value, index: Value, default: Value = None) -> Value:
    items = positional("nth", coll)
    at = count_arg("nth", index)
    return items[at] if 0 <= at < len(items) else default


def peek(coll: Value) -> Value:
    if coll is not None and not isinstance(coll, tuple):
        raise expected("peek", "a vector", coll)
    return coll[-1] if coll else None


def pop(coll: Value) -> Items | None:
    if coll is not None and not isinstance(coll, tuple):
        raise expected("pop", "a vector", coll)
    return made(coll[:-1]) if coll else None


# --- slices --------------------------------------------------------------------------------------


def take(count: Value, coll: Value) -> Items:
    return made(positional("take", coll)[: max(count_arg("take", count), 0)])


def drop(count: Value, coll: Value) -> Items:
    return made(positional("drop", coll)[max(count_arg("drop", count), 0) :])


def take_last(count: Value, coll: Value) -> Items | None:
    items, size = positional("take-last", coll), count_arg("take-last", count)
    return made(items[-size:]) or None if size > 0 else None


def drop_last(first: Value, *rest: Value) -> Items:
    size = count_arg("drop-last", first) if rest else 1
    items = positional("drop-last", rest[0] if rest else first)
    return made(items[: max(len(items) - size, 0)] if size > 0 else items)


def _prefix(name: str, pred: Value, coll: Value) -> tuple[Items, int]:
    items, test = positional(name, coll), as_function(pred)
    for index, item in enumerate(items):
        if not is_true(test(item)):
            return items, index
    return items, len(items)


def take_while(pred: Value, coll: Value) -> Items:
    items, size = _prefix("take-while", pred, coll)
    return made(items[:size])


def drop_while(pred: Value, coll: Value) -> Items:
    items, size = _prefix("drop-while", pred, coll)
    return made(items[size:])


def split_at(count: Value, coll: Value) -> Items:
    return (take(count, coll), drop(count, coll))


def split_with(pred: Value, coll: Value) -> Items:
    items, size = _prefix("split-with", pred, coll)
    return (made(items[:size]), made(items[size:]))


def nthrest(coll: Value, count: Value) -> Items | None:
    return drop(count, coll) if coll is not None else None


def nthnext(coll: Value, count: Value) -> Items | None:
    return drop(count, coll) or None


def subvec(coll: Value, start: Value, end: Value = _NOTHING) -> Items:
    if not isinstance(coll, tuple):
        raise expected("subvec", "a vector", coll)
    low = max(count_arg("subvec", start), 0)
    high = len(coll) if end is _NOTHING else count_arg("subvec", end)
    return made(tuple(coll[low : max(high, low)]))


def partition(first: Value, second: Value, *more: Value) -> Items:
    args = (first, second, *more)
    size, step, items = _groups("partition", args)
    if type(args[0]) is float and len(args) < 4:
        return ()  # Clojure compares the size of each group with it, and 2 is not 2.0 there
    if size <= 0 or step <= 0:
        return _no_progress("partition", size, step)
    found = [
        made(items[at : at + size]) for at in range(0, len(items), step) if at + size <= len(items)
    ]
    if len(args) == 4:
        at = len(found) * step
        if at < len(items):
            found.append(made((items[at:] + seq_items(args[2]))[:size]))
    return made(found)


def partition_all(first: Value, second: Value, *more: Value) -> Items:
    size, step, items = _groups("partition-all", (first, second, *more))
    if size <= 0 or step <= 0:
        return _no_progress("partition-all", size, step)
    return made([made(items[at : at + size]) for at in range(0, len(items), step)])


def _groups(name: str, args: Items) -> tuple[int, int, Items]:
    """Size, step (the size unless given) and the items, which come last."""
    size = count_arg(name, args[0])
    step = count_arg(name, args[1]) if len(args) > 2 else size
    return size, step, positional(name, args[-1])


def _no_progress(name: str, size: int, step: int) -> Items:
    if size < 0:
        return ()
    raise LangError("type_error", f"{name} needs a positive size and step, got {size} and {step}")


def partition_by(fn: Value, coll: Value) -> Items:
    items, key = positional("partition-by", coll), as_function(fn)
    groups: list[list[Value]] = []
    previous: Value = _NOTHING
    for item in items:
        found = key(item)
        if previous is _NOTHING or not equal(found, previous):
            groups.append([])
        groups[-1].append(item)
        previous = found
    return made([made(group) for group in groups])


# --- whole sequences -----------------------------------------------------------------------------


def count(coll: Value) -> int:
    if type(coll) is str:
        return len(coll) if coll.isascii() else len(seq_items(coll))
    if coll is None:
        return 0
    if isinstance(coll, tuple | dict | frozenset):
        return len(coll)
    raise expected("count", "a collection", coll)


def seq(coll: Value) -> Items | None:
    return made(seq_items(coll)) or None


def reverse(coll: Value) -> Items:
    return made(positional("reverse", coll)[::-1])


def cons(item: Value, coll: Value) -> Items:
    return made((item, *seq_items(coll)))


def concat(*colls: Value) -> Items:
    found: list[Value] = []
    for coll in colls:
        items = seq_items(coll)
        grow(len(items))
        found += items
    return tuple(found)


def flatten(coll: Value) -> Items:
    """Nested vectors become one; what is no vector has no items to flatten."""
    if not isinstance(coll, tuple):
        return ()
    found: list[Value] = []
    stack = [iter(coll)]
    limit = ACTIVE.get().limits.value_nesting
    while stack:
        for item in stack[-1]:
            if isinstance(item, tuple):
                if len(stack) > limit:
                    refuse_size("value_nesting", "the nesting of a vector")
                grow(len(item))
                stack.append(iter(item))
                break
            found.append(item)
        else:
            stack.pop()
    return made(found)


def interpose(separator: Value, coll: Value) -> Items:
    found: list[Value] = []
    for item in positional("interpose", coll):
        found += (separator, item)
    return made(found[1:])


def interleave(*colls: Value) -> Items:
    columns = [positional("interleave", coll) for coll in colls]
    return made([item for row in zip(*columns, strict=False) for item in row])


def repeat(count: Value, value: Value) -> Items:
    size = max(count_arg("repeat", count), 0)
    if size > ACTIVE.get().limits.range_items:
        refuse_size("range_items", "repeat")
    grow(size)
    return (value,) * size


def take_nth(count: Value, coll: Value) -> Items:
    step = count_arg("take-nth", count)
    if step < 1:
        raise LangError("type_error", f"take-nth needs a positive step, got {step}")
    return made(positional("take-nth", coll)[::step])


def zip_(one: Value, other: Value) -> Items:
    pairs = zip(positional("zip", one), positional("zip", other), strict=False)
    return made(list(pairs))


def range_(first: Value, *rest: Value) -> Items:
    start, end = (first, rest[0]) if rest else (0, first)
    step = rest[1] if len(rest) == 2 else 1
    for each in (start, end, step):
        number("range", each)
    if step == 0:
        if start == end:
            return ()
        raise LangError("memory_exceeded", "range with a step of 0 never ends")
    whole = all(type(each) is int for each in (start, end, step))
    if whole:
        size = len(range(start, end, step)) if abs(end - start) < 2**62 else 2**62
    else:
        size = (end - start) / step
    if size != size or size > ACTIVE.get().limits.range_items:
        refuse_size("range_items", "the range")
    grow(max(int(size), 0) * 3)
    if whole:
        return tuple(range(start, end, step))
    found = []
    index, value = 0, start
    while (value < end) if step > 0 else (value > end):
        found.append(value)
        index += 1
        value = start + index * step
    return tuple(found)
