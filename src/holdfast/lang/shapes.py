"""What the handlers of special forms share: counting parts, building conditions, quoting.

Owns no form. Problems are noted on the analyser, and nil stands in for what was wrong.
"""

from __future__ import annotations

from holdfast.lang import library, nodes
from holdfast.lang.analyser import Analyser
from holdfast.lang.nodes import Node
from holdfast.lang.reader import Form
from holdfast.lang.values import Symbol


def arity(an: Analyser, form: Form, low: int, high: int | None, usage: str) -> bool:
    """Note a wrong number of parts; true when the number is right."""
    count = len(form.items) - 1
    if count >= low and (high is None or count <= high):
        return True
    name = form.items[0].name
    want = f"{low}" if low == high else f"at least {low}" if high is None else f"{low} to {high}"
    an.problem("invalid_arity", f"{name} takes {want} parts, got {count}", form, usage)
    return False


def nil(form: Form) -> Node:
    return nodes.Const(form.start, form.end, None)


def if_node(form: Form, test: Node, then: Node, default: Node) -> Node:
    return nodes.Cond(form.start, form.end, [(test, then)], default)


def negate(node: Node) -> Node:
    return nodes.BuiltinCall(node.start, node.end, "not", [node])


def quoted(an: Analyser, form: Form) -> object:
    """A form as data: symbols stay symbols; lists are refused."""
    if form.kind == "value":
        return form.value
    if form.kind == "symbol":
        return Symbol(form.name)
    if form.kind in ("vector", "map", "set"):
        return library.collect(form.kind, [quoted(an, item) for item in form.items])
    an.problem("invalid_form", "a quoted list is not a value", form, "write a vector: [1 2 3]")
    return None
