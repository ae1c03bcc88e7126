"""The rules of an INDEX.md that a machine can check, and what an output breaks of them.

They stand in a fenced block named `rules`, one a line: `must contain: TEXT`, `must not contain:
TEXT`, `words at most: N`. Texts are compared as they are, never as patterns. A line that is none of
these is a broken rule of its own: a rule that is silently ignored would look kept.
"""

from __future__ import annotations

import re

DIGITS_MAX = 9
_BLOCK = re.compile(
    r"^ {0,3}```rules[ \t\r]*\n(.*?)(?:^ {0,3}```[ \t\r]*$|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


def rules_of(page: str) -> str:
    """The rule lines of a page, empty when it has none; a block that nothing closes counts."""
    lines = [line.strip() for block in _BLOCK.findall(page) for line in block.splitlines()]
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def broken(rules: str, output: str) -> list[str]:
    """A sentence for each rule that the output breaks, in the order of the rules."""
    return [said for rule in rules.splitlines() if (said := _breach(rule, output))]


def _breach(rule: str, output: str) -> str:
    name, _, value = (part.strip() for part in rule.partition(":"))
    words = len(output.split())
    match name:
        case "must contain" if value:
            return "" if value in output else f"the output must contain {value!r}"
        case "must not contain" if value:
            return f"the output must not contain {value!r}" if value in output else ""
        case "words at most" if value.isdecimal() and len(value) <= DIGITS_MAX:
            over = words > int(value)
            return f"the output has {words} words, at most {value} are allowed" if over else ""
        case _:
            return f"INDEX.md has a rule that cannot be checked: {rule!r}"
