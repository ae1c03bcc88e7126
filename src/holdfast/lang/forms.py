"""The special forms: bindings, threading and iteration here, the rest from their modules.

Owns one handler per form, all with the same shape: (analyser, form, scope, recur target) → node.
`FORMS` is the table of all, with a line of doc each. Threading becomes a flat chain of bindings,
so a pipeline of a thousand steps nests nothing.
"""

from __future__ import annotations

from holdfast.lang import library, nodes
from holdfast.lang.analyser import Analyser, Handler, Scope, Target
from holdfast.lang.conditions import do_case, do_cond, do_condp, do_if, do_if_let, do_logic, do_when
from holdfast.lang.destructure import Bindings, bind_pattern
from holdfast.lang.functions import do_fn, do_letfn
from holdfast.lang.nodes import Node
from holdfast.lang.reader import Form
from holdfast.lang.values import Var

# --- bindings -------------------------------------------------------------------------------------


def pairs_of(an: Analyser, form: Form) -> list[tuple[Form, Form]] | None:
    """The pairs of a binding vector; None after noting what is wrong with it."""
    name = form.items[0].name
    if len(form.items) < 2 or form.items[1].kind != "vector":
        an.problem("invalid_form", f"{name} takes a vector of bindings", form, f"({name} [x 1] …)")
        return None
    items = form.items[1].items
    if len(items) % 2:
        an.problem("invalid_form", f"{name} bindings must be pairs (an even number of forms)", form)
        return None
    return list(zip(items[::2], items[1::2], strict=True))


def do_let(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    pairs = pairs_of(an, form)
    if pairs is None:
        return nodes.nil(form.at)
    inner = scope
    bound: Bindings = []
    for pattern, value in pairs:
        node = an.node(value, inner)
        inner = Scope(inner)
        bind_pattern(an, inner, pattern, node, bound)
    body = an.body(form.items[2:], inner, target, form.at)
    return nodes.Let(form.at, bound, body)


def do_loop(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    pairs = pairs_of(an, form)
    if pairs is None:
        return nodes.nil(form.at)
    inner = Scope(scope)
    raw: Bindings = []
    patterns: Bindings = []
    for pattern, value in pairs:
        node = an.node(value, inner)
        if pattern.kind == "symbol":
            bind_pattern(an, inner, pattern, node, raw)
        else:
            held = an.fresh()
            raw.append((held, node))
            local = nodes.Local(pattern.at, held)
            bind_pattern(an, inner, pattern, local, patterns)
    here = Target(len(raw))
    body = an.body(form.items[2:], inner, here, form.at)
    if patterns:
        body = nodes.Let(form.at, patterns, body)
    if not here.used:
        return nodes.Let(form.at, raw, body)
    return nodes.Loop(form.at, raw, body)


def do_recur(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    args = form.items[1:]
    found = an.all(args, scope)
    if target is None:
        return an.problem(
            "invalid_form", "recur is not in tail position", form, "make it the last thing done"
        )
    if len(args) != target.count:
        return an.problem(
            "arity_error", f"recur takes {target.count} values here, got {len(args)}", form
        )
    target.used = True
    return nodes.Recur(form.at, found)


def do_def(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    name = form.items[0].name
    if not an.arity(form, 1, 3, f"({name} name value)"):
        return nodes.nil(form.at)
    target_form = form.items[1]
    if target_form.kind != "symbol" or "/" in target_form.name.strip("/"):
        return an.problem("invalid_form", f"{name} needs a plain name", form, f"({name} x 1)")
    if len(form.items) == 4 and not isinstance(form.items[2].value, str):
        return an.problem("invalid_arity", f"{name} takes a name and one value", form)
    an.defined.add(target_form.name)
    value = an.node(form.items[-1], scope) if len(form.items) > 2 else None
    return nodes.Def(form.at, target_form.name, value, name == "defonce")


def do_defn(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    if (
        len(form.items) < 3
        or form.items[1].kind != "symbol"
        or "/" in form.items[1].name.strip("/")
    ):
        return an.problem(
            "invalid_form", "defn needs a name and parameters", form, "(defn f [x] …)"
        )
    name = form.items[1].name
    an.defined.add(name)
    at = 2
    while at < len(form.items) - 1 and (
        isinstance(form.items[at].value, str) or form.items[at].kind == "map"
    ):
        at += 1
    fn = do_fn(an, form, scope, None, name=name, at=at)
    return nodes.Def(form.at, name, fn, False)


# --- threading ------------------------------------------------------------------------------------


def step(an: Analyser, form: Form, value: Form, *, last: bool) -> Form:
    """One step of a pipeline with the value put in first or last place."""
    names_fn = form.kind == "list" and form.items[0].name == "fn"
    spelled = names_fn and any(each.kind == "vector" for each in form.items[1:3])
    if form.kind == "fn" or (spelled and not last):
        an.problem(
            "invalid_form",
            "the value would be put inside the function, not passed to it",
            form,
            "wrap the function in parentheses: (-> x (#(+ % 1)))",
        )
        return value
    if form.kind != "list":
        return Form("list", form.at, (form, value))
    items = (*form.items, value) if last else (form.items[0], value, *form.items[1:])
    return Form("list", form.at, items)


def hidden(an: Analyser, scope: Scope, form: Form) -> tuple[Form, str]:
    """A name that no source can spell, bound in `scope`: as a form, and as generated."""
    bound = an.bind(scope, f" {an.counter}")
    return Form("symbol", form.at, name=f" {an.counter - 1}"), bound


def do_thread(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    """`-> ->> some-> some->>`."""
    name = form.items[0].name
    if not an.arity(form, 1, None, f"({name} value step…)"):
        return nodes.nil(form.at)
    last, some = name.endswith(">>"), name.startswith("some")
    steps = form.items[2:]
    node = an.node(form.items[1], scope, target if not steps else None)
    if some:
        inner = Scope(scope)
        symbol, bound = hidden(an, inner, form)
        found = [an.node(step(an, each, symbol, last=last), inner) for each in steps]
        return nodes.Chain(form.at, bound, [node, *found])
    bindings: Bindings = []
    inner = Scope(scope)
    for index, each in enumerate(steps):
        symbol, bound = hidden(an, inner, each)
        bindings.append((bound, node))
        tail = target if index == len(steps) - 1 else None
        node = an.node(step(an, each, symbol, last=last), inner, tail)
    return nodes.Let(form.at, bindings, node) if bindings else node


def do_cond_thread(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    """`cond-> cond->>`: every test is tried; steps of tests that hold are threaded."""
    name = form.items[0].name
    if len(form.items) < 2 or len(form.items) % 2:
        return an.problem("invalid_arity", f"{name} takes a value and pairs of test and step", form)
    bindings: Bindings = []
    inner = Scope(scope)
    node = an.node(form.items[1], scope)
    parts = form.items[2:]
    for test, each in zip(parts[::2], parts[1::2], strict=True):
        symbol, bound = hidden(an, inner, each)
        bindings.append((bound, node))
        then = an.node(step(an, each, symbol, last=name.endswith(">>")), inner)
        held = nodes.Local(each.at, bound)
        node = nodes.choice(each.at, an.node(test, scope), then, held)
    return nodes.Let(form.at, bindings, node)


def do_as_thread(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    if not an.arity(form, 2, None, "(as-> value name step…)"):
        return nodes.nil(form.at)
    bindings: Bindings = []
    inner = Scope(scope)
    node = an.node(form.items[1], scope)
    for each in form.items[3:]:
        bind_pattern(an, inner, form.items[2], node, bindings)
        node = an.node(each, inner)
    return nodes.Let(form.at, bindings, node)


# --- iteration ------------------------------------------------------------------------------------


def do_for(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    pairs = pairs_of(an, form)
    name = form.items[0].name
    if pairs is None:
        return nodes.nil(form.at)
    if not pairs or (pairs[0][0].kind == "value"):
        return an.problem("invalid_form", f"{name} starts with a name and a collection", form)
    if name == "for" and len(form.items) != 3:
        return an.problem("invalid_arity", "for takes bindings and one body", form, "wrap it in do")
    inner = Scope(scope)
    clauses: list[tuple[str, str, Node]] = []
    for left, right in pairs:
        if left.kind == "value":
            _modifier(an, left, right, inner, clauses)
            continue
        node = an.node(right, inner)
        inner = Scope(inner)
        if left.kind == "symbol":
            bound: Bindings = []
            bind_pattern(an, inner, left, node, bound)
            clauses.append(("bind", *bound[0]))
        else:
            held = an.fresh()
            clauses.append(("bind", held, node))
            bound = []
            bind_pattern(an, inner, left, nodes.Local(left.at, held), bound)
            clauses += [("let", *each) for each in bound]
    loops = sum(clause[0] == "bind" for clause in clauses)
    if loops > nodes.BLOCKS_MAX:
        text = f"{name} takes at most {nodes.BLOCKS_MAX} collections, got {loops}"
        return an.problem("invalid_form", text, form, "nest a second one in its body")
    body = an.body(form.items[2:], inner, None, form.at)
    return nodes.For(form.at, "for" if name == "for" else "doseq", clauses, body)  # type: ignore[arg-type]  # kinds are checked by _modifier


def _modifier(
    an: Analyser, left: Form, right: Form, inner: Scope, clauses: list[tuple[str, str, Node]]
) -> None:
    word = left.word
    if word in ("when", "while"):
        clauses.append((word, "", an.node(right, inner)))
    elif word == "let" and right.kind == "vector" and len(right.items) % 2 == 0:
        bound: Bindings = []
        for pattern, value in zip(right.items[::2], right.items[1::2], strict=True):
            bind_pattern(an, inner, pattern, an.node(value, inner), bound)
        clauses.extend(("let", *each) for each in bound)
    else:
        an.problem("invalid_form", "for and doseq know :when, :let [name value] and :while", left)


# --- the rest -------------------------------------------------------------------------------------


def do_do(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    return an.body(form.items[1:], scope, target, form.at)


def do_comment(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    return nodes.nil(form.at)


def do_quote(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    if not an.arity(form, 1, 1, "(quote name)"):
        return nodes.nil(form.at)
    return nodes.Const(form.at, an.quoted(form.items[1]))


def do_var(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    if len(form.items) != 2 or form.items[1].kind != "symbol":
        return an.problem("invalid_form", "#' takes a name", form, "#'name")
    name = form.items[1]
    if scope.find(name.name) is None and (name.name in an.defined or name.name in an.known):
        return nodes.Const(form.at, Var(name.name))
    return an.node(name, scope)


def do_where(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    usage = "(where :field), (where :field = value), (where [:a :b] > 1)"
    parts = form.items[1:]
    operators = library.WHERE_OPERATORS
    if len(parts) not in (1, 3):
        return an.problem(
            "invalid_arity", "where takes a field, or a field, an operator and a value", form, usage
        )
    args = [an.node(parts[0], scope)]
    if len(parts) == 3:
        operator = parts[1]
        if operator.kind != "symbol" or operator.name not in operators:
            shown = an.source.snippet(operator.at)
            return an.problem(
                "invalid_form",
                f"where does not know the operator {shown}",
                operator,
                "operators are " + " ".join(operators),
            )
        at = operator.at
        args += [nodes.Const(at, operator.name), an.node(parts[2], scope)]
    return nodes.BuiltinCall(form.at, "%where", args)


def do_task(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    if not an.arity(form, 2, 2, '(task "id" expression)'):
        return nodes.nil(form.at)
    id_node = an.node(form.items[1], scope)
    body = an.node(form.items[2], scope)
    text = an.canonical(form.items[2])
    return nodes.Task(form.at, id_node, body, text)


def do_refused(an: Analyser, form: Form, scope: Scope, target: Target | None) -> Node:
    name = form.items[0].name
    return an.problem(
        "invalid_form", f"{name} is not offered here", form, library.NOT_OFFERED[name]
    )


# name: (handler, usage, doc). The language's grammar beyond calls, in one place.
FORMS: dict[str, tuple[Handler, str, str]] = {
    "let": (do_let, "(let [x 1] body…)", "Bind names in order; patterns take values apart."),
    "loop": (do_loop, "(loop [i 0] … (recur (inc i)))", "Bind names; recur rebinds and repeats."),
    "recur": (do_recur, "(recur value…)", "Go round the nearest loop or function again."),
    "fn": (do_fn, "(fn name? [x & rest] body…)", "A function; the name serves self-reference."),
    "defn": (do_defn, '(defn f "doc" [x] body…)', "Define a function."),
    "defn-": (do_defn, "(defn- f [x] body…)", "Define a function; the same as defn here."),
    "def": (do_def, '(def x "doc" value)', "Define a name for the rest of the session."),
    "defonce": (do_def, "(defonce x value)", "Define a name unless it is defined already."),
    "letfn": (do_letfn, "(letfn [(f [x] …)] body…)", "Functions that may call each other."),
    "if": (do_if, "(if test then else)", "Choose; only nil and false count as false."),
    "if-not": (do_if, "(if-not test then else)", "Choose on the opposite."),
    "when": (do_when, "(when test body…)", "The body if the test holds, else nil."),
    "when-not": (do_when, "(when-not test body…)", "The body unless the test holds."),
    "if-let": (do_if_let, "(if-let [x value] then else)", "Bind and choose on its truth."),
    "when-let": (do_if_let, "(when-let [x value] body…)", "Bind and go on if true."),
    "if-some": (do_if_let, "(if-some [x value] then else)", "Bind and choose on not nil."),
    "when-some": (do_if_let, "(when-some [x value] body…)", "Bind and go on if not nil."),
    "when-first": (do_if_let, "(when-first [x coll] body…)", "Bind the first item if any."),
    "cond": (do_cond, "(cond test value … :else x)", "The value of the first test that holds."),
    "case": (do_case, "(case x 1 :one (2 3) :few :else)", "Choose by constant; else nil."),
    "condp": (do_condp, "(condp = x 1 :one :else)", "Choose by (pred test x); :>> applies."),
    "and": (do_logic, "(and a b…)", "The first false value, else the last."),
    "or": (do_logic, "(or a b…)", "The first true value, else the last."),
    "do": (do_do, "(do a b…)", "Evaluate in order; the last is the value."),
    "->": (do_thread, "(-> x (f a) g)", "Thread as the first argument."),
    "->>": (do_thread, "(->> xs (map f) (filter p))", "Thread as the last argument."),
    "some->": (do_thread, "(some-> x f g)", "Thread first, stopping at nil."),
    "some->>": (do_thread, "(some->> xs (map f))", "Thread last, stopping at nil."),
    "cond->": (do_cond_thread, "(cond-> x test (f a))", "Thread first where tests hold."),
    "cond->>": (do_cond_thread, "(cond->> xs test (f a))", "Thread last where tests hold."),
    "as->": (do_as_thread, "(as-> x name (f a name))", "Thread through a name."),
    "for": (do_for, "(for [x xs :when p :let [y x] :while q] body)", "A vector of all bodies."),
    "doseq": (do_for, "(doseq [x xs] body…)", "Do the body for each; nil."),
    "comment": (do_comment, "(comment …)", "Nothing: nil."),
    "quote": (do_quote, "(quote name)", "A name as a value; 'name is short for it."),
    "var": (do_var, "#'name", "The definition itself."),
    "where": (do_where, "(where :a > 1)", "A predicate on a field or a path of keys."),
    "task": (do_task, '(task "id" expr)', "The recorded value of id, else evaluate and record."),
    **{name: (do_refused, f"({name} …)", "Not offered.") for name in library.REFUSED_FORMS},
}
HANDLERS: dict[str, Handler] = {name: row[0] for name, row in FORMS.items()}
