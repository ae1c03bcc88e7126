"""Small constructors for the Python syntax trees that the translator emits.

Owns nothing but the spelling: every node carries the source offsets as its line numbers (line =
offset + 1), which is how an exception finds its form again. Nothing here emits attribute access.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

LOAD, STORE = ast.Load(), ast.Store()
At = tuple[int, int]


def _loc(at: At) -> dict[str, Any]:
    return {"lineno": at[0] + 1, "col_offset": 0, "end_lineno": at[1] + 1, "end_col_offset": 0}


def name(text: str, at: At) -> ast.Name:
    return ast.Name(text, LOAD, **_loc(at))


def constant(value: Any, at: At) -> ast.Constant:
    return ast.Constant(value, None, **_loc(at))


def call(target: str | ast.expr, args: Sequence[ast.expr], at: At) -> ast.Call:
    func = name(target, at) if isinstance(target, str) else target
    return ast.Call(func, list(args), [], **_loc(at))


def assign(target: str, value: ast.expr, at: At) -> ast.Assign:
    return ast.Assign([ast.Name(target, STORE, **_loc(at))], value, **_loc(at))


def assign_all(targets: Sequence[str], value: ast.expr, at: At) -> ast.Assign:
    elts: list[ast.expr] = [ast.Name(each, STORE, **_loc(at)) for each in targets]
    return ast.Assign([ast.Tuple(elts, STORE, **_loc(at))], value, **_loc(at))


def tuple_of(items: Sequence[ast.expr], at: At) -> ast.Tuple:
    return ast.Tuple(list(items), LOAD, **_loc(at))


def choose(test: ast.expr, then: ast.expr, default: ast.expr, at: At) -> ast.IfExp:
    return ast.IfExp(test, then, default, **_loc(at))


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr, at: At) -> ast.Compare:
    return ast.Compare(left, [operator], [right], **_loc(at))


def binary(left: ast.expr, operator: ast.operator, right: ast.expr, at: At) -> ast.BinOp:
    return ast.BinOp(left, operator, right, **_loc(at))


def every(tests: Sequence[ast.expr], at: At) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), list(tests), **_loc(at))


def any_of(tests: Sequence[ast.expr], at: At) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.Or(), list(tests), **_loc(at))


def negate(value: ast.expr, at: At) -> ast.UnaryOp:
    return ast.UnaryOp(ast.Not(), value, **_loc(at))


def walrus(target: str, value: ast.expr, at: At) -> ast.NamedExpr:
    return ast.NamedExpr(ast.Name(target, STORE, **_loc(at)), value, **_loc(at))


def is_kind(value: ast.expr, kind: str, at: At) -> ast.Compare:
    """`k_type(value) is kind`: CPython turns this call of `type` into one instruction."""
    return compare(call("k_type", [value], at), ast.Is(), name(kind, at), at)


def item(container: ast.expr, index: ast.expr, at: At) -> ast.Subscript:
    return ast.Subscript(container, index, LOAD, **_loc(at))


def if_then(test: ast.expr, body: list[ast.stmt], other: list[ast.stmt], at: At) -> ast.If:
    return ast.If(test, body or [ast.Pass(**_loc(at))], other, **_loc(at))


def forever(body: list[ast.stmt], at: At) -> ast.While:
    return ast.While(constant(True, at), body, [], **_loc(at))


def for_each(target: str, items: ast.expr, body: list[ast.stmt], at: At) -> ast.For:
    return ast.For(ast.Name(target, STORE, **_loc(at)), items, body, [], **_loc(at))


def returning(value: ast.expr, at: At) -> ast.Return:
    return ast.Return(value, **_loc(at))


def leave(at: At) -> ast.Break:
    return ast.Break(**_loc(at))


def again(at: At) -> ast.Continue:
    return ast.Continue(**_loc(at))


def evaluate(value: ast.expr, at: At) -> ast.Expr:
    return ast.Expr(value, **_loc(at))


def globals_used(names: Sequence[str], at: At) -> ast.Global:
    return ast.Global(list(names), **_loc(at))


def count_down(cell: str, at: At) -> ast.AugAssign:
    """`cell[0] -= 1`."""
    target = ast.Subscript(name(cell, at), constant(0, at), STORE, **_loc(at))
    return ast.AugAssign(target, ast.Sub(), constant(1, at), **_loc(at))


def count_down_name(target: str, at: At) -> ast.AugAssign:
    return ast.AugAssign(
        ast.Name(target, STORE, **_loc(at)), ast.Sub(), constant(1, at), **_loc(at)
    )


def function(
    target: str, params: Sequence[str], rest: str, body: list[ast.stmt], at: At
) -> ast.FunctionDef:
    arguments = ast.arguments(
        posonlyargs=[ast.arg(each, **_loc(at)) for each in params],
        args=[],
        vararg=ast.arg(rest, **_loc(at)) if rest else None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=[],
    )
    return ast.FunctionDef(target, arguments, body, [], None, None, **_loc(at))


def module(body: list[ast.stmt]) -> ast.Module:
    return ast.Module(body, [])
