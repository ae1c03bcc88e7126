"""Patterns to plain bindings, for `let`, `loop`, `fn`, `for` and `doseq`.

Owns the meaning of vector and map patterns. A pattern becomes a list of (generated name, node)
pairs in evaluation order; the run-time parts (`%items`, `%lookup`, …) are built-ins whose names no
source text can spell.
"""

from __future__ import annotations

from holdfast.lang import library, nodes
from holdfast.lang.analyser import Analyser, Scope
from holdfast.lang.nodes import Node
from holdfast.lang.reader import Form

Bindings = list[tuple[str, Node]]
_FORBIDDEN = ("/", "%")


def bind_pattern(an: Analyser, scope: Scope, pattern: Form, value: Node, out: Bindings) -> None:
    """Append the bindings of one pattern; the names become visible in `scope`."""
    if pattern.kind == "symbol":
        check_name(an, pattern)
        out.append((an.bind(scope, pattern.name), value))
    elif pattern.kind == "vector":
        _vector(an, scope, pattern, value, out)
    elif pattern.kind == "map":
        _map(an, scope, pattern, value, out)
    else:
        an.problem("unsupported_pattern", "a binding is a name, a vector or a map pattern", pattern)


def check_name(an: Analyser, form: Form) -> None:
    name = form.name
    if any(char in name for char in _FORBIDDEN) and name != "/":
        an.problem("invalid_form", f"{name} cannot be bound: it is a qualified name", form)
    elif name == "&":
        an.problem("unsupported_pattern", "& stands before a name", form)


def _hold(an: Analyser, value: Node, out: Bindings) -> nodes.Local:
    name = an.fresh()
    out.append((name, value))
    return nodes.Local(value.at, name)


def _vector(an: Analyser, scope: Scope, pattern: Form, value: Node, out: Bindings) -> None:
    whole = _hold(an, value, out)
    items = _hold(an, nodes.BuiltinCall(pattern.at, "%items", [whole]), out)
    index, forms = 0, list(pattern.items)
    while forms:
        form = forms.pop(0)
        if form.is_symbol("&"):
            if not forms:
                an.problem("unsupported_pattern", "& needs a name after it", form)
                return
            rest = forms.pop(0)
            at = nodes.Const(pattern.at, index)
            tail: Node = nodes.BuiltinCall(pattern.at, "%rest", [items, at])
            if rest.kind == "map":
                tail = nodes.BuiltinCall(pattern.at, "%kwargs", [tail])
            bind_pattern(an, scope, rest, tail, out)
        elif form.word:
            if form.word != "as" or not forms or forms[0].kind != "symbol":
                an.problem(
                    "unsupported_pattern", "a vector pattern knows & rest and :as name", form
                )
                return
            bind_pattern(an, scope, forms.pop(0), whole, out)
        else:
            at = nodes.Const(form.at, index)
            item = nodes.BuiltinCall(form.at, "%item", [items, at])
            bind_pattern(an, scope, form, item, out)
            index += 1


def _map(an: Analyser, scope: Scope, pattern: Form, value: Node, out: Bindings) -> None:
    pairs = list(zip(pattern.items[::2], pattern.items[1::2], strict=True))
    source = "%associative" if any(not left.word for left, _ in pairs) else "%map"
    whole = _hold(an, nodes.BuiltinCall(pattern.at, source, [value]), out)
    defaults: dict[str, Form] = {}
    for left, right in pairs:
        if left.word == "or":
            if right.kind != "map":
                an.problem("unsupported_pattern", ":or takes a map of defaults", right)
                return
            names = right.items[::2]
            defaults = {
                name.name or name.word: default
                for name, default in zip(names, right.items[1::2], strict=True)
            }
    for left, right in pairs:
        word = left.word
        if word in ("keys", "strs", "syms"):
            wanted = _named(an, word, right)
        elif not word:
            wanted = [(left, an.node(right, scope))]
        else:
            wanted = []
            if word == "as":
                bind_pattern(an, scope, right, whole, out)
            elif word != "or":
                text = f":{word} means nothing in a map pattern"
                hint = "write {name :key}, {:keys [a b]}, :or or :as"
                an.problem("unsupported_pattern", text, left, hint)
        for target, key in wanted:
            args = [whole, key]
            if target.name in defaults:
                args.append(an.node(defaults[target.name], scope))
            bind_pattern(an, scope, target, nodes.BuiltinCall(target.at, "%lookup", args), out)


def _named(an: Analyser, word: str, names: Form) -> list[tuple[Form, Node]]:
    """The names after `:keys`, `:strs` or `:syms`, each with the key that it is read by."""
    if names.kind != "vector":
        an.problem("unsupported_pattern", f":{word} takes a vector of names", names)
        return []
    found: list[tuple[Form, Node]] = []
    for form in names.items:
        name = form.name or form.word
        if not name or form.kind not in ("symbol", "value"):
            an.problem("unsupported_pattern", f":{word} takes names", form)
            continue
        key = nodes.Const(form.at, library.key_for(word, name))
        found.append((Form("symbol", form.at, name=name), key))
    return found
