"""Regular expressions: compiling under limits and the `re-…` functions.

Java syntax is taken where `java_regex` can say it in Python's.
Python's engine backtracks without bound: patterns and inputs are bounded in size, and quantified
groups that contain quantifiers over overlapping text, the ones that take exponential time, are
refused. Repeats in a row (`a*a*b`, or `<(.*?)>.*?</`) take a power of the text at worst and nearly
nothing on most texts, so no shape of them is refused; where that does not end, the outer wall's
clock kills the process (`regex that backtracks without nesting` in `tests/lang/escapes`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import lru_cache, partial
from re import _constants as _op  # type: ignore[attr-defined]  # the only way to see nested quantifiers
from re import _parser  # type: ignore[attr-defined]  # as above
from typing import Any

from holdfast.lang.api import LangError, Limits, Value
from holdfast.lang.java_regex import in_python
from holdfast.lang.meter import ACTIVE, grow, spend
from holdfast.lang.values import Regex, expected


def compile_regex(source: str, limits: Limits) -> Regex:
    """A compiled pattern; refuses what is too long, malformed or sure to backtrack."""
    _check_length(source, limits)
    return Regex(source, _compiled(source))


def sent_regex(source: str, limits: Limits) -> Regex:
    """A pattern that came from outside, compiled where it is used: some take seconds to compile."""
    _check_length(source, limits)
    return Regex(source, partial(_compiled, source))


def _check_length(source: str, limits: Limits) -> None:
    if len(source.encode("utf-8", "replace")) > limits.regex_pattern_bytes:
        raise LangError(
            "type_error",
            f"a regex pattern is longer than {limits.regex_pattern_bytes} bytes "
            "(regex_pattern_bytes)",
        )


@lru_cache(maxsize=256)
def _compiled(source: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what may change its meaning is refused
            text = in_python(source)
            tree = _parser.parse(text)
            if _explodes(tree):
                raise LangError(
                    "type_error",
                    "a quantified group contains a quantifier: it could backtrack without end",
                    hint="write (?:a|b)+ without inner + or *, or make the inner one possessive",
                )
            return re.compile(text, re.ASCII)  # as in Java: \w, \d and \s know ASCII only
    except (re.error, ValueError, OverflowError, RecursionError, Warning) as error:
        raise LangError("type_error", f"not a regular expression: {error}") from None


def _explodes(tree: Any) -> bool:
    """Whether a repeat of many rounds holds a repeat that can end in more than one place.

    `(a+)+`, `(a*b?)*` and `(.*,)+` do. `(a+,)+` does not: each round must take the separator, which
    the inner repeat cannot take.
    """
    return any(
        op in _REPEATS and args[1] > ROUNDS_MAX and _ambiguous(args[2]) for op, args in _nodes(tree)
    )


ROUNDS_MAX = 8  # more rounds than this count as many
_REPEATS = (_op.MAX_REPEAT, _op.MIN_REPEAT)


def _nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    for op, args in tree:
        yield op, args
        for part in _parts(op, args):
            yield from _nodes(part)


def _parts(op: Any, args: Any) -> list[Any]:
    if op in (*_REPEATS, _op.POSSESSIVE_REPEAT):
        return [args[2]]
    if op is _op.SUBPATTERN:
        return [args[3]]
    if op is _op.BRANCH:
        return list(args[1])
    if op in (_op.ASSERT, _op.ASSERT_NOT):
        return [args[1]]
    if op is _op.ATOMIC_GROUP:
        return [args]
    if op is _op.GROUPREF_EXISTS:
        return [part for part in args[1:] if part is not None]
    return []


def _ambiguous(body: Any) -> bool:
    """A repeated body whose own repeat is not fenced off by something that must match."""
    items = [(op, args) for op, args in body if op is not _op.AT]
    if len(items) == 1:
        op, args = items[0]
        if op is _op.SUBPATTERN:
            return _ambiguous(args[3])
        if op is _op.BRANCH:
            return any(_ambiguous(part) for part in args[1]) or _overlaps(args[1])
        return op in _REPEATS and args[1] > ROUNDS_MAX
    if any(op is _op.BRANCH and _overlaps(args[1]) for op, args in items):
        return True
    taken = [_taken(args[2]) for op, args in items if op in _REPEATS and args[1] > 1]
    fences = [_taken([item]) for item in items if item[0] in _ONE]
    inside = frozenset().union(*taken)
    return bool(taken) and not any(fence and not fence & inside for fence in fences)


_OTHER = 128  # stands for every character beyond ASCII
_ANY = frozenset(range(_OTHER + 1))
_ONE = (_op.LITERAL, _op.NOT_LITERAL, _op.IN, _op.CATEGORY)
_CLASSES = {
    _op.CATEGORY_DIGIT: r"\d",
    _op.CATEGORY_NOT_DIGIT: r"\D",
    _op.CATEGORY_SPACE: r"\s",
    _op.CATEGORY_NOT_SPACE: r"\S",
    _op.CATEGORY_WORD: r"\w",
    _op.CATEGORY_NOT_WORD: r"\W",
}


def _taken(nodes: Any) -> frozenset[int]:
    """The characters that some part of a pattern can take: ASCII codes and `_OTHER`."""
    found: set[int] = set()
    for op, args in _nodes(nodes):
        if op is _op.LITERAL:
            found.add(min(args, _OTHER))
        elif op is _op.NOT_LITERAL:
            found |= _ANY - {args}
        elif op is _op.ANY:
            found |= _ANY - {ord("\n")}
        elif op is _op.IN:
            inside = frozenset().union(*(_member(*each) for each in args))
            found |= _ANY - inside if args[0][0] is _op.NEGATE else inside
        elif op is _op.CATEGORY:
            found |= _member(op, args)
    return frozenset(found)


def _member(op: Any, args: Any) -> frozenset[int]:
    """What one entry of a character class stands for."""
    if op is _op.LITERAL:
        return frozenset({min(args, _OTHER)})
    if op is _op.RANGE:
        return frozenset(range(min(args[0], _OTHER), min(args[1], _OTHER) + 1))
    if op is _op.CATEGORY:
        shown = re.compile(_CLASSES[args], re.ASCII)
        return frozenset(code for code in _ANY if shown.fullmatch(chr(code)))
    return frozenset()


def _overlaps(branches: Any) -> bool:
    """Two alternatives that start with the same literal, as in `(a|a)*` or `(a|ab)*`."""
    heads = [str(branch[0]) if len(branch) else "" for branch in branches]
    return len(set(heads)) < len(heads)


def regex_of(value: Value, name: str) -> Regex:
    if type(value) is Regex:
        return value
    if type(value) is str:
        return compile_regex(value, ACTIVE.get().limits)
    raise expected(name, "a regex", value)


def input_of(value: Value, name: str) -> str:
    if type(value) is not str:
        raise expected(name, "a string", value)
    limit = ACTIVE.get().limits.regex_input_bytes
    if len(value) > limit or (not value.isascii() and len(value.encode()) > limit):
        raise LangError(
            "memory_exceeded", f"a regex input is longer than {limit} bytes (regex_input_bytes)"
        )
    spend(1 + len(value) // 8)
    return value


def groups(found: re.Match[str]) -> Value:
    """The match, or a vector of the match and its groups; groups that took no part are nil."""
    return (found.group(), *found.groups()) if found.re.groups else found.group()


def re_pattern(source: Value) -> Regex:
    return regex_of(source, "re-pattern")


def re_find(pattern: Value, text: Value) -> Value:
    found = regex_of(pattern, "re-find").compiled.search(input_of(text, "re-find"))
    return found and groups(found)


def re_matches(pattern: Value, text: Value) -> Value:
    found = regex_of(pattern, "re-matches").compiled.fullmatch(input_of(text, "re-matches"))
    return found and groups(found)


def re_seq(pattern: Value, text: Value) -> Value:
    compiled = regex_of(pattern, "re-seq").compiled
    found = tuple(groups(each) for each in compiled.finditer(input_of(text, "re-seq")))
    grow(len(found))
    return found or None


def re_split(pattern: Value, text: Value) -> Value:
    return split_text(regex_of(pattern, "re-split"), input_of(text, "re-split"), 0)


def split_text(pattern: Regex, text: str, limit: int) -> tuple[str, ...]:
    """Java's `split`: no empty leading match, trailing empties dropped unless a limit is given."""
    parts: list[str] = []
    at = 0
    for found in pattern.compiled.finditer(text):
        if limit > 0 and len(parts) >= limit - 1:
            break
        if found.end() == 0 or (found.start() == found.end() == len(text)):
            continue
        parts.append(text[at : found.start()])
        at = found.end()
    if not parts:
        return (text,)
    parts.append(text[at:])
    if limit == 0:
        while parts and not parts[-1]:
            parts.pop()
    grow(len(parts))
    return tuple(parts)


def extract(pattern: Value, text: Value, group: Value = 1) -> Value:
    """A capture group of the first match; 0 is the whole match, and the default without groups."""
    compiled = regex_of(pattern, "extract").compiled
    if text is None:
        return None
    found = compiled.search(input_of(text, "extract"))
    if found is None or type(group) is not int or group < 0:
        return None
    if group > compiled.groups:
        return found.group() if compiled.groups == 0 and group == 1 else None
    return found.group(group)


def extract_int(pattern: Value, text: Value, group: Value = 1, default: Value = None) -> Value:
    found = extract(pattern, text, group)
    match = re.fullmatch(r"\s*([+-]?[0-9]{1,1000})\s*", found or "", re.ASCII)
    return int(match[1]) if match else default
