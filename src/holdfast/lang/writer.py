"""The state of a translation: the function and the block being emitted, and names in them.

Owns frames, temporaries, constants and the fuel prologue; `translate` decides what to emit and
`inline` how some built-ins are emitted in place, both over this one object.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, ParamSpec, TypeVar

from holdfast.lang import emit, library
from holdfast.lang.analyser import Program
from holdfast.lang.naming import FnInfo
from holdfast.lang.nodes import Node
from holdfast.lang.reader import At

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Code:
    """A translated program and the names that must be linked before it runs."""

    program: Program
    code: CodeType
    filename: str
    infos: dict[CodeType, FnInfo]
    constants: dict[str, Any]
    builtins: set[str]
    globals: dict[str, str]
    inputs: dict[str, tuple[str, str]]


class Frame:
    """One Python function being emitted."""

    def __init__(self, outer: Frame | None) -> None:
        self.outer = outer
        self.blocks = 0
        self.loops = 0
        self.volatile: set[str] = set()
        self.free: set[str] = set()
        self.own: set[str] = set()
        self.stored: set[str] = set()
        self.flat = True

    def bind(self, name: str) -> None:
        self.own.add(name)
        if self.loops:
            self.volatile.add(name)


class Dest:
    """Where the value of statements goes: `return`, a name, the loop's result, or nowhere."""

    __slots__ = ("kind", "name")

    def __init__(self, kind: str, name: str = "") -> None:
        self.kind = kind
        self.name = name

    @property
    def ends(self) -> bool:
        """Control leaves after the value was stored."""
        return self.kind in ("return", "break")


RETURN = Dest("return")
DISCARD = Dest("discard")


class Writer(ABC):
    """What `inline` may use of the translator."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.source = program.source
        self.id = program.id
        self.frame = Frame(None)
        self.block: list[ast.stmt] = []
        self.counter = 0
        self.constants: dict[str, Any] = {}
        self.constant_names: dict[int, str] = {}
        self.fns: dict[str, FnInfo] = {}
        self.builtins: set[str] = set()
        self.globals: dict[str, str] = {}
        self.inputs: dict[str, tuple[str, str]] = {}
        # The values `recur` rebinds: names of the nearest loop or function.
        self.targets: list[list[str]] = []

    @abstractmethod
    def expr(self, node: Node) -> ast.expr:
        """The node as an expression; what it needs done first is appended to the block."""

    @abstractmethod
    def args(self, items: Sequence[Node]) -> list[ast.expr]:
        """Arguments in order of evaluation."""

    @abstractmethod
    def test(self, node: Node) -> ast.expr:
        """The node as something Python's `if` may look at."""

    def prologue(self, at: At) -> list[ast.stmt]:
        """What every function starts with: its global names, and its fuel unless it is a leaf."""
        start: list[ast.stmt] = []
        if self.frame.stored:
            start.append(emit.globals_used(sorted(self.frame.stored), at))
        if not self.frame.flat:
            start += self.tick(at)
        return start

    def tick(self, at: At) -> list[ast.stmt]:
        low = emit.compare(
            emit.item(emit.name("k_cell", at), emit.constant(0, at), at),
            ast.Lt(),
            emit.constant(0, at),
            at,
        )
        refill = emit.evaluate(emit.call("k_refill", [], at), at)
        return [emit.count_down("k_cell", at), emit.if_then(low, [refill], [], at)]

    def aside(
        self, emit_into: Callable[P, T], /, *args: P.args, **named: P.kwargs
    ) -> tuple[list[ast.stmt], T]:
        """What a method appends, kept apart from the block, and what it returns."""
        saved, self.block = self.block, []
        found = emit_into(*args, **named)
        apart, self.block = self.block, saved
        return apart, found

    # --- names ----------------------------------------------------------------------------------

    def temp(self) -> str:
        self.counter += 1
        name = f"t{self.counter}"
        self.frame.bind(name)
        return name

    def load(self, name: str, at: At) -> ast.expr:
        frame: Frame | None = self.frame
        while frame is not None and name not in frame.own:
            frame.free.add(name)
            frame = frame.outer
        return emit.name(name, at)

    def bind(self, name: str) -> None:
        self.frame.bind(name)

    def store(self, name: str, value: ast.expr, at: At) -> None:
        self.bind(name)
        self.block.append(emit.assign(name, value, at))

    def hold(self, value: ast.expr, at: At) -> ast.expr:
        """The value as something that can be read twice: a name or a constant."""
        if isinstance(value, ast.Name | ast.Constant):
            return value
        name = self.temp()
        self.block.append(emit.assign(name, value, at))
        return emit.name(name, at)

    def constant(self, value: Any, at: At) -> ast.expr:
        kind = type(value)
        if value is None or kind is bool or kind is str or (kind is int and abs(value) < 2**63):
            return emit.constant(value, at)
        name = self.constant_names.get(id(value))
        if name is None:
            name = f"c{self.id}x{len(self.constants)}"
            self.constants[name] = value
            self.constant_names[id(value)] = name
        return emit.name(name, at)

    def builtin(self, name: str, at: At) -> ast.expr:
        found = library.python_name(name)
        self.builtins.add(name)
        return emit.name(found, at)

    def place(self, at: At) -> ast.expr:
        line, column = self.source.position(at[0])
        return emit.constant(f"{line}:{column}", at)
