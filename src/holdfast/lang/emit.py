"""Small constructors for the Python syntax trees that the translator emits.

Owns nothing but the spelling: every node carries the source offsets as its line numbers (line =
offset + 1), which is how an exception finds its form again. Nothing here emits attribute access.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, TypeVar

from holdfast.lang.reader import At

LOAD, STORE = ast.Load(), ast.Store()
Node = TypeVar("Node", bound=ast.expr | ast.stmt | ast.arg)


def _put(node: Node, at: At) -> Node:
    # Attributes one by one: as keywords of the constructor they cost twice as much.
    node.lineno = at[0] + 1
    node.col_offset = 0
    node.end_lineno = at[1] + 1
    return node


def name(text: str, at: At) -> ast.Name:
    return _put(ast.Name(text, LOAD), at)


def constant(value: Any, at: At) -> ast.Constant:
    return _put(ast.Constant(value, None), at)


def call(target: str | ast.expr, args: Sequence[ast.expr], at: At) -> ast.Call:
    func = name(target, at) if isinstance(target, str) else target
    return _put(ast.Call(func, list(args), []), at)


def assign(target: str, value: ast.expr, at: At) -> ast.Assign:
    return _put(ast.Assign([_put(ast.Name(target, STORE), at)], value), at)


def assign_all(targets: Sequence[str], value: ast.expr, at: At) -> ast.Assign:
    elts: list[ast.expr] = [_put(ast.Name(each, STORE), at) for each in targets]
    return _put(ast.Assign([_put(ast.Tuple(elts, STORE), at)], value), at)


def tuple_of(items: Sequence[ast.expr], at: At) -> ast.Tuple:
    return _put(ast.Tuple(list(items), LOAD), at)


def choose(test: ast.expr, then: ast.expr, default: ast.expr, at: At) -> ast.IfExp:
    return _put(ast.IfExp(test, then, default), at)


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr, at: At) -> ast.Compare:
    return _put(ast.Compare(left, [operator], [right]), at)


def binary(left: ast.expr, operator: ast.operator, right: ast.expr, at: At) -> ast.BinOp:
    return _put(ast.BinOp(left, operator, right), at)


def every(tests: Sequence[ast.expr], at: At) -> ast.expr:
    return tests[0] if len(tests) == 1 else _put(ast.BoolOp(ast.And(), list(tests)), at)


def any_of(tests: Sequence[ast.expr], at: At) -> ast.expr:
    return tests[0] if len(tests) == 1 else _put(ast.BoolOp(ast.Or(), list(tests)), at)


def negate(value: ast.expr, at: At) -> ast.UnaryOp:
    return _put(ast.UnaryOp(ast.Not(), value), at)


def walrus(target: str, value: ast.expr, at: At) -> ast.NamedExpr:
    return _put(ast.NamedExpr(_put(ast.Name(target, STORE), at), value), at)


def is_kind(value: ast.expr, kind: str, at: At) -> ast.Compare:
    """`k_type(value) is kind`: CPython turns this call of `type` into one instruction."""
    return compare(call("k_type", [value], at), ast.Is(), name(kind, at), at)


def item(container: ast.expr, index: ast.expr, at: At) -> ast.Subscript:
    return _put(ast.Subscript(container, index, LOAD), at)


def if_then(test: ast.expr, body: list[ast.stmt], other: list[ast.stmt], at: At) -> ast.If:
    return _put(ast.If(test, body or [_put(ast.Pass(), at)], other), at)


def forever(body: list[ast.stmt], at: At) -> ast.While:
    return _put(ast.While(constant(True, at), body, []), at)


def for_each(target: str, items: ast.expr, body: list[ast.stmt], at: At) -> ast.For:
    return _put(ast.For(_put(ast.Name(target, STORE), at), items, body, []), at)


def returning(value: ast.expr, at: At) -> ast.Return:
    return _put(ast.Return(value), at)


def leave(at: At) -> ast.Break:
    return _put(ast.Break(), at)


def again(at: At) -> ast.Continue:
    return _put(ast.Continue(), at)


def evaluate(value: ast.expr, at: At) -> ast.Expr:
    return _put(ast.Expr(value), at)


def globals_used(names: Sequence[str], at: At) -> ast.Global:
    return _put(ast.Global(list(names)), at)


def count_down(cell: str, at: At) -> ast.AugAssign:
    """`cell[0] -= 1`."""
    target = _put(ast.Subscript(name(cell, at), constant(0, at), STORE), at)
    return _put(ast.AugAssign(target, ast.Sub(), constant(1, at)), at)


def count_down_name(target: str, at: At) -> ast.AugAssign:
    return _put(ast.AugAssign(_put(ast.Name(target, STORE), at), ast.Sub(), constant(1, at)), at)


def function(
    target: str, params: Sequence[str], rest: str, body: list[ast.stmt], at: At
) -> ast.FunctionDef:
    arguments = ast.arguments(
        posonlyargs=[_put(ast.arg(each), at) for each in params],
        args=[],
        vararg=_put(ast.arg(rest), at) if rest else None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=[],
    )
    return _put(ast.FunctionDef(target, arguments, body, [], None, None), at)


def module(body: list[ast.stmt]) -> ast.Module:
    return ast.Module(body, [])
