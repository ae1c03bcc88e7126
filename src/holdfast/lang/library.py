"""The meaning of the table: finding a built-in by name, its arities, its generated name.

Owns namespaces and aliases, constants such as `Double/NaN`, names that are deliberately not
offered with what to use instead, and the catalogue that introspection and `docs/lisp.md` read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from holdfast.lang import lib_functions, lib_maps, table
from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import lookup
from holdfast.lang.lib_control import destructured
from holdfast.lang.lib_strings import reverse_text
from holdfast.lang.values import Symbol, as_key, equal, keyword, make_set, type_name, unkey

UNSHADOWABLE = frozenset({"if", "def", "do", "recur", "quote", "var"})
WHERE_OPERATORS = tuple(lib_functions.WHERE)
ARROW = keyword(">>")


@dataclass(frozen=True, slots=True)
class Row:
    """One built-in. `low` and `high` bound its arguments; `high` None is no bound."""

    name: str
    low: int
    high: int | None
    fn: Callable[..., Any]
    cost: str
    group: str
    usage: str
    doc: str
    example: str
    value: str
    helper: str

    def wrong_arity(self, count: int) -> str:
        """What is wrong with so many arguments; empty when nothing is."""
        if count >= self.low and (self.high is None or count <= self.high):
            return ""
        noun = "argument" if self.high == 1 else "arguments"
        return f"{self.name} takes {self.arity()} {noun}, got {count}"

    def arity(self) -> str:
        if self.high is None:
            return f"at least {self.low}"
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Constant:
    name: str
    value: Value


def _arities(text: str) -> tuple[int, int | None]:
    if text.endswith("+"):
        return int(text[:-1]), None
    low, _, high = text.partition("-")
    return int(low), int(high or low)


# --- parts that only the analyser's output calls -------------------------------------------------


def _item(items: tuple[Value, ...], index: int) -> Value:
    return items[index] if index < len(items) else None


def _rest(items: tuple[Value, ...], index: int) -> Value:
    return items[index:] or None


def _kwargs(items: Value) -> Value:
    """Rest arguments taken apart as a map: pairs, or one map at the end."""
    if items is None:
        return {}
    if len(items) % 2 and type(items[-1]) is dict:
        return {**lib_maps.make_map(*items[:-1]), **items[-1]}
    if len(items) % 2:
        raise LangError("destructure_error", "keyword arguments come in pairs")
    return lib_maps.make_map(*items)


def _associative(value: Value) -> Value:
    """The source of a pattern with keys of its own, which may be positions: `{a 0}`."""
    return value if isinstance(value, tuple) else _map_source(value)


def _map_source(value: Value) -> Value:
    if value is None or type(value) is dict:
        return value
    raise LangError("destructure_error", f"a map pattern cannot take apart a {type_name(value)}")


def _case(value: Value, keys: frozenset[Any]) -> bool:
    if as_key(value) in keys:
        return True
    if type(value) is float or (type(value) is int and not isinstance(value, bool)):
        return any(equal(value, unkey(key)) for key in keys)
    return False


_HIDDEN: tuple[table.RawRow, ...] = (
    ("%items", "1", destructured, "1", "", "", "", ""),
    ("%item", "2", _item, "1", "", "", "", ""),
    ("%rest", "2", _rest, "n", "", "", "", ""),
    ("%kwargs", "1", _kwargs, "n", "", "", "", ""),
    ("%map", "1", _map_source, "1", "", "", "", ""),
    ("%associative", "1", _associative, "1", "", "", "", ""),
    ("%lookup", "2-3", lookup, "1", "", "", "", ""),
    ("%case", "2", _case, "1", "", "", "", ""),
    ("%reverse-text", "1", reverse_text, "n", "", "", "", ""),
    ("%where", "1-3", lib_functions.where, "1", "", "", "", ""),
)


def _build() -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for group, raw_rows in (*table.GROUPS.items(), ("hidden", _HIDDEN)):
        for name, arities, fn, cost, params, doc, example, value in raw_rows:
            low, high = _arities(arities)
            helper = cost.removeprefix("host ") if cost.startswith("host ") else ""
            assert name not in rows, name
            if not hasattr(fn, "lisp_name"):  # of several names the first wins
                fn.lisp_name = name  # what printing it shows
                fn.__qualname__ = name  # what Python calls it where it refuses arguments
            usage = f"({name} {params})" if params else f"({name})"
            rows[name] = Row(
                name, low, high, fn, "host" if helper else cost, group, usage, doc, example, value,
                helper,
            )  # fmt: skip
    return rows


ROWS: dict[str, Row] = _build()
_PYTHON_NAMES = {name: f"b{index}" for index, name in enumerate(ROWS)}
_BOOLEAN = frozenset(
    {"=", "not=", "==", "<", "<=", ">", ">=", "not", "boolean", "%case", "bit-test"}
    | {name for name in ROWS if name.endswith("?")}
)

CONSTANTS: dict[str, Value] = {
    "Double/POSITIVE_INFINITY": math.inf,
    "Double/NEGATIVE_INFINITY": -math.inf,
    "Double/NaN": math.nan,
    "POSITIVE_INFINITY": math.inf,
    "NEGATIVE_INFINITY": -math.inf,
    "NaN": math.nan,
    "Double/MAX_VALUE": 1.7976931348623157e308,
    "Double/MIN_VALUE": 5e-324,
    "Integer/MAX_VALUE": 2**31 - 1,
    "Integer/MIN_VALUE": -(2**31),
    "Long/MAX_VALUE": 2**63 - 1,
    "Long/MIN_VALUE": -(2**63),
    "Math/PI": math.pi,
    "Math/E": math.e,
}

_CORE = frozenset(
    {"arithmetic", "comparison", "predicates", "sequences", "maps", "functions", "control"}
)
NAMESPACES: dict[str, frozenset[str]] = {
    "clojure.core": _CORE | {"string", "regex"},
    "core": _CORE | {"string", "regex"},
    "clojure.string": frozenset({"string", "regex"}),
    "str": frozenset({"string", "regex"}),
    "string": frozenset({"string", "regex"}),
    "clojure.set": frozenset({"set"}),
    "set": frozenset({"set"}),
    "clojure.walk": frozenset({"walk"}),
    "walk": frozenset({"walk"}),
    "regex": frozenset({"regex"}),
    "json": frozenset({"json"}),
}
_STRING_ALSO = frozenset({"reverse", "split", "count", "empty?"})
_CLASSES = (
    "Math", "System", "Double", "Integer", "Long", "Float", "Boolean", "LocalDate", "Instant",
    "Duration",
)  # fmt: skip

NOT_OFFERED: dict[str, str] = {
    "atom": "values never change: use let, loop or reduce",
    "swap!": "values never change: use reduce to carry state",
    "reset!": "values never change: use reduce to carry state",
    "deref": "there is nothing to dereference",
    "ref": "values never change",
    "agent": "values never change",
    "try": "errors end the program: check first, or use signal values such as nil",
    "catch": "errors end the program",
    "throw": "use (fail reason)",
    "defmacro": "there are no macros: use defn",
    "eval": "programs cannot make programs",
    "lazy-seq": "everything is eager: use range, map or loop",
    "iterate": "everything is eager: use loop or reduce",
    "repeatedly": "use (map (fn [_] …) (range n))",
    "cycle": "everything is eager: use mod with an index",
    "transduce": "there are no transducers: use ->> with map, filter and reduce",
    "defprotocol": "there are no protocols: use maps and functions",
    "defrecord": "use maps",
    "deftype": "use maps",
    "defmulti": "use case or cond",
    "defmethod": "use case or cond",
    "require": "everything offered is there already",
    "ns": "there are no user namespaces; everything offered is there already",
    "import": "only the listed Java names exist",
    "slurp": "there is no file access: use a tool",
    "spit": "there is no file access: use a tool",
    "while": "use loop and recur",
    "dotimes": "use (doseq [i (range n)] …)",
    "call": "tools are called as (tool/name {…})",
    "read-string": "use json/parse-string",
    "print": "use println",
    "rand": "programs are deterministic",
    "rand-int": "programs are deterministic",
    "shuffle": "programs are deterministic",
    "data": "inputs are read one by one as data/name",
}
REFUSED_FORMS = (
    "try", "throw", "defmacro", "eval", "lazy-seq", "defprotocol", "defrecord", "deftype",
    "defmulti", "defmethod", "require", "ns", "import", "while", "dotimes",
)  # fmt: skip


def resolve(name: str) -> Row | Constant | None:
    """The built-in or constant of a name, with its namespace or class alias taken off."""
    found = ROWS.get(name)
    if found is not None:
        return found if found.group != "hidden" else None
    if name == "Date.":
        return ROWS["java.util.Date."]
    if name in CONSTANTS:
        return Constant(name, CONSTANTS[name])
    space, slash, rest = name.rpartition("/")
    if not slash or not rest:
        return None
    short = space.removeprefix("java.time.").removeprefix("java.lang.").removeprefix("java.util.")
    if short in _CLASSES and short != space:
        return resolve(f"{short}/{rest}")
    groups = NAMESPACES.get(space)
    if groups is None:
        return None
    found = ROWS.get(rest) or ROWS.get(f"{space}/{rest}")
    if found is None:
        return None
    if space in ("clojure.string", "str", "string") and rest == "reverse":
        return ROWS["%reverse-text"]
    if found.group in groups or (space == "set" and found.name in ("set", "union")):
        return found
    if groups == NAMESPACES["str"] and (found.group in _CORE and rest in _STRING_ALSO):
        return found
    if space in ("clojure.core", "core") or (space.endswith("set") and rest == "set"):
        return found
    return None


def namespace_problem(name: str) -> str:
    """What is wrong with a qualified or dotted name; empty for a plain one."""
    if name.startswith(".") and len(name) > 1:
        methods = sorted(each for each in ROWS if each.startswith("."))
        return f"there is no method {name}; there are {' '.join(methods)}"
    space, slash, rest = name.rpartition("/")
    if not slash or not space or not rest:
        return ""
    short = space.removeprefix("java.time.").removeprefix("java.lang.")
    if short in _CLASSES or space == "budget":
        have = [each for each in (*ROWS, *CONSTANTS) if each.startswith(f"{short}/")]
        return f"{short} has no {rest}; it has {' '.join(sorted(have))}"
    if space in NAMESPACES:
        have = [row.name for row in ROWS.values() if row.group in NAMESPACES[space]]
        return f"{space} has no {rest}; it has {' '.join(sorted(have))}"
    spaces = sorted({*NAMESPACES, *_CLASSES, "data", "tool", "budget"})
    return f"{name}: there is no namespace {space}; there are {' '.join(spaces)}"


@lru_cache(maxsize=1)
def names() -> tuple[str, ...]:
    return tuple(name for name in ROWS if not name.startswith("%"))


def python_name(name: str) -> str:
    return _PYTHON_NAMES[name]


def function_of(name: str) -> Callable[..., Any]:
    """The function of a row; carries its name in the language."""
    return ROWS[name].fn


def is_flat(name: str) -> bool:
    """Whether a call is constant work that calls no function back."""
    return ROWS[name].cost == "1"


def is_boolean(name: str) -> bool:
    return name in _BOOLEAN


def key_for(word: str, name: str) -> Value:
    """The key that `:keys`, `:strs` or `:syms` reads for a name."""
    return keyword(name) if word == "keys" else Symbol(name) if word == "syms" else name


def collect(kind: Literal["vector", "map", "set"] | str, values: Sequence[Value]) -> Value:
    """A constant collection; made outside a run, so nothing is charged."""
    if kind == "vector":
        return tuple(values)
    if kind == "set":
        return make_set(values)
    return {as_key(key): value for key, value in zip(values[::2], values[1::2], strict=True)}


def catalogue() -> dict[str, dict[str, Any]]:
    """Every built-in as plain data, for `doc` and its kin."""
    found = {}
    for row in ROWS.values():
        if row.group != "hidden":
            found[row.name] = about(
                row.name,
                row.group,
                row.doc,
                aliases=tuple(space for space, groups in NAMESPACES.items() if row.group in groups),
                usage=row.usage,
                cost=row.cost,
                example=row.example,
                value=row.value,
            )
    return found


def about(name: str, group: str, doc: str, **known: Any) -> dict[str, Any]:
    """What `doc` and its kin say of one name; what is not known is empty."""
    blank = {"aliases": (), "usage": "", "cost": "", "example": "", "value": ""}
    return {"name": name, "group": group, "doc": doc, **blank, **known}
