"""Nodes to Python functions with fuel checks.

Owns the translation and its code objects; runs nothing. CPython's compiler recurses on nested
syntax and refuses 21 nested blocks, so what nests without bound in the source is emitted flat:
statement lists with temporaries, early returns instead of else branches, own functions for deep
loops. Only generated names are emitted (v12, f3…, g4fa0…, b17, k_…), no attribute access and no
name from the source. Where a form is, is kept as the line number of its code: offset + 1.

Order of evaluation is kept by `args`: an expression whose later sibling needs statements is stored
in a temporary first.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType
from typing import Any

from holdfast.lang import emit, inline, library, nodes
from holdfast.lang.analyser import Program
from holdfast.lang.closures import FunctionWriter
from holdfast.lang.naming import FnInfo, global_name, input_name
from holdfast.lang.nodes import BLOCKS_MAX, Node
from holdfast.lang.reader import At
from holdfast.lang.values import Keyword, Var
from holdfast.lang.writer import DISCARD, RETURN, Code, Dest

CLAUSES_MAX = 20


class Translator(FunctionWriter):
    """One program's nodes to one code object."""

    # --- the whole ------------------------------------------------------------------------------

    def translate(self, params: Sequence[str] = ()) -> Code:
        at = (0, 0)
        self.frame.own.update(params)
        self.statement(self.program.body, RETURN)
        body = self.prologue(at) + self.block
        main = emit.function("main", params, "", body, at)
        filename = f"<lisp {self.id}>"
        code = compile(emit.module([main]), filename, "exec", dont_inherit=True)
        names = self.builtins, self.globals, self.inputs
        return Code(self.program, code, filename, dict(self.infos(code)), self.constants, *names)

    def infos(self, code: CodeType) -> list[tuple[CodeType, FnInfo]]:
        found = []
        for each in code.co_consts:
            if isinstance(each, CodeType):
                if each.co_name in self.fns:
                    found.append((each, self.fns[each.co_name]))
                found += self.infos(each)
        return found

    # --- expressions ----------------------------------------------------------------------------

    def expr(self, node: Node) -> ast.expr:
        """The node as an expression; what it needs done first is appended to the block."""
        at = node.at
        match node:
            case nodes.Const():
                return self.constant(node.value, at)
            case nodes.Local():
                return self.load(node.name, at)
            case nodes.Global():
                return self.global_value(node, at)
            case nodes.Builtin():
                return self.builtin(node.name, at)
            case nodes.Input():
                name = input_name(node.kind, node.name)
                self.inputs[name] = (node.kind, node.name)
                return emit.name(name, at)
            case nodes.Collect():
                return self.collect(node, at)
            case nodes.BuiltinCall():
                return inline.builtin_call(self, node, at)
            case nodes.HostCall():
                return self.host_call(node, at)
            case nodes.Call():
                return self.call(node, at)
            case nodes.Fn() | nodes.Overloads():
                return self.fn(node, at)
            case nodes.Def():
                return self.define(node, at)
            case nodes.Cond():
                return self.cond_expr(node, at)
            case _:
                name = self.temp()
                self.statement(node, Dest("name", name))
                return emit.name(name, at)

    def args(self, items: Sequence[Node]) -> list[ast.expr]:
        """Arguments in order of evaluation; see the module's docstring."""
        found: list[ast.expr] = []
        for each in items:
            mark = len(self.block)
            value = self.expr(each)
            if len(self.block) > mark:
                spilled: list[ast.stmt] = []
                for index, earlier in enumerate(found):
                    if not self.is_stable(earlier):
                        name = self.temp()
                        at = (earlier.lineno - 1, (earlier.end_lineno or earlier.lineno) - 1)
                        spilled.append(emit.assign(name, earlier, at))
                        found[index] = emit.name(name, at)
                self.block[mark:mark] = spilled
            found.append(value)
        return found

    def is_stable(self, value: ast.expr) -> bool:
        """Whether evaluating it later gives the same: constants, locals, linked names."""
        if isinstance(value, ast.Constant):
            return True
        return isinstance(value, ast.Name) and not value.id.startswith("g")

    def global_value(self, node: nodes.Global, at: At) -> ast.expr:
        name = global_name(node.name)
        self.globals[name] = node.name
        return emit.name(name, at)

    def collect(self, node: nodes.Collect, at: At) -> ast.expr:
        items = self.args(node.items)
        if node.kind == "vector":
            return emit.tuple_of(items, at)
        return emit.call("k_map" if node.kind == "map" else "k_set", items, at)

    def call(self, node: nodes.Call, at: At) -> ast.expr:
        self.frame.flat = False
        target = node.target
        if isinstance(target, nodes.Const) and type(target.value) is Keyword:
            return inline.keyword_call(self, node, at)
        found = self.args([target, *node.args])
        callee = found[0]
        if isinstance(target, nodes.Builtin | nodes.Fn):
            return emit.call(callee, found[1:], at)
        if not isinstance(callee, ast.Name):
            # The walrus keeps the callee before its arguments, as the order of evaluation wants.
            name = self.temp()
            test = emit.is_kind(emit.walrus(name, callee, at), "k_fn", at)
            callee = emit.name(name, at)
        else:
            test = emit.is_kind(callee, "k_fn", at)
        callable_ = emit.choose(test, callee, emit.call("k_callable", [callee], at), at)
        return emit.call(callable_, found[1:], at)

    def host_call(self, node: nodes.HostCall, at: At) -> ast.expr:
        self.frame.flat = False
        args = self.args(node.args)
        return emit.call(f"k_{node.helper}", [self.place(at), *args], at)

    def define(self, node: nodes.Def, at: At) -> ast.expr:
        name = global_name(node.name)
        self.globals[name] = node.name
        if node.once:
            known = emit.call("k_bound", [emit.constant(name, at)], at)
            inner, _ = self.aside(self.store_global, node, name, at)
            self.block.append(emit.if_then(emit.negate(known, at), inner, [], at))
        elif node.value is not None:
            self.store_global(node, name, at)
        return self.constant(self.var(node.name), at)

    def var(self, name: str) -> Any:
        key = f"var {name}"
        if key not in self.constants:
            self.constants[key] = Var(name)
        return self.constants[key]

    def store_global(self, node: nodes.Def, name: str, at: At) -> None:
        value = self.expr(node.value) if node.value is not None else emit.constant(None, at)
        self.frame.stored.add(name)
        self.block.append(emit.assign(name, value, at))

    # --- truth ----------------------------------------------------------------------------------

    def test(self, node: Node) -> ast.expr:
        """The node as something Python's `if` may look at."""
        at = node.at
        if isinstance(node, nodes.Const):
            return emit.constant(node.value is not None and node.value is not False, at)
        if isinstance(node, nodes.Logic):
            return self.logic_test(node, at)
        if isinstance(node, nodes.BuiltinCall):
            if node.name == "not" and len(node.args) == 1:
                return emit.negate(self.test(node.args[0]), at)
            if library.is_boolean(node.name):
                return self.expr(node)
        return self.truth(self.expr(node), at)

    def logic_test(self, node: nodes.Logic, at: At) -> ast.expr:
        """`and` / `or` of tests; tests that need statements run only when they are reached."""
        join = emit.every if node.kind == "and" else emit.any_of
        held = ""
        tests = [self.test(node.items[0])]
        for each in node.items[1:]:
            extra, found = self.aside(self.test, each)
            if not extra:
                tests.append(found)
                continue
            so_far = join(tests, at)
            held = held or self.temp()
            self.store(held, so_far, at)
            gate: ast.expr = emit.name(held, at)
            if node.kind == "or":
                gate = emit.negate(gate, at)
            self.block.append(emit.if_then(gate, [*extra, emit.assign(held, found, at)], [], at))
            tests = [emit.name(held, at)]
        return join(tests, at)

    def truth(self, value: ast.expr, at: At) -> ast.expr:
        if isinstance(value, ast.Name):
            first: ast.expr = value
            name = value.id
        else:
            name = self.temp()
            first = emit.walrus(name, value, at)
        none, false = emit.constant(None, at), emit.constant(False, at)
        return emit.every(
            [
                emit.compare(first, ast.IsNot(), none, at),
                emit.compare(emit.name(name, at), ast.IsNot(), false, at),
            ],
            at,
        )

    def cond_expr(self, node: nodes.Cond, at: At) -> ast.expr:
        """A conditional as an expression where no branch needs statements."""
        if len(node.clauses) > CLAUSES_MAX:
            return self.outlined(node, at)
        if len(node.clauses) != 1:
            name = self.temp()
            self.cond(node, Dest("name", name))
            return emit.name(name, at)
        test = self.test(node.clauses[0][0])
        then_block, then = self.aside(self.expr, node.clauses[0][1])
        other_block, other = self.aside(self.expr, node.default)
        if not then_block and not other_block:
            return emit.choose(test, then, other, at)
        name = self.temp()
        then_block.append(emit.assign(name, then, at))
        other_block.append(emit.assign(name, other, at))
        self.block.append(emit.if_then(test, then_block, other_block, at))
        return emit.name(name, at)

    # --- statements -----------------------------------------------------------------------------

    def statement(self, node: Node, dest: Dest) -> None:
        """Append statements that evaluate the node and put its value into `dest`."""
        at = node.at
        match node:
            case nodes.Do():
                for each in node.items[:-1]:
                    self.statement(each, DISCARD)
                self.statement(node.items[-1], dest)
            case nodes.Let():
                for name, value in node.bindings:
                    self.store(name, self.expr(value), value.at)
                self.statement(node.body, dest)
            case nodes.Cond():
                self.cond(node, dest)
            case nodes.Loop():
                self.loop(node, dest)
            case nodes.Recur():
                self.recur(node, at)
            case nodes.Logic():
                self.logic(node, dest)
            case nodes.Chain():
                self.chain(node, dest)
            case nodes.For():
                self.for_(node, dest)
            case nodes.Task():
                self.task(node, dest)
            case nodes.Letfn():
                self.letfn(node, dest)
            case _:
                self.finish(self.expr(node), dest, at)

    def finish(self, value: ast.expr, dest: Dest, at: At) -> None:
        if dest.kind == "return":
            self.block.append(emit.returning(value, at))
        elif dest.kind == "discard":
            if not isinstance(value, ast.Constant):
                self.block.append(emit.evaluate(value, at))
        else:
            self.store(dest.name, value, at)
            if dest.kind == "break":
                self.block.append(emit.leave(at))

    def nested(self, node: Node, dest: Dest) -> list[ast.stmt]:
        return self.aside(self.statement, node, dest)[0]

    def cond(self, node: nodes.Cond, dest: Dest) -> None:
        at = node.at
        if not dest.ends and len(node.clauses) > CLAUSES_MAX:
            self.finish(self.outlined(node, at), dest, at)
            return
        saved = self.block
        for test, value in node.clauses:
            here = test.at
            found = self.test(test)
            branch = self.nested(value, dest)
            other: list[ast.stmt] = []
            self.block.append(emit.if_then(found, branch, other, here))
            if not dest.ends:
                self.block = other
        self.statement(node.default, dest)
        self.block = saved

    def logic(self, node: nodes.Logic, dest: Dest) -> None:
        at = node.at
        name = self.temp()
        self.store(name, self.expr(node.items[0]), at)
        for each in node.items[1:]:
            held = emit.name(name, at)
            test = self.truth(held, at)
            if node.kind == "or":
                test = emit.negate(test, at)
            self.block.append(emit.if_then(test, self.nested(each, Dest("name", name)), [], at))
        self.finish(emit.name(name, at), dest, at)

    def chain(self, node: nodes.Chain, dest: Dest) -> None:
        at = node.at
        self.store(node.name, self.expr(node.steps[0]), at)
        for each in node.steps[1:]:
            held = emit.name(node.name, at)
            test = emit.compare(held, ast.IsNot(), emit.constant(None, at), at)
            body = self.nested(each, Dest("name", node.name))
            self.block.append(emit.if_then(test, body, [], at))
        self.finish(emit.name(node.name, at), dest, at)

    def loop(self, node: nodes.Loop, dest: Dest) -> None:
        at = node.at
        self.frame.flat = False
        if self.frame.blocks >= BLOCKS_MAX:
            self.finish(self.outlined(node, at), dest, at)
            return
        for name, value in node.bindings:
            self.store(name, self.expr(value), value.at)
        # Bound here too, as what the rounds rebind.
        self.frame.volatile.update(name for name, _ in node.bindings)
        inner = dest if dest.kind == "return" else Dest("break", self.temp())
        body = self.rounds([name for name, _ in node.bindings], node.body, inner, at)
        self.block += body
        if inner.kind == "break":
            self.finish(emit.name(inner.name, at), dest, at)

    def rounds(self, names: list[str], body: Node, dest: Dest, at: At) -> list[ast.stmt]:
        """A loop that counts its rounds: `left` in all, fuel for `lap` of them at a time."""
        left, lap = self.temp(), self.temp()
        saved, self.block = self.block, []
        self.frame.loops += 1
        self.frame.blocks += 1
        self.targets.append(names)
        self.frame.volatile.update(names)
        next_lap = emit.assign_all([lap, left], emit.call("k_lap", [emit.name(left, at)], at), at)
        low = emit.compare(emit.name(lap, at), ast.Lt(), emit.constant(0, at), at)
        self.block += [emit.count_down_name(lap, at), emit.if_then(low, [next_lap], [], at)]
        self.statement(body, dest)
        found, self.block = self.block, saved
        self.targets.pop()
        self.frame.loops -= 1
        self.frame.blocks -= 1
        return [
            emit.assign(left, emit.name("k_rounds", at), at),
            emit.assign(lap, emit.constant(0, at), at),
            emit.forever(found, at),
        ]

    def recur(self, node: nodes.Recur, at: At) -> None:
        names = self.targets[-1]
        values = self.args(node.items)
        pairs = [
            (name, value)
            for name, value in zip(names, values, strict=True)
            if not (isinstance(value, ast.Name) and value.id == name)
        ]
        if len(pairs) == 1:
            self.block.append(emit.assign(pairs[0][0], pairs[0][1], at))
        elif pairs:
            value = emit.tuple_of([value for _, value in pairs], at)
            self.block.append(emit.assign_all([name for name, _ in pairs], value, at))
        self.block.append(emit.again(at))

    def for_(self, node: nodes.For, dest: Dest) -> None:
        at = node.at
        self.frame.flat = False
        depth = sum(1 for clause in node.clauses if clause[0] == "bind")
        assert depth <= BLOCKS_MAX, "the analyser refuses more"
        if self.frame.blocks + depth > BLOCKS_MAX + 4:
            self.finish(self.outlined(node, at), dest, at)
            return
        rows = self.temp() if node.kind == "for" else ""
        if rows:
            self.store(rows, emit.call("k_list", [], at), at)
        self.frame.loops += 1
        self.frame.blocks += depth
        self.for_level(node, 0, rows)
        self.frame.loops -= 1
        self.frame.blocks -= depth
        value = emit.call("k_vector", [emit.name(rows, at)], at) if rows else None
        self.finish(value or emit.constant(None, at), dest, at)

    def for_level(self, node: nodes.For, index: int, rows: str) -> None:
        """Clauses from `index` on, into the current block."""
        at = node.at
        while index < len(node.clauses):
            kind, name, value = node.clauses[index]
            here = value.at
            index += 1
            if kind == "bind":
                items = emit.call("k_seq", [self.expr(value)], here)
                self.bind(name)
                saved, self.block = self.block, self.tick(here)
                self.for_level(node, index, rows)
                body, self.block = self.block, saved
                self.block.append(emit.for_each(name, items, body, here))
                return
            if kind == "let":
                self.store(name, self.expr(value), here)
                continue
            failed = emit.negate(self.test(value), here)
            leave = emit.again(here) if kind == "when" else emit.leave(here)
            self.block.append(emit.if_then(failed, [leave], [], here))
        if not rows:
            self.statement(node.body, DISCARD)
            return
        value_node = self.expr(node.body)
        push = emit.call("k_push", [emit.name(rows, at), value_node], at)
        self.block.append(emit.evaluate(push, at))

    def task(self, node: nodes.Task, dest: Dest) -> None:
        at = node.at
        self.frame.flat = False
        name, found = self.temp(), self.temp()
        place, text = self.place(at), emit.constant(node.text, at)
        self.store(name, emit.call("k_task_id", [self.expr(node.id)], at), at)
        held = emit.name(name, at)
        self.store(found, emit.call("k_task_begin", [place, held, text], at), at)
        miss = emit.compare(emit.name(found, at), ast.Is(), emit.constant(None, at), at)
        saved, self.block = self.block, []
        value = self.hold(self.expr(node.body), at)
        done = emit.call("k_task_done", [place, held, text, value], at)
        self.block += [emit.evaluate(done, at), emit.assign(found, emit.tuple_of([value], at), at)]
        body, self.block = self.block, saved
        self.block.append(emit.if_then(miss, body, [], at))
        self.finish(emit.item(emit.name(found, at), emit.constant(0, at), at), dest, at)


def translate(program: Program, params: Sequence[str] = ()) -> Code:
    """Compile a checked program. Raises `LangError` where Python's compiler cannot take it."""
    return Translator(program).translate(params)
