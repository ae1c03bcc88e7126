"""Forms to nodes: names, arities and shapes are checked before anything runs.

Owns scope, the static checks and their reports: every problem found is reported at once, each with
its place and a near name. The special forms themselves are in `forms`; patterns in `destructure`.
Owns no evaluation. Names are looked up local → definition → built-in, as the requirements say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from types import MappingProxyType

from holdfast.lang import library, nodes
from holdfast.lang.api import LangError, Limits, Tool
from holdfast.lang.callables import is_callable
from holdfast.lang.nodes import Node
from holdfast.lang.reader import At, Form, Source, tokens_of
from holdfast.lang.regexes import compile_regex
from holdfast.lang.values import Symbol

MAX_PARAMS = 20
_PLACEHOLDER = re.compile(r"%(?:[1-9][0-9]?|&)?\Z")
PROBLEMS_SHOWN = 20
# Code of the whole report when problems of several kinds were found: the first of this order.
_PRECEDENCE = ("invalid_form", "invalid_arity", "arity_error", "unbound_var", "unknown_tool")


class Scope:
    """Local names of one lexical level, each mapped to its generated Python name."""

    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, str] = {}

    def find(self, name: str) -> str | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def visible(self) -> dict[str, str]:
        """Every local in sight, inner names first hiding outer ones."""
        found: dict[str, str] = {}
        scope: Scope | None = self
        while scope is not None:
            found = {**scope.names, **found}
            scope = scope.parent
        return found


class Target:
    """Where `recur` would go: how many values it takes, and whether it was used."""

    __slots__ = ("count", "used")

    def __init__(self, count: int) -> None:
        self.count = count
        self.used = False


@dataclass
class Program:
    """A checked program and what linking it needs."""

    source: Source
    id: str
    body: Node
    defined: set[str]
    data: set[str]
    tools: set[str]


Handler = Callable[["Analyser", Form, Scope, "Target | None"], Node]


class Analyser:
    """One pass over one program. `target` is None where `recur` is not in tail position."""

    def __init__(
        self,
        source: Source,
        limits: Limits,
        *,
        known: Iterable[str] = (),
        tools: Mapping[str, Tool] | None = None,
        handlers: Mapping[str, Handler],
    ) -> None:
        self.source = source
        self.limits = limits
        self.known = set(known)
        self.tools = tools or {}
        self.id = sha256(source.text.encode("utf-8", "replace")).hexdigest()[:8]
        self.problems: list[LangError] = []
        self.defined: set[str] = set()
        self.unbound: dict[str, list[Form]] = {}
        self.data: set[str] = set()
        self.used_tools: set[str] = set()
        self.counter = 0
        self.handlers = handlers

    # --- the whole ------------------------------------------------------------------------------

    def program(
        self, forms: Sequence[Form], captures: Mapping[str, str] = MappingProxyType({})
    ) -> Program:
        self.collect_definitions(forms)
        scope = Scope()
        scope.names.update(captures)
        body = self.body(forms, scope, None, (0, len(self.source.text)))
        self.report()
        return Program(self.source, self.id, body, self.defined, self.data, self.used_tools)

    def collect_definitions(self, forms: Sequence[Form]) -> None:
        """Every name that a `def` anywhere defines, so that functions may call later ones."""
        stack = list(forms)
        while stack:
            form = stack.pop()
            if form.kind == "list" and len(form.items) > 1:
                head, second = form.items[0], form.items[1]
                if head.name in ("quote", "comment") and head.kind == "symbol":
                    continue
                if head.kind == "symbol" and head.name in ("def", "defn", "defn-", "defonce"):
                    self.defined.add(second.name)
            stack.extend(form.items)

    def report(self) -> None:
        for name, uses in self.unbound.items():
            if name not in self.defined:
                self.problem("unbound_var", f"{name} is not defined", uses[0], self.near(name))
        if not self.problems:
            return
        problems = sorted(self.problems, key=lambda error: (error.line, error.column))
        first = min(
            problems, key=lambda e: _PRECEDENCE.index(e.code) if e.code in _PRECEDENCE else -1
        )
        if len(problems) > 1:
            shown = [f"{e.message} ({e.line}:{e.column})" for e in problems[:PROBLEMS_SHOWN]]
            if len(problems) > PROBLEMS_SHOWN:
                shown.append(f"and {len(problems) - PROBLEMS_SHOWN} more")
            first.details["problems"] = [error.as_dict() for error in problems[:PROBLEMS_SHOWN]]
            first.message = f"{len(problems)} problems: " + "; ".join(shown)
            first.hint = "; ".join(dict.fromkeys(e.hint for e in problems[:5] if e.hint))
        raise first

    def problem(self, code: str, message: str, form: Form, hint: str = "") -> Node:
        """Note a problem and go on with nil in its place, so that all are found at once."""
        error = LangError(code, message, hint=hint)
        self.problems.append(self.source.locate(error, form.at))
        return nodes.nil(form.at)

    def arity(self, form: Form, low: int, high: int | None, usage: str) -> bool:
        """Note a wrong number of parts; true when the number is right."""
        count, name = len(form.items) - 1, form.items[0].name
        if count >= low and (high is None or count <= high):
            return True
        most = "" if high == low else f" to {high}"
        want = f"at least {low}" if high is None else f"{low}{most}"
        self.problem("invalid_arity", f"{name} takes {want} parts, got {count}", form, usage)
        return False

    def quoted(self, form: Form) -> object:
        """A form as data: symbols stay symbols; lists are refused."""
        if form.kind == "value":
            return form.value
        if form.kind == "symbol":
            return Symbol(form.name)
        if form.kind in ("vector", "map", "set"):
            return library.collect(form.kind, [self.quoted(item) for item in form.items])
        hint = "write a vector: [1 2 3]"
        self.problem("invalid_form", "a quoted list is not a value", form, hint)
        return None

    def near(self, name: str) -> str:
        hints = []
        if name in library.NOT_OFFERED:
            return library.NOT_OFFERED[name]
        hyphened = name.replace("_", "-")
        names = {*self.defined, *self.known, *library.names()}
        if hyphened != name and hyphened in names:
            return f"did you mean {hyphened}? Names use hyphens"
        close = get_close_matches(name, sorted(names | set(self.handlers)), n=3, cutoff=0.7)
        if close:
            hints.append(f"did you mean {' or '.join(close)}?")
        elif hyphened != name:
            hints.append("names use hyphens, not underscores")
        if name in self.tools:
            hints.append(f"tools are called as (tool/{name} …)")
        return " ".join(hints)

    def canonical(self, form: Form) -> str:
        """The form's text without comments and surplus space."""
        return tokens_of(self.source.part(form.at))

    def fresh(self, letter: str = "v") -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def bind(self, scope: Scope, name: str) -> str:
        scope.names[name] = found = self.fresh()
        return found

    # --- forms ----------------------------------------------------------------------------------

    def node(self, form: Form, scope: Scope, target: Target | None = None) -> Node:
        kind = form.kind
        if kind == "value":
            return nodes.Const(form.at, form.value)
        if kind == "symbol":
            return self.symbol(form, scope)
        if kind == "list":
            return self.list(form, scope, target)
        if kind == "regex":
            return self.regex(form)
        if kind == "fn":
            return self.short_fn(form, scope)
        items = [self.node(item, scope) for item in form.items]
        assert kind in ("vector", "map", "set"), kind
        return fold_collection(nodes.Collect(form.at, kind, items))

    def all(self, forms: Iterable[Form], scope: Scope) -> list[Node]:
        return [self.node(form, scope) for form in forms]

    def body(self, forms: Sequence[Form], scope: Scope, target: Target | None, at: At) -> Node:
        """Several forms, of which the last is the value; none is nil."""
        if not forms:
            return nodes.nil(at)
        found = [self.node(form, scope) for form in forms[:-1]]
        found.append(self.node(forms[-1], scope, target))
        return found[0] if len(found) == 1 else nodes.Do(at, found)

    def regex(self, form: Form) -> Node:
        try:
            return nodes.Const(form.at, compile_regex(form.name, self.limits))
        except LangError as error:
            return self.problem(error.code, error.message, form, error.hint)

    def symbol(self, form: Form, scope: Scope) -> Node:
        name, at = form.name, form.at
        local = scope.find(name)
        if local is not None:
            return nodes.Local(at, local)
        if name in self.defined or name in self.known:
            return nodes.Global(at, name)
        if name in ("*1", "*2", "*3"):
            return nodes.Input(at, "history", name)
        if _PLACEHOLDER.match(name):
            return self.problem(
                "invalid_placeholder", f"{name} stands outside #(…)", form, "write #(… % …)"
            )
        if name.startswith("data/") and len(name) > 5:
            self.data.add(name[5:])
            return nodes.Input(at, "data", name[5:])
        if name == "budget/remaining":  # written bare, it is what its call gives
            return nodes.BuiltinCall(at, name, [])
        found = library.resolve(name)
        if isinstance(found, library.Constant):
            return nodes.Const(at, found.value)
        if found is not None:
            return nodes.Builtin(at, found.name)
        if name in self.handlers:
            return self.problem(
                "invalid_form", f"{name} is a form, not a value", form, f"call it as ({name} …)"
            )
        if name.startswith("tool/"):
            return self.problem(
                "invalid_form",
                f"{name} can only be called",
                form,
                f"write (fn [x] ({name} {{…}})) to pass it on",
            )
        return self.unknown(form)

    def unknown(self, form: Form) -> Node:
        """A name nobody knows: noted now, reported when all are known."""
        name = form.name
        message = library.namespace_problem(name)
        if message:
            return self.problem("unbound_var", message, form)
        self.unbound.setdefault(name, []).append(form)
        return nodes.Global(form.at, name)

    def list(self, form: Form, scope: Scope, target: Target | None) -> Node:
        head, args = form.items[0], form.items[1:]
        if head.kind == "symbol":
            name = head.name
            hidden = scope.find(name) is not None or name in self.defined or name in self.known
            handler = self.handlers.get(name)
            if handler is not None and (not hidden or name in library.UNSHADOWABLE):
                return handler(self, form, scope, target)
            if not hidden:
                if name.startswith("tool/"):
                    return self.tool(form, scope)
                found = library.resolve(name)
                if isinstance(found, library.Row):
                    return self.builtin_call(found, form, scope)
        if head.kind == "value" and not is_callable(head.value):
            self.all(args, scope)
            text = self.source.snippet(head.at, 40)
            return self.problem(
                "not_callable", f"{text} cannot be called", form, "write [ ] for a vector of values"
            )
        return nodes.Call(form.at, self.node(head, scope), self.all(args, scope))

    def builtin_call(self, row: library.Row, form: Form, scope: Scope) -> Node:
        args = form.items[1:]
        found = self.all(args, scope)
        wrong = row.wrong_arity(len(args))
        if wrong:
            return self.problem("arity_error", wrong, form, row.usage)
        if row.helper:
            return nodes.HostCall(form.at, row.helper, found)
        return nodes.BuiltinCall(form.at, row.name, found)

    def tool(self, form: Form, scope: Scope) -> Node:
        name = form.items[0].name.removeprefix("tool/")
        args = form.items[1:]
        found = self.all(args, scope)
        self.used_tools.add(name)
        if name not in self.tools:
            have = ", ".join(sorted(self.tools)) or "none"
            close = get_close_matches(name, sorted(self.tools), n=1)
            hint = f"did you mean tool/{close[0]}?" if close else ""
            return self.problem(
                "unknown_tool", f"there is no tool {name}; available: {have}", form, hint
            )
        pairs = len(args) >= 2 and len(args) % 2 == 0
        if len(args) > 1 and not (pairs and all(arg.word for arg in args[::2])):
            return self.problem(
                "invalid_arity",
                f"tool/{name} takes one map or keyword pairs",
                form,
                f"write (tool/{name} {{:name value}})",
            )
        if pairs:
            found = [fold_collection(nodes.Collect(form.at, "map", found))]
        return nodes.HostCall(form.at, "tool", [nodes.Const(form.at, name), *found])

    # --- functions ------------------------------------------------------------------------------

    def short_fn(self, form: Form, scope: Scope) -> Node:
        """#(…): placeholders become parameters up to the highest one used."""
        highest, rest = 0, False
        stack = list(form.items)
        while stack:
            item = stack.pop()
            stack.extend(item.items)
            if item.kind == "symbol" and _PLACEHOLDER.match(item.name):
                if item.name == "%&":
                    rest = True
                else:
                    highest = max(highest, int(item.name[1:] or 1))
        if highest > MAX_PARAMS:
            return self.problem("invalid_placeholder", f"%{highest} is beyond %{MAX_PARAMS}", form)
        inner = Scope(scope)
        params = [self.bind(inner, f"%{index}") for index in range(1, highest + 1)]
        if params:
            inner.names["%"] = params[0]
        tail = self.bind(inner, "%&") if rest else ""
        target = Target(highest + rest)
        body = nodes.nil(form.at)
        if form.items:
            body = self.node(Form("list", form.at, form.items), inner, target)
        return nodes.Fn(
            form.at, self.fresh("f"), "", params, tail, body, target.used,
            self.source.part(form.at), scope.visible(),
        )  # fmt: skip


def fold_collection(node: nodes.Collect) -> Node:
    """A literal of constants is a constant."""
    if all(isinstance(item, nodes.Const) for item in node.items):
        values = [item.value for item in node.items if isinstance(item, nodes.Const)]
        return nodes.Const(node.at, library.collect(node.kind, values))
    return node
