"""Functions that make functions, and `apply`.

Every function made here remembers how it was made (`lisp_made`: a built-in's name and arguments),
so that a definition such as `(def f (partial + 1))` can be stored and read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import as_function, lookup
from holdfast.lang.lib_maps import get_in
from holdfast.lang.values import Keyword, compare, equal, is_true, seq_items, type_name

Function = Callable[..., Any]


def _mark(made: Function, name: str, args: tuple[Value, ...]) -> Function:
    made.lisp_name = name  # type: ignore[attr-defined]  # functions carry attributes
    made.lisp_made = (name, args)  # type: ignore[attr-defined]  # functions carry attributes
    return made


def apply(fn: Value, first: Value, *rest: Value) -> Value:
    args = (first, *rest)
    return as_function(fn)(*args[:-1], *seq_items(args[-1]))


def comp(*fns: Value) -> Function:
    calls = [as_function(fn) for fn in fns]

    def composed(*args: Value) -> Value:
        if not calls:
            (only,) = args
            return only
        value = calls[-1](*args)
        for call in reversed(calls[:-1]):
            value = call(value)
        return value

    return _mark(composed, "comp", fns)


def partial(fn: Value, *given: Value) -> Function:
    call = as_function(fn)

    def filled(*args: Value) -> Value:
        return call(*given, *args)

    return _mark(filled, "partial", (fn, *given))


def complement(fn: Value) -> Function:
    call = as_function(fn)

    def opposite(*args: Value) -> bool:
        return not is_true(call(*args))

    return _mark(opposite, "complement", (fn,))


def constantly(value: Value) -> Function:
    def always(*_: Value) -> Value:
        return value

    return _mark(always, "constantly", (value,))


def juxt(first: Value, *rest: Value) -> Function:
    calls = [as_function(fn) for fn in (first, *rest)]

    def beside(*args: Value) -> Value:
        return tuple([call(*args) for call in calls])

    return _mark(beside, "juxt", (first, *rest))


def every_pred(first: Value, *rest: Value) -> Function:
    calls = [as_function(fn) for fn in (first, *rest)]

    def all_hold(*args: Value) -> bool:
        return all(is_true(call(each)) for each in args for call in calls)

    return _mark(all_hold, "every-pred", (first, *rest))


def some_fn(first: Value, *rest: Value) -> Function:
    calls = [as_function(fn) for fn in (first, *rest)]

    def first_true(*args: Value) -> Value:
        found: Value = None
        for each in args:
            for call in calls:
                found = call(each)
                if is_true(found):
                    return found
        return found

    return _mark(first_true, "some-fn", (first, *rest))


def fnil(fn: Value, default: Value, *more: Value) -> Function:
    call = as_function(fn)
    defaults = (default, *more)
    if len(defaults) > 3:
        raise LangError("arity_error", "fnil takes one to three defaults")

    def with_defaults(*args: Value) -> Value:
        given = [
            defaults[index] if arg is None and index < len(defaults) else arg
            for index, arg in enumerate(args)
        ]
        return call(*given)

    return _mark(with_defaults, "fnil", (fn, *defaults))


def memoize(fn: Value) -> Value:
    """Values never change and calls are metered: the function itself is a fair memo."""
    return as_function(fn)


# --- where and its combinators -------------------------------------------------------------------


def _field(name: Value) -> Callable[[Value], Value]:
    if isinstance(name, tuple):
        return lambda item: get_in(item, name)
    if type(name) is Keyword or type(name) is str:
        return lambda item: lookup(item, name)
    raise LangError(
        "type_error", f"where: a field is a keyword, a string or a path, not {type_name(name)}"
    )


def _bare(value: Value) -> Value:
    """Keywords and strings of one name are one value for `= in includes` inside `where`."""
    return value.name if type(value) is Keyword else value


def _same(one: Value, other: Value) -> bool:
    return equal(_bare(one), _bare(other))


def _ordered(one: Value, other: Value, holds: Callable[[int], bool]) -> bool:
    """Values that have no common order fail the test, as nil does: rows need no cleaning first."""
    if one is None or other is None:
        return False
    try:
        return holds(compare(one, other))
    except LangError as error:
        if error.code != "type_error":
            raise
        return False


def _includes(found: Value, value: Value) -> bool:
    if type(found) is str:
        return type(_bare(value)) is str and _bare(value) in found
    return _member(found, value)


def _member(coll: Value, value: Value) -> bool:
    if not isinstance(coll, tuple | frozenset):
        return False
    return any(_same(item, value) for item in seq_items(coll))


WHERE: dict[str, Callable[[Value, Value], bool]] = {
    "=": _same,
    "not=": lambda one, other: not _same(one, other),
    ">": lambda one, other: _ordered(one, other, lambda order: order > 0),
    "<": lambda one, other: _ordered(one, other, lambda order: order < 0),
    ">=": lambda one, other: _ordered(one, other, lambda order: order >= 0),
    "<=": lambda one, other: _ordered(one, other, lambda order: order <= 0),
    "includes": _includes,
    "in": lambda one, other: one is not None and _member(other, one),
}


def where(field: Value, operator: str = "", value: Value = None) -> Function:
    read = _field(field)
    if not operator:

        def truthy(item: Value) -> bool:
            return is_true(read(item))

        return _mark(truthy, "%where", (field,))
    holds = WHERE[operator]

    def matches(item: Value) -> bool:
        return holds(read(item), value)

    return _mark(matches, "%where", (field, operator, value))


def _of_predicates(name: str, join: Callable[[Iterable[bool]], bool]) -> Callable[..., Function]:
    """A maker of predicates that ask several others about one item."""

    def made(*preds: Value) -> Function:
        calls = [as_function(pred) for pred in preds]

        def holds(item: Value) -> bool:
            return join(is_true(call(item)) for call in calls)

        return _mark(holds, name, preds)

    return made


all_of, any_of = _of_predicates("all-of", all), _of_predicates("any-of", any)
none_of = _of_predicates("none-of", lambda found: not any(found))
