"""`fn`, `defn` and `letfn`: parameters, rest arguments, self-reference and overloads.

Owns the shape of functions. A function remembers the source text that makes it again and the
locals it may capture, so that closures can be stored as source.
"""

from __future__ import annotations

from holdfast.lang import nodes
from holdfast.lang.analyser import Analyser, Scope, Target
from holdfast.lang.destructure import Bindings, bind_pattern, check_name
from holdfast.lang.nodes import Node
from holdfast.lang.reader import Form


def do_fn(
    an: Analyser, form: Form, scope: Scope, target: Target | None, *, name: str = "", at: int = 1
) -> Node:
    """`(fn name? [params] body…)`, or several `([params] body…)` told apart by their number."""
    python_name = an.fresh("f")
    inner = Scope(scope)
    own = name
    if at == 1 and len(form.items) > 1 and form.items[1].kind == "symbol":
        check_name(an, form.items[1])
        own = form.items[1].name
        inner.names[own] = python_name
        at = 2
    if len(form.items) <= at:
        return an.problem("invalid_form", "fn needs a vector of parameters", form, "(fn [x] …)")
    if form.items[at].kind == "vector":
        return _one(an, form, inner, form.items[at:], python_name, own, scope.visible())
    clauses = form.items[at:]
    if any(each.kind != "list" or each.items[0].kind != "vector" for each in clauses):
        return an.problem("invalid_form", "fn needs a vector of parameters", form, "(fn [x] …)")
    found = [
        _one(an, form, inner, each.items, an.fresh("f"), own, scope.visible()) for each in clauses
    ]
    fns = [each for each in found if isinstance(each, nodes.Fn)]
    if len({(len(each.params), bool(each.rest)) for each in fns}) < len(fns):
        return an.problem("invalid_form", "two overloads take the same number of arguments", form)
    return nodes.Overloads(form.at, python_name, own, fns)


def _one(
    an: Analyser,
    form: Form,
    scope: Scope,
    parts: tuple[Form, ...],
    python_name: str,
    name: str,
    captures: dict[str, str],
) -> Node:
    vector, body_forms = parts[0], parts[1:]
    inner = Scope(scope)
    params: list[str] = []
    patterns: Bindings = []
    rest = ""
    items = list(vector.items)
    while items:
        item = items.pop(0)
        if item.is_symbol("&"):
            if len(items) != 1:
                return an.problem("invalid_form", "& takes one name, the last parameter", vector)
            rest = _rest(an, inner, items.pop(), patterns)
        elif item.kind == "symbol":
            check_name(an, item)
            params.append(an.bind(inner, item.name))
        else:
            params.append(an.fresh())
            local = nodes.Local(item.at, params[-1])
            bind_pattern(an, inner, item, local, patterns)
    target = Target(len(params) + bool(rest))
    body = an.body(body_forms, inner, target, form.at)
    if patterns:
        body = nodes.Let(form.at, patterns, body)
    text = an.source.part((vector.at[0], form.at[1]))
    if any(item.name.startswith(" ") for item in form.items):
        text = ""  # threaded into: the source does not spell this function
    else:
        text = f"(fn {name} {text}" if name else f"(fn {text}"
    return nodes.Fn(form.at, python_name, name, params, rest, body, target.used, text, captures)


def _rest(an: Analyser, scope: Scope, form: Form, patterns: Bindings) -> str:
    if form.kind == "symbol":
        check_name(an, form)
        return an.bind(scope, form.name)
    held = an.fresh()
    value: Node = nodes.Local(form.at, held)
    if form.kind == "map":
        value = nodes.BuiltinCall(form.at, "%kwargs", [value])
    bind_pattern(an, scope, form, value, patterns)
    return held


def do_letfn(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    shape = len(form.items) > 1 and form.items[1].kind == "vector"
    clauses = form.items[1].items if shape else ()
    bad = any(
        each.kind != "list" or len(each.items) < 2 or each.items[1].kind != "vector"
        for each in clauses
    )
    if not shape or bad:
        return an.problem("invalid_form", "letfn takes functions", form, "(letfn [(f [x] …)] …)")
    inner = Scope(scope)
    names = [an.fresh("f") for _ in clauses]
    for each, python_name in zip(clauses, names, strict=True):
        inner.names[each.items[0].name] = python_name
    fns = []
    for each, python_name in zip(clauses, names, strict=True):
        own = each.items[0].name
        fn = _one(an, each, inner, each.items[1:], python_name, own, inner.visible())
        if isinstance(fn, nodes.Fn):
            fns.append(fn)
    body = an.body(form.items[2:], inner, None, form.at)
    return nodes.Letfn(form.at, fns, body)
