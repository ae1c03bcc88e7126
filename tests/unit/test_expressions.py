"""Expressions that every Python we run on understands alike."""

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]  # no public parser
from typing import Any

import holdfast
from holdfast.trace.formats import FORMATS

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB-AAKCAQEA\n-----END RSA PRIVATE KEY-----"


def takes_a_group_possessively(part: Any) -> bool:
    """Whether `(…)*+` stands in it. `(?>(…)*)` says the same and is understood: behind the other,
    Python before 3.11.5 goes on from where its last round failed (python/cpython#106052)."""
    if isinstance(part, (list, tuple, _parser.SubPattern)):
        for each in part:
            if isinstance(each, tuple) and len(each) == 2:
                what, found = each
                if what is _constants.POSSESSIVE_REPEAT and not _compiler._simple(found[2]):
                    return True
            if takes_a_group_possessively(each):
                return True
    return False


def expressions() -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    for row in FORMATS:
        yield f"format {row.reason}", re.compile(row.tail)
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}.{name}", value


def test_no_expression_takes_a_group_possessively() -> None:
    found = dict(expressions())
    assert len(found) > 80
    wrong = [
        name
        for name, each in found.items()
        if takes_a_group_possessively(_parser.parse(each.pattern, each.flags & ~re.UNICODE))
    ]
    assert wrong == []


def test_what_takes_a_group_possessively_would_be_seen() -> None:
    for text in (r"(?:ab|c)*+", r"x(?:(?:ab?c)?+|d)", r"(?P<n>(?:[^-]|-(?!-)){0,9}+)"):
        assert takes_a_group_possessively(_parser.parse(text)), text
    for text in (r"[ab]*+c?+", r"(?>(?:ab|c)*)", r"(?:ab|c)*"):
        assert not takes_a_group_possessively(_parser.parse(text)), text


def test_a_private_key_is_hidden_to_its_last_line() -> None:
    from holdfast.trace.redact import Redactor

    assert Redactor(guess=False).text(f"a\n{KEY}\nb") == "a\n[redacted:private_key]\nb"
