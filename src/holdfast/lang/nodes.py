"""What the analyser hands to the translator: a program in a dozen kinds of node.

Owns shapes only. Every name is resolved here: locals are generated Python names, globals are the
program's own definitions, built-ins are names of the table. `at` says where in the source it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.lang.api import Value
from holdfast.lang.reader import At

# Loops in loops that one translated function may hold: CPython refuses 21 nested blocks.
BLOCKS_MAX = 12


@dataclass(slots=True)
class Node:
    at: At


@dataclass(slots=True)
class Const(Node):
    value: Value


def nil(at: At) -> Node:
    return Const(at, None)


@dataclass(slots=True)
class Local(Node):
    name: str


@dataclass(slots=True)
class Global(Node):
    """A definition of the program or of an earlier turn."""

    name: str


@dataclass(slots=True)
class Builtin(Node):
    name: str


@dataclass(slots=True)
class Input(Node):
    """`data/x` (kind data) or `*1` (kind history)."""

    kind: Literal["data", "history"]
    name: str


@dataclass(slots=True)
class Collect(Node):
    """A vector, map (keys and values alternate) or set literal that must be computed."""

    kind: Literal["vector", "map", "set"]
    items: list[Node]


@dataclass(slots=True)
class Cond(Node):
    """Tests in order; `default` when none holds. `if` is a Cond of one clause."""

    clauses: list[tuple[Node, Node]]
    default: Node


@dataclass(slots=True)
class Logic(Node):
    """`and` / `or`: the deciding value."""

    kind: Literal["and", "or"]
    items: list[Node]


@dataclass(slots=True)
class Chain(Node):
    """`some->`: bind `name` to each step in turn, stopping at nil."""

    name: str
    steps: list[Node]


@dataclass(slots=True)
class Do(Node):
    items: list[Node]


@dataclass(slots=True)
class Let(Node):
    bindings: list[tuple[str, Node]]
    body: Node


@dataclass(slots=True)
class Loop(Node):
    bindings: list[tuple[str, Node]]
    body: Node


@dataclass(slots=True)
class Recur(Node):
    items: list[Node]


@dataclass(slots=True)
class Fn(Node):
    """A function. `text` is source that makes it again, given the locals of `captures`."""

    python_name: str
    name: str
    params: list[str]
    rest: str
    body: Node
    recurs: bool
    text: str
    captures: dict[str, str]


@dataclass(slots=True)
class Overloads(Node):
    """Several `Fn`s told apart by the number of arguments."""

    python_name: str
    name: str
    fns: list[Fn]


@dataclass(slots=True)
class Letfn(Node):
    fns: list[Fn]
    body: Node


@dataclass(slots=True)
class Def(Node):
    name: str
    value: Node | None
    once: bool


@dataclass(slots=True)
class Call(Node):
    target: Node
    args: list[Node]


@dataclass(slots=True)
class BuiltinCall(Node):
    name: str
    args: list[Node]


@dataclass(slots=True)
class HostCall(Node):
    """A call that needs its place in the program: tools, pmap, pcalls, task-reset."""

    helper: str
    args: list[Node]


@dataclass(slots=True)
class Task(Node):
    id: Node
    body: Node
    text: str


@dataclass(slots=True)
class For(Node):
    """`for` (kind for) and `doseq`. Clauses: ("bind", name, node), ("let", name, node),
    ("when", "", node), ("while", "", node)."""

    kind: Literal["for", "doseq"]
    clauses: list[tuple[Literal["bind", "let", "when", "while"], str, Node]]
    body: Node


def choice(at: At, test: Node, then: Node, default: Node) -> Node:
    """What `if` becomes."""
    return Cond(at, [(test, then)], default)


def negation(node: Node) -> Node:
    return BuiltinCall(node.at, "not", [node])
