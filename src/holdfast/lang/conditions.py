"""The forms that choose: `if` and its kin, `cond`, `case`, `condp`, `and`, `or`.

All become one kind of node, `Cond`, or `Logic` where the deciding value is wanted.
"""

from __future__ import annotations

from typing import Literal

from holdfast.lang import library, nodes
from holdfast.lang.analyser import Analyser, Scope, Target
from holdfast.lang.destructure import Bindings, bind_pattern
from holdfast.lang.nodes import Node
from holdfast.lang.reader import Form
from holdfast.lang.values import Keyword, make_set


def do_if(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    name = form.items[0].name
    if not an.arity(form, 2, 3, f"({name} test then else)"):
        return nodes.nil(form.at)
    test = an.node(form.items[1], scope)
    if name == "if-not":
        test = nodes.negation(test)
    then = an.node(form.items[2], scope, target)
    default = an.node(form.items[3], scope, target) if len(form.items) > 3 else nodes.nil(form.at)
    return nodes.choice(form.at, test, then, default)


def do_when(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    name = form.items[0].name
    if not an.arity(form, 1, None, f"({name} test body…)"):
        return nodes.nil(form.at)
    test = an.node(form.items[1], scope)
    if name == "when-not":
        test = nodes.negation(test)
    body = an.body(form.items[2:], scope, target, form.at)
    return nodes.choice(form.at, test, body, nodes.nil(form.at))


def do_if_let(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    """`if-let if-some when-let when-some when-first`: the binding holds in the first branch."""
    name = form.items[0].name
    is_if, is_first = name.startswith("if"), name.endswith("first")
    rest = "coll] body…" if is_first else f"value] then{' else' if is_if else '…'}"
    usage = f"({name} [name {rest})"
    if not an.arity(form, 2 if is_if else 1, 3 if is_if else None, usage):
        return nodes.nil(form.at)
    at, pair = form.at, form.items[1]
    if pair.kind != "vector" or len(pair.items) != 2:
        return an.problem("invalid_form", f"{name} takes one name and one value", form, usage)
    value = an.node(pair.items[1], scope)
    held = an.fresh()
    local = nodes.Local(at, held)
    test: Node = local
    named: Node = local
    if is_first:
        value = nodes.BuiltinCall(at, "seq", [value])
        named = nodes.BuiltinCall(at, "first", [local])
    elif name.endswith("some"):
        test = nodes.BuiltinCall(at, "some?", [local])
    inner = Scope(scope)
    bound: Bindings = []
    bind_pattern(an, inner, pair.items[0], named, bound)
    default = nodes.nil(form.at)
    if is_if:
        then = an.node(form.items[2], inner, target)
        default = an.node(form.items[3], scope, target) if len(form.items) > 3 else default
    else:
        then = an.body(form.items[2:], inner, target, at)
    then = nodes.Let(at, bound, then)
    return nodes.Let(at, [(held, value)], nodes.choice(form.at, test, then, default))


def do_cond(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    parts = form.items[1:]
    if len(parts) % 2:
        text = "cond takes pairs of test and value"
        return an.problem("invalid_arity", text, form, "(cond test value … :else x)")
    clauses = [
        (an.node(test, scope), an.node(value, scope, target))
        for test, value in zip(parts[::2], parts[1::2], strict=True)
    ]
    return nodes.Cond(form.at, clauses, nodes.nil(form.at))


def do_case(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    if not an.arity(form, 1, None, "(case value constant result … default)"):
        return nodes.nil(form.at)
    parts = form.items[2:]
    held = an.fresh()
    local = nodes.Local(form.at, held)
    value = an.node(form.items[1], scope)
    clauses: list[tuple[Node, Node]] = []
    seen: set[object] = set()
    for constant, result in zip(parts[::2], parts[1::2], strict=False):
        group = constant.items if constant.kind == "list" else (constant,)
        values = [an.quoted(each) for each in group]
        keys = make_set(values)
        if keys & seen:
            an.problem("duplicate_key", "case has this constant twice", constant)
        seen |= keys
        clauses.append((_case_test(local, constant, values, keys), an.node(result, scope, target)))
    default = an.node(parts[-1], scope, target) if len(parts) % 2 else nodes.nil(form.at)
    body = nodes.Cond(form.at, clauses, default)
    return nodes.Let(form.at, [(held, value)], body)


def _case_test(local: Node, constant: Form, values: list[object], keys: object) -> Node:
    at = constant.at
    if len(values) == 1 and (type(values[0]) is Keyword or isinstance(values[0], str)):
        return nodes.BuiltinCall(at, "=", [local, nodes.Const(at, values[0])])
    return nodes.BuiltinCall(at, "%case", [local, nodes.Const(at, keys)])


def do_condp(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    if not an.arity(form, 2, None, "(condp pred value test result … default)"):
        return nodes.nil(form.at)
    at = form.at
    pred, value = an.fresh(), an.fresh()
    bindings = [(pred, an.node(form.items[1], scope)), (value, an.node(form.items[2], scope))]
    known = nodes.Local(at, pred), nodes.Local(at, value)
    parts = list(form.items[3:])
    clauses: list[tuple[Node, Node]] = []
    while len(parts) > 1:
        test = parts.pop(0)
        call: Node = nodes.Call(test.at, known[0], [an.node(test, scope), known[1]])
        if parts[0].kind == "value" and parts[0].value is library.ARROW and len(parts) > 1:
            parts.pop(0)
            held = an.fresh()
            result = nodes.Local(at, held)
            fn = an.node(parts.pop(0), scope)
            # A chain of one step binds the test's value, which the clause's function gets.
            test_node = nodes.Chain(at, held, [call])
            clauses.append((test_node, nodes.Call(at, fn, [result])))
        else:
            clauses.append((call, an.node(parts.pop(0), scope, target)))
    default = an.node(parts[0], scope, target) if parts else nodes.nil(form.at)
    return nodes.Let(at, bindings, nodes.Cond(at, clauses, default))


def do_logic(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    name, parts = form.items[0].name, form.items[1:]
    if not parts:
        return nodes.Const(form.at, True if name == "and" else None)
    used = target.used if target else False
    items = an.all(parts[:-1], scope)
    last = an.node(parts[-1], scope, target)
    if target is None or target.used == used:
        kind: Literal["and", "or"] = "and" if name == "and" else "or"
        return nodes.Logic(form.at, kind, [*items, last])
    # A recur in the last part must stay in tail position: spell it with bindings.
    for item in reversed(items):
        held = an.fresh()
        local = nodes.Local(form.at, held)
        then, default = (last, local) if name == "and" else (local, last)
        body = nodes.choice(form.at, local, then, default)
        last = nodes.Let(form.at, [(held, item)], body)
    return last
