"""Built-in calls that are worth emitting in place: small integers, tests and keyword lookups.

Owns speed only. Each emitted expression decides by type and falls back to the built-in itself, so
there is one meaning; the property tests compare the two. Integers need no size check here: adding
and multiplying by literals grows a number by a word per operation, which fuel bounds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.lang import emit, library, nodes
from holdfast.lang.nodes import Node
from holdfast.lang.reader import At
from holdfast.lang.values import Keyword
from holdfast.lang.writer import Writer

SMALL = 2**62


def builtin_call(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr:
    """The call of a built-in, in place where that is faster."""
    handler = _INLINE.get((node.name, len(node.args)))
    if handler is not None:
        found = handler(tr, node, at)
        if found is not None:
            return found
    args = tr.args(node.args)
    return plain(tr, node.name, args, at)


def plain(tr: Writer, name: str, args: list[ast.expr], at: At) -> ast.expr:
    if not library.is_flat(name):
        tr.frame.flat = False
    return emit.call(tr.builtin(name, at), args, at)


def keyword_call(tr: Writer, node: nodes.Call, at: At) -> ast.expr:
    """`(:key m)` and `(:key m default)`."""
    assert isinstance(node.target, nodes.Const)
    key = nodes.Const(node.at, node.target.value)
    if len(node.args) not in (1, 2):
        args = tr.args(node.args)
        return emit.call("k_keyword_arity", [tr.constant(key.value, at), *args], at)
    lookup = nodes.BuiltinCall(node.at, "get", [node.args[0], key, *node.args[1:]])
    return builtin_call(tr, lookup, at)


def _literal(node: Node) -> Any:
    return node.value if isinstance(node, nodes.Const) else _literal


def _is_small(node: Node) -> bool:
    value = _literal(node)
    return type(value) is int and abs(value) < SMALL


def _again(value: ast.expr, at: At) -> ast.expr:
    """A fresh node for a second use of a name or constant."""
    if isinstance(value, ast.Name):
        return emit.name(value.id, at)
    assert isinstance(value, ast.Constant)
    return emit.constant(value.value, at)


def _on_integers(make: Callable[[list[ast.expr], At], ast.expr]) -> Inliner:
    """What `make` emits where all operands are integers, else the call.

    Where a literal operand is no small integer, or all are literals, nothing would be gained.
    """

    def inline(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
        if any(isinstance(each, nodes.Const) and not _is_small(each) for each in node.args):
            return None
        held = [tr.hold(value, at) for value in tr.args(node.args)]
        slow = plain(tr, node.name, held, at)
        names = dict.fromkeys(value.id for value in held if isinstance(value, ast.Name))
        if not names:
            return slow
        test = emit.every([emit.is_kind(emit.name(each, at), "k_int", at) for each in names], at)
        return emit.choose(test, make([_again(value, at) for value in held], at), slow, at)

    return inline


def _arithmetic(operator: type[ast.operator]) -> Inliner:
    return _on_integers(lambda of, at: emit.binary(of[0], operator(), of[1], at))


def _comparison(operator: type[ast.cmpop]) -> Inliner:
    return _on_integers(lambda of, at: emit.compare(of[0], operator(), of[1], at))


def _step(operator: type[ast.operator]) -> Inliner:
    return _on_integers(lambda of, at: emit.binary(of[0], operator(), emit.constant(1, at), at))


def _sign(operator: type[ast.cmpop]) -> Inliner:
    return _on_integers(lambda of, at: emit.compare(of[0], operator(), emit.constant(0, at), at))


def _parity(odd: int) -> Inliner:
    def make(of: list[ast.expr], at: At) -> ast.expr:
        rest = emit.binary(of[0], ast.Mod(), emit.constant(2, at), at)
        return emit.compare(rest, ast.Eq(), emit.constant(odd, at), at)

    return _on_integers(make)


def _product(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
    return _arithmetic(ast.Mult)(tr, node, at) if any(map(_is_small, node.args)) else None


def _modulo(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
    divisor = _literal(node.args[1])
    positive = type(divisor) is int and 0 < divisor < SMALL
    return _arithmetic(ast.Mod)(tr, node, at) if positive else None


def _equality(positive: bool) -> Inliner:
    """By identity with nil, booleans and keywords, by Python's equality with texts."""

    def inline(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
        for index in (0, 1):
            value = _literal(node.args[index])
            same: ast.cmpop = ast.Is() if positive else ast.IsNot()
            if type(value) is str:
                same = ast.Eq() if positive else ast.NotEq()
            elif not (value is None or type(value) is bool or type(value) is Keyword):
                continue
            other, literal = tr.expr(node.args[1 - index]), tr.constant(value, at)
            if isinstance(other, ast.Constant):
                return plain(tr, node.name, [other, literal], at)
            return emit.compare(other, same, literal, at)
        return _comparison(ast.Eq if positive else ast.NotEq)(tr, node, at)

    return inline


def _is_constant(value: object, positive: bool) -> Inliner:
    def inline(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
        operator: ast.cmpop = ast.Is() if positive else ast.IsNot()
        if isinstance(node.args[0], nodes.Const):
            return emit.constant((node.args[0].value is value) is positive, at)
        return emit.compare(tr.expr(node.args[0]), operator, emit.constant(value, at), at)

    return inline


def _not(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
    return emit.negate(tr.test(node.args[0]), at)


def _identity(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
    return tr.expr(node.args[0])


def _get(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
    """A literal key in a map that has it is one subscript."""
    key = _literal(node.args[1])
    if not (type(key) is Keyword or type(key) is str) or isinstance(node.args[0], nodes.Const):
        return None
    container = tr.hold(tr.expr(node.args[0]), at)
    found = plain(tr, "get", [_again(container, at), tr.constant(key, at)], at)
    # The other spelling second: rows from outside have text keys.
    spellings = [key.name, key] if type(key) is Keyword else [key]
    for each in spellings:
        constant = tr.constant(each, at)
        inside = emit.compare(constant, ast.In(), _again(container, at), at)
        found = emit.choose(inside, emit.item(_again(container, at), constant, at), found, at)
    slow = plain(tr, "get", [_again(container, at), tr.constant(key, at)], at)
    return emit.choose(emit.is_kind(container, "k_dict", at), found, slow, at)


def _first(tr: Writer, node: nodes.BuiltinCall, at: At) -> ast.expr | None:
    if isinstance(node.args[0], nodes.Const):
        return None
    value = tr.hold(tr.expr(node.args[0]), at)
    test = emit.every([emit.is_kind(value, "k_tuple", at), _again(value, at)], at)
    fast = emit.item(_again(value, at), emit.constant(0, at), at)
    return emit.choose(test, fast, plain(tr, "first", [_again(value, at)], at), at)


Inliner = Callable[[Writer, nodes.BuiltinCall, At], "ast.expr | None"]

_INLINE: Mapping[tuple[str, int], Inliner] = {
    ("+", 2): _arithmetic(ast.Add),
    ("-", 2): _arithmetic(ast.Sub),
    ("*", 2): _product,
    ("mod", 2): _modulo,
    ("inc", 1): _step(ast.Add),
    ("dec", 1): _step(ast.Sub),
    ("<", 2): _comparison(ast.Lt),
    ("<=", 2): _comparison(ast.LtE),
    (">", 2): _comparison(ast.Gt),
    (">=", 2): _comparison(ast.GtE),
    ("=", 2): _equality(True),
    ("not=", 2): _equality(False),
    ("nil?", 1): _is_constant(None, True),
    ("some?", 1): _is_constant(None, False),
    ("true?", 1): _is_constant(True, True),
    ("false?", 1): _is_constant(False, True),
    ("zero?", 1): _sign(ast.Eq),
    ("pos?", 1): _sign(ast.Gt),
    ("neg?", 1): _sign(ast.Lt),
    ("even?", 1): _parity(0),
    ("odd?", 1): _parity(1),
    ("not", 1): _not,
    ("identity", 1): _identity,
    ("get", 2): _get,
    ("first", 1): _first,
}
