"""The language's page, made from its tables: forms, built-ins, limits, what is not offered.

Owns the text of `docs/lisp.md`; `holdfast lisp manual` writes it and a test compares the two.
"""

from __future__ import annotations

from dataclasses import fields

from holdfast.lang import library
from holdfast.lang.api import Limits
from holdfast.lang.forms import FORMS

_TITLES = {
    "arithmetic": "Arithmetic and bits",
    "comparison": "Comparison",
    "predicates": "What a value is",
    "sequences": "Sequences and collections",
    "maps": "Maps and sets",
    "set": "Set algebra (clojure.set)",
    "functions": "Functions that make functions",
    "string": "Strings (clojure.string)",
    "regex": "Regular expressions",
    "walk": "Tree walks (clojure.walk)",
    "json": "JSON",
    "math": "Math",
    "java": "Java names",
    "control": "Acting and asking",
}

_INTRODUCTION = """\
# PTC-Lisp

A small, eager, sandboxed subset of Clojure in which models write programs. This page is generated
by `holdfast lisp manual`; its examples run as tests.

## In one minute

```clojure
(def rows (tool/fetch {:since "2026-01-01"}))        ; tools are called with one map
(->> rows
     (filter (where :amount > 100))                  ; a predicate on a field
     (group-by :region)
     (map (fn [[region group]] [region (sum-by :amount group)]))
     (into {}))
```

- Inputs are `data/name`, tools `tool/name`, earlier results `*1 *2 *3`; definitions stay for later
  programs. The last expression is the value; `(return x)` and `(fail x)` end the program at once.
- Values: nil, true, false, integers of any size, floats, strings, keywords, vectors, maps, sets,
  functions. Characters are strings of one character. Every sequence is a vector.
- Keys are looked up flexibly: `:user-id` finds `:user-id`, `"user-id"`, `:user_id`, `"user_id"`.
  Writing is exact.
- `(task "id" expr)` and every tool call are recorded the moment they complete. Run again after a
  crash, nothing that is recorded is called twice.

## Where it differs from Clojure

- `/` answers a float, integers never overflow, `=` ignores int/float: `(= 1 1.0)`.
- Maps and sets show in sorted order. Positional functions (`first`, `take`, `nth`, …) refuse them:
  take `seq`, `entries`, `keys` or `vals` first. `contains?` on a vector asks for the item.
- Out of range is nil or clamped (`nth`, `subs`, `subvec`, `pop`); parsers answer nil for what they
  cannot parse; numeric predicates are false for what is no number; `case` and `condp` without a
  match are nil. The Java methods (`.substring`, `Integer/parseInt`) raise, as in Java.
- Strings are counted in graphemes, by a stated approximation; Java methods count UTF-16 units.
- There are no lazy sequences, macros, atoms, exceptions, transducers, namespaces or file access.
"""

_REGEX_TIME = """\
Patterns and the text they read are bounded in size, and a repeat that holds another over the same
text is refused, because it can take exponential time. Repeats one after the other, as in `a*a*b`,
can still take time that grows with a power of the text. No meter counts inside Python's engine:
the clock of the outer wall (`wall_s`) ends such a match, with its process. `SandboxPool`, and with
it `holdfast lisp eval`, runs behind that wall; `lang.run.run` and `holdfast lisp repl` do not.
"""


def manual() -> str:
    """The whole page. Deterministic: the same tables give the same text."""
    parts = [_INTRODUCTION, "## Forms\n", _forms()]
    parts.append("## Built-ins\n")
    for group, title in _TITLES.items():
        parts += [f"### {title}\n", _group(group)]
    parts += ["## Not offered\n", _not_offered(), "## Limits\n", _limits()]
    return "\n".join(parts).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _forms() -> str:
    lines = ["| Form | What it does |", "|---|---|"]
    for name, (_, usage, doc) in FORMS.items():
        if name not in library.REFUSED_FORMS:
            lines.append(f"| `{_cell(usage)}` | {_cell(doc)} |")
    return "\n".join(lines) + "\n"


def _group(group: str) -> str:
    lines = ["| Call | What it does | Cost | Example |", "|---|---|---|---|"]
    for row in library.ROWS.values():
        if row.group == group:
            example = f"`{_cell(row.example)}` → `{_cell(row.value)}`" if row.example else ""
            lines.append(f"| `{_cell(row.usage)}` | {_cell(row.doc)} | {row.cost} | {example} |")
    return "\n".join(lines) + "\n"


def _not_offered() -> str:
    lines = ["| Name | Instead |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(hint)} |" for name, hint in sorted(library.NOT_OFFERED.items())]
    return "\n".join(lines) + "\n"


def _limits() -> str:
    lines = [
        "All limits are settings of the run; these are the defaults. An error names its limit.\n",
        _REGEX_TIME,
        "| Limit | Default |",
        "|---|---|",
    ]
    defaults = Limits()
    lines += [f"| `{each.name}` | {getattr(defaults, each.name):,} |" for each in fields(Limits)]
    return "\n".join(lines) + "\n"
