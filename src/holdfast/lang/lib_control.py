"""Built-ins that act: printing, ending the program, tools, tasks, branches, introspection.

Each finds the running branch through the context and does its work on the machine there.
"""

from __future__ import annotations

from typing import Any

from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import as_function
from holdfast.lang.machine import Ending, current
from holdfast.lang.portable import from_host
from holdfast.lang.printer import display, readable
from holdfast.lang.values import Regex, seq_items, type_name


def println(*args: Value) -> None:
    """Text as it is, all else readably, as Clojure has it; cut at `print_chars`."""
    branch = current()
    limit = branch.limits.print_chars
    text = " ".join([_printed(arg, limit) for arg in args])
    if len(text) > limit:
        text = text[:limit] + "…"
    branch.spend(1 + len(text) // 64)
    branch.machine.print_text(branch, text)


def _printed(value: Value, stop_chars: int) -> str:
    readably = value is None or type(value) is float or type(value) is Regex
    return readable(value) if readably else display(value, stop_chars)


def prn(*args: Value) -> None:
    println(" ".join(map(readable, args)))


def return_(value: Value = None) -> None:
    raise Ending("returned", value)


def fail(value: Value = None) -> None:
    raise Ending("failed", value)


def pmap(place: str, fn: Value, *colls: Value) -> Value:
    call = as_function(fn)
    rows = list(zip(*[seq_items(coll) for coll in colls], strict=False))
    jobs = [lambda row=row: call(*row) for row in rows]
    return current().machine.run_all("pmap", place, jobs)


def pcalls(place: str, *thunks: Value) -> Value:
    return current().machine.run_all("pcalls", place, [as_function(thunk) for thunk in thunks])


def task_id(value: Value) -> str:
    if value is None:
        raise LangError("type_error", "a task needs an id", hint='(task "charge_42" …)')
    return display(value)


def task_reset(place: str, id: Value) -> None:
    current().machine.task_reset(place, task_id(id))


def step_done(id: Value, text: Value) -> Value:
    branch = current()
    name, summary = display(id), display(text)
    branch.machine.summaries[name] = summary
    branch.machine.host.step_done(name, summary)
    return text


def budget_remaining() -> Value:
    return from_host(current().machine.host.budget())


def unplaced(fn: Any, name: str) -> Any:
    """The value form of a built-in that is called with its place in the program."""

    def call(*args: Value) -> Value:
        return fn(name, *args)

    return call


def bad_keyword_call(key: Value, *args: Value) -> Value:
    raise LangError(
        "arity_error", f":{key.name} takes a map and a default, got {len(args)} arguments"
    )


def overload(table: tuple[tuple[int, bool, Any], ...], args: tuple[Value, ...]) -> Value:
    """Pick the overload for so many arguments."""
    rest: Any = None
    for arity, takes_rest, fn in table:
        if arity == len(args) and not takes_rest:
            return fn(*args)
        if takes_rest and len(args) >= arity:
            rest = fn
    if rest is None:
        wanted = ", ".join(str(arity) for arity, _, _ in table)
        raise LangError("arity_error", f"the function takes {wanted} arguments, got {len(args)}")
    return rest(*args)


def destructured(value: Value) -> tuple[Value, ...]:
    """What a vector pattern takes apart."""
    if value is None or isinstance(value, tuple | str):
        return seq_items(value)
    raise LangError("destructure_error", f"a vector pattern cannot take apart a {type_name(value)}")
