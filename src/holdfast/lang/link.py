"""A translation becomes a namespace that can run: helpers, built-ins, inputs, definitions.

Owns what emitted names mean, and adoption: a function made in an earlier turn gets the namespace of
this one, so that definitions are looked up where it runs and its fuel is this run's. The namespace
has empty `__builtins__`, and nothing in it is a host object with reachable attributes, since
emitted code has no attribute access.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from types import CellType, CodeType, FunctionType
from typing import Any

from holdfast.lang import lib_control, library
from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import as_function
from holdfast.lang.compiler import compile_source
from holdfast.lang.lib_maps import hash_set, make_map
from holdfast.lang.machine import Machine, current
from holdfast.lang.meter import grow
from holdfast.lang.naming import global_name
from holdfast.lang.portable import named_input
from holdfast.lang.reader import Form, Source, read
from holdfast.lang.values import Entry, Keyword, Stored, as_key, seq_items, unkey
from holdfast.lang.writer import Code

LAP = 16
_MISSING = object()
_KEYS = frozenset({str, Keyword, int, float, type(None)})  # hold no function


def _lap(left: int) -> tuple[int, int]:
    """Fuel for the next rounds of a loop: how many may go, and how many are left after."""
    if left <= 0:
        current().loop_limit()
    lap = min(left, LAP)
    current().spend(lap)
    return lap - 1, left - lap


def _vector(rows: list[Value]) -> tuple[Value, ...]:
    grow(len(rows))
    return tuple(rows)


HELPERS: Mapping[str, Any] = {
    "__builtins__": {},
    "k_type": type,
    "k_int": int,
    "k_dict": dict,
    "k_tuple": tuple,
    "k_fn": FunctionType,
    "k_callable": as_function,
    "k_keyword_arity": lib_control.bad_keyword_call,
    "k_lap": _lap,
    "k_list": list,
    "k_push": list.append,
    "k_vector": _vector,
    "k_map": make_map,
    "k_set": hash_set,
    "k_seq": seq_items,
    "k_overload": lib_control.overload,
    "k_pmap": lib_control.pmap,
    "k_pcalls": lib_control.pcalls,
    "k_task_id": lib_control.task_id,
    "k_task_reset": lib_control.task_reset,
}


class Linker:
    """Fills the namespace of one machine."""

    def __init__(
        self,
        machine: Machine,
        *,
        context: Mapping[Any, Any],
        memory: Mapping[str, Value],
        history: tuple[Value, ...],
    ) -> None:
        self.machine = machine
        self.context = context
        self.memory = memory
        self.history = history
        self.namespace = machine.namespace
        self.adopted: dict[int, tuple[FunctionType, FunctionType]] = {}
        self.memory_names = {global_name(name): name for name in memory}
        self.namespace.update(HELPERS)
        self.namespace["k_cell"] = machine.root.cell
        self.namespace["k_refill"] = _refill
        self.namespace["k_rounds"] = machine.limits.loop_iterations + 1
        self.namespace["k_bound"] = self.namespace.__contains__
        self.namespace["k_tool"] = machine.call_tool
        self.namespace["k_task_begin"] = machine.task_begin
        self.namespace["k_task_done"] = machine.task_done
        # Not names that emitted code uses: what adoption in a later turn looks up.
        self.namespace["k_info"] = machine.infos
        self.namespace["k_sources"] = machine.sources
        self.namespace["k_names"] = machine.names

    def link(self, code: Code) -> Any:
        """Make the names of a translation available; returns its entry function."""
        namespace = self.namespace
        self.machine.infos.update(code.infos)
        self.machine.sources[code.filename] = code.program.source
        namespace.update(code.constants)
        for name in code.builtins:
            namespace[library.python_name(name)] = library.function_of(name)
        for generated, (kind, name) in code.inputs.items():
            if generated not in namespace:
                namespace[generated] = self.input(kind, name)
        for generated, name in code.globals.items():
            self.define(generated, name, name in code.program.defined)
        local: dict[str, Any] = {}
        exec(code.code, namespace, local)  # noqa: S102  our own code object, with empty builtins
        return local["main"]

    def input(self, kind: str, name: str) -> Value:
        if kind == "data":
            return named_input(self.context, name)
        index = int(name[1:]) - 1
        return self.adopt(self.history[index]) if index < len(self.history) else None

    def define(self, generated: str, name: str, defined_here: bool = False) -> None:
        """Bind a definition of an earlier turn, or a built-in that a later `def` will hide."""
        machine = self.machine
        if generated in machine.names:
            return
        machine.names[generated] = name
        if name in self.memory:
            self.namespace[generated] = _MISSING
            self.namespace[generated] = self.adopt(self.memory[name])
            machine.initial[generated] = self.namespace[generated]
        elif defined_here:
            row = library.resolve(name)
            if isinstance(row, library.Row):
                self.namespace[generated] = row.fn
                machine.initial[generated] = row.fn

    def adopt(self, value: Value) -> Value:
        """The value with every function in it bound to this namespace."""
        kind = type(value)
        if kind is FunctionType:
            return self.adopt_function(value)
        if kind is Stored:
            return self.revive(value)
        if kind is tuple or kind is Entry:
            items = kind([self.adopt(item) for item in value])
            return value if all(map(is_, items, value)) else items
        if kind is dict:
            found = {self.adopt_key(key): self.adopt(item) for key, item in value.items()}
            same = all(map(is_, found, value)) and all(map(is_, found.values(), value.values()))
            return value if same else found
        if kind is frozenset:
            keys = map(self.adopt_key, value)
            return value if _KEYS.issuperset(map(type, value)) else frozenset(keys)
        return value

    def adopt_key(self, key: Any) -> Any:
        if type(key) in _KEYS:
            return key
        held = unkey(key)
        found = self.adopt(held)
        return key if found is held else as_key(found)

    def adopt_function(self, fn: FunctionType) -> Value:
        if fn.__globals__ is self.namespace or "k_cell" not in fn.__globals__:
            made = getattr(fn, "lisp_made", None)
            if made is None:
                return fn
            args = tuple(self.adopt(arg) for arg in made[1])
            same = all(a is b for a, b in zip(args, made[1], strict=True))
            return fn if same else library.function_of(made[0])(*args)
        known = self.adopted.get(id(fn))
        if known is not None:
            return known[1]
        self.import_names(fn.__code__, fn.__globals__)
        cells = tuple(CellType() for _ in fn.__closure__ or ())
        found = FunctionType(
            fn.__code__, self.namespace, fn.__name__, fn.__defaults__, cells or None
        )
        self.adopted[id(fn)] = (fn, found)
        for cell, old in zip(cells, fn.__closure__ or (), strict=True):
            try:
                cell.cell_contents = self.adopt(old.cell_contents)
            except ValueError:  # an empty cell: a name bound later that never was
                continue
        return found

    def revive(self, stored: Stored) -> Value:
        """Compile a stored function here, under the limits of this run.

        Refuses text that is more than one function: reviving must not run a program.
        """
        limits = self.machine.limits
        forms = read(Source(stored.source), limits)
        if len(forms) != 1 or not _makes_function(forms[0]):
            raise LangError("type_error", "a stored function is not the text of a function")
        env = {name: self.adopt(value) for name, value in stored.env.items()}
        code = compile_source(
            stored.source,
            limits=limits,
            known={*self.memory, *self.machine.names.values()},
            captures={name: f"e{index}" for index, name in enumerate(env)},
        )
        return self.link(code)(*env.values())

    def import_names(self, code: CodeType, origin: Mapping[str, Any]) -> None:
        """Bring the names that code uses from its own namespace into this one."""
        infos = origin["k_info"]
        if code in infos:
            self.machine.infos[code] = infos[code]
        source = origin["k_sources"].get(code.co_filename)
        if source is not None:
            self.machine.sources[code.co_filename] = source
        for name in code.co_names:
            if name[0] == "g":
                self.import_definition(name, origin)
            elif name in self.namespace or name.startswith("k_"):
                continue
            elif name[0] in "dh":
                self.namespace[name] = origin.get(name)
            elif name in origin:
                self.namespace[name] = origin[name]
        for each in code.co_consts:
            if isinstance(each, CodeType):
                self.import_names(each, origin)

    def import_definition(self, generated: str, origin: Mapping[str, Any]) -> None:
        name = self.memory_names.get(generated) or origin["k_names"].get(generated, "")
        if name and generated not in self.machine.names:
            self.define(generated, name, True)


_MAKERS = frozenset(
    {"comp", "partial", "complement", "constantly", "juxt", "every-pred", "some-fn", "fnil",
     "all-of", "any-of", "none-of", "where"}
)  # fmt: skip


def _makes_function(form: Form) -> bool:
    """A `fn`, a `#(…)`, a name, or a call of a maker with plain names."""
    if form.kind in ("fn", "symbol"):
        return True
    if form.kind != "list" or form.items[0].kind != "symbol":
        return False
    if form.items[0].name == "fn":
        return True
    return form.items[0].name in _MAKERS and all(item.kind == "symbol" for item in form.items)


def _refill() -> None:
    current().refill()
