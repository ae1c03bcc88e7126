"""Emitting functions: where they stand, what they capture, how they recur and overload.

Owns the freezing of captured variables: Python closures see later assignments, the language's do
not, so a function made inside a loop is made by a factory that takes what it captures.
"""

from __future__ import annotations

import ast
from abc import abstractmethod

from holdfast.lang import emit, nodes
from holdfast.lang.naming import FnInfo
from holdfast.lang.nodes import Node
from holdfast.lang.reader import At
from holdfast.lang.writer import RETURN, Dest, Frame, Writer


class FunctionWriter(Writer):
    """The part of the translator that makes functions."""

    @abstractmethod
    def statement(self, node: Node, dest: Dest) -> None:
        """Append statements that evaluate the node and put its value into `dest`."""

    @abstractmethod
    def finish(self, value: ast.expr, dest: Dest, at: At) -> None:
        """Append the statement that puts a value into `dest`."""

    @abstractmethod
    def rounds(self, names: list[str], body: Node, dest: Dest, at: At) -> list[ast.stmt]:
        """A counted loop around a body that may recur to `names`."""

    def fn(self, node: nodes.Fn | nodes.Overloads, at: At) -> ast.expr:
        made, free = self.function(node)
        return self.placed(node.python_name, made, free, at)

    def placed(self, name: str, made: list[ast.stmt], free: set[str], at: At) -> ast.expr:
        """Put a function where it belongs; inside loops a factory freezes what it captures."""
        captured = sorted(free & self.frame.volatile)
        for each in sorted(free):
            self.load(each, at)
        if not captured:
            self.bind(name)
            self.block += made
            return emit.name(name, at)
        factory = f"k{self.id}x{self.counter}"
        self.counter += 1
        body = [*made, emit.returning(emit.name(name, at), at)]
        self.block.append(emit.function(factory, captured, "", body, at))
        self.bind(factory)
        return emit.call(factory, [emit.name(each, at) for each in captured], at)

    def function(self, node: nodes.Fn | nodes.Overloads) -> tuple[list[ast.stmt], set[str]]:
        """The statements that define a function under its generated name, and what it captures."""
        at = node.at
        if isinstance(node, nodes.Overloads):
            return self.overloads(node, at)
        outer, saved, targets = self.frame, self.block, self.targets
        self.frame, self.block, self.targets = Frame(outer), [], []
        frame = self.frame
        python_name = node.python_name
        params = [*node.params, *([node.rest] if node.rest else [])]
        frame.own.update(params)
        if node.rest:
            none = emit.constant(None, at)
            rest = emit.any_of([emit.name(node.rest, at), none], at)
            self.block.append(emit.assign(node.rest, rest, at))
        if node.recurs:
            frame.flat = False
            self.block += self.rounds(params, node.body, RETURN, at)
        else:
            self.statement(node.body, RETURN)
        body = self.prologue(at) + self.block
        code_name = f"{python_name}x{self.id}"
        self.fns[code_name] = FnInfo(
            node.name, len(node.params), bool(node.rest), node.text, node.captures
        )
        self.frame, self.block, self.targets = outer, saved, targets
        made: list[ast.stmt] = [
            emit.function(code_name, node.params, node.rest, body, at),
            emit.assign(python_name, emit.name(code_name, at), at),
        ]
        self.bind(code_name)
        return made, frame.free - {python_name}

    def overloads(self, node: nodes.Overloads, at: At) -> tuple[list[ast.stmt], set[str]]:
        """A dispatcher over the number of arguments; with `k_overload` deciding and refusing."""
        made: list[ast.stmt] = []
        free: set[str] = set()
        for each in node.fns:
            statements, captured = self.function(each)
            made += statements
            free |= captured
        table = [
            emit.tuple_of(
                [
                    emit.constant(len(each.params), at),
                    emit.constant(bool(each.rest), at),
                    emit.name(each.python_name, at),
                ],
                at,
            )
            for each in node.fns
        ]
        rest = self.temp()
        pick = emit.call("k_overload", [emit.tuple_of(table, at), emit.name(rest, at)], at)
        code_name = f"{node.python_name}x{self.id}"
        body: list[ast.stmt] = [emit.returning(pick, at)]
        text = self.source.part(node.at)
        first = node.fns[0]
        self.fns[code_name] = FnInfo(node.name, 0, True, _overload_text(node, text), first.captures)
        made += [
            emit.function(code_name, [], rest, body, at),
            emit.assign(node.python_name, emit.name(code_name, at), at),
        ]
        self.bind(code_name)
        names = {each.python_name for each in node.fns}
        return made, free - {node.python_name} - names

    def letfn(self, node: nodes.Letfn, dest: Dest) -> None:
        at = node.at
        if self.frame.loops:
            self.finish(self.outlined(node, at), dest, at)
            return
        for each in node.fns:
            self.bind(each.python_name)
        for each in node.fns:
            made, free = self.function(each)
            for captured in sorted(free):
                self.load(captured, at)
            self.block += made
        self.statement(node.body, dest)

    def outlined(self, node: Node, at: At) -> ast.expr:
        """The node as an own function, called at once: for what may not nest here."""
        self.counter += 1
        fn = nodes.Fn(node.at, f"f{self.counter}o", "", [], "", node, False, "", {})
        self.frame.flat = False
        return emit.call(self.fn(fn, at), [], at)


def _overload_text(node: nodes.Overloads, text: str) -> str:
    start = text.find("(", 1)
    name = f"{node.name} " if node.name else ""
    return f"(fn {name}{text[start:]}" if start > 0 else ""
