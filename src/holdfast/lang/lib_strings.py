"""Strings: building, cutting, searching, replacing, names.

Positions count graphemes (`values.graphemes`); the Java methods in `lib_java` count UTF-16 units.
Out-of-range `subs` answers what there is, and "" for a negative start, so that the -1 of `.indexOf`
cannot silently give the whole string. Whitespace is Java's: a no-break space is not white.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.lang.api import LangError, Value
from holdfast.lang.callables import as_function
from holdfast.lang.lib_colls import replace_items
from holdfast.lang.lib_seqs import count_arg, made
from holdfast.lang.meter import ACTIVE, refuse_size, text_size
from holdfast.lang.printer import display, readable
from holdfast.lang.regexes import groups, input_of, regex_of, split_text
from holdfast.lang.values import Keyword, Regex, Symbol, expected, graphemes, keyword, seq_items

WHITE = " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008"
WHITE += "\u2009\u200a\u2028\u2029\u205f\u3000"
_SYMBOL_NAME = re.compile(
    r"(?!nil\Z|true\Z|false\Z|['#:]|[+-]?[0-9])[\w\-?!*+<>=$|'#%&./]{1,255}\Z"
)
_KEYWORD_NAME = re.compile(r"[\w\-?!*+<>=$|'#]+\Z")


def text_of(name: str, value: Value) -> str:
    """A string; numbers, keywords and booleans are taken as their text, as Clojure does."""
    if type(value) is str:
        return value
    if type(value) in (int, float, bool, Keyword, Symbol):
        return display(value)
    raise expected(name, "a string", value)


def strict_text(name: str, value: Value) -> str:
    if type(value) is not str:
        raise expected(name, "a string", value)
    return value


def str_(*args: Value) -> str:
    if len(args) == 1:
        return display(args[0])
    parts = list(map(display, args))
    text_size(sum(map(len, parts)))
    return "".join(parts)


def pr_str(*args: Value) -> str:
    return " ".join(map(readable, args))


_NOTHING = object()


def subs(text: Value, start: Value, end: Value = _NOTHING) -> str:
    whole = strict_text("subs", text)
    low = count_arg("subs", start)
    if low < 0:
        return ""
    if whole.isascii():
        high = len(whole) if end is _NOTHING else count_arg("subs", end)
        return whole[low : max(high, low)]
    chars = graphemes(whole)
    high = len(chars) if end is _NOTHING else count_arg("subs", end)
    return "".join(chars[low : max(high, low)])


def join(first: Value, *rest: Value) -> str:
    separator = display(first) if rest else ""
    parts = [display(item) for item in seq_items(rest[0] if rest else first)]
    text_size(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def split(text: Value, separator: Value, limit: Value = 0) -> tuple[str, ...]:
    """By a regex, or by a literal string; an empty separator gives the characters."""
    whole = strict_text("split", text)
    count = count_arg("split", limit)
    if type(separator) is str:
        if not separator:
            return made(graphemes(whole))
        pattern = Regex(separator, re.compile(re.escape(separator)))
        return split_text(pattern, whole, count)
    return split_text(regex_of(separator, "split"), input_of(whole, "split"), count)


def split_lines(text: Value) -> tuple[str, ...]:
    whole = strict_text("split-lines", text)
    return split_text(Regex("\r?\n", re.compile("\r?\n")), whole, 0)


def _changing(name: str, change: Callable[[str], str]) -> Callable[[Value], str]:
    return lambda text: change(text_of(name, text))


trim = _changing("trim", lambda text: text.strip(WHITE))
triml = _changing("triml", lambda text: text.lstrip(WHITE))
trimr = _changing("trimr", lambda text: text.rstrip(WHITE))
trim_newline = _changing("trim-newline", lambda text: text.rstrip("\r\n"))
upper, lower = _changing("upper-case", str.upper), _changing("lower-case", str.lower)
capitalize = _changing("capitalize", lambda text: text[:1].upper() + text[1:].lower())


def is_blank(text: Value) -> bool:
    return text is None or not strict_text("blank?", text).strip(WHITE)


def reverse_text(text: Value) -> str:
    return "".join(reversed(graphemes(strict_text("reverse", text))))


def starts_with(text: Value, prefix: Value) -> bool:
    return text_of("starts-with?", text).startswith(strict_text("starts-with?", prefix))


def ends_with(text: Value, suffix: Value) -> bool:
    return text_of("ends-with?", text).endswith(strict_text("ends-with?", suffix))


def includes(text: Value, part: Value) -> bool:
    return strict_text("includes?", part) in text_of("includes?", text)


def index_of(text: Value, part: Value, start: Value = 0) -> int | None:
    whole, wanted = text_of("index-of", text), strict_text("index-of", part)
    low = max(count_arg("index-of", start), 0)
    if whole.isascii():
        found = whole.find(wanted, min(low, len(whole)))
        return found if found >= 0 else None
    chars, sought = graphemes(whole), graphemes(wanted)
    return _find(chars, sought, range(low, len(chars) - len(sought) + 1))


def last_index_of(text: Value, part: Value, start: Value = None) -> int | None:
    whole, wanted = text_of("last-index-of", text), strict_text("last-index-of", part)
    if whole.isascii():
        last = len(whole) if start is None else count_arg("last-index-of", start)
        found = whole.rfind(wanted, 0, last + len(wanted)) if last >= 0 else -1
        return found if found >= 0 else None
    chars, sought = graphemes(whole), graphemes(wanted)
    high = len(chars) - len(sought)
    if start is not None:
        high = min(high, count_arg("last-index-of", start))
    return _find(chars, sought, range(high, -1, -1))


def _find(chars: list[str], sought: list[str], places: range) -> int | None:
    size = len(sought)
    return next((at for at in places if chars[at : at + size] == sought), None)


# --- replacing -----------------------------------------------------------------------------------


def replace(first: Value, second: Value, *rest: Value) -> Value:
    """`(replace s match with)` on strings, `(replace table coll)` on collections."""
    if not rest:
        return replace_items(first, second)
    return _replace("replace", first, second, rest[0], 0)


def replace_first(text: Value, match: Value, replacement: Value) -> str:
    return _replace("replace-first", text, match, replacement, 1)


def _replace(name: str, text: Value, match: Value, replacement: Value, count: int) -> str:
    whole = text_of(name, text)
    if type(match) is str:
        new = strict_text(name, replacement)
        hits = whole.count(match) if match else len(whole) + 1
        text_size(len(whole) + hits * len(new))
        return whole.replace(match, new, count or -1)
    pattern = regex_of(match, name)
    make = _replacer(name, pattern, replacement)
    found = pattern.compiled.sub(make, input_of(whole, name), count=count)
    text_size(len(found))
    return found


def _replacer(name: str, pattern: Regex, replacement: Value) -> Callable[[re.Match[str]], str]:
    """What takes the place of each match; refused as soon as all of them are too much text."""
    if type(replacement) is str:
        parts = _template(name, replacement, pattern.compiled)

        def make(found: re.Match[str]) -> str:
            return "".join(
                part if type(part) is str else (found.group(part) or "") for part in parts
            )

    else:
        call = as_function(replacement)

        def make(found: re.Match[str]) -> str:
            return text_of(name, call(groups(found)))

    made = 0
    limit = ACTIVE.get().limits.string_chars

    def bounded(found: re.Match[str]) -> str:
        nonlocal made
        text = make(found)
        made += len(text)
        if made > limit:
            refuse_size("string_chars", f"{name} makes a text that")
        return text

    return bounded


_REFERENCE = re.compile(
    r"\\(?P<plain>.)|\$(?P<number>[0-9]{1,9})|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|(?P<text>[^\\$]+)|.",
    re.DOTALL,
)


def _template(name: str, text: str, pattern: re.Pattern[str]) -> list[str | int]:
    """Java's replacement syntax: $1 and ${name} are groups, a backslash takes the next character.

    Of the digits after $ as many count as make the number of a group.
    """
    parts: list[str | int] = []
    for found in _REFERENCE.finditer(text):
        if found["plain"] or found["text"]:
            parts.append(found["plain"] or found["text"])
            continue
        number, digits = pattern.groupindex.get(found["name"] or "", -1), found["number"] or ""
        for length in range(len(digits), 0, -1):
            if length == 1 or int(digits[:length]) <= pattern.groups:
                number, digits = int(digits[:length]), digits[length:]
                break
        if not 0 <= number <= pattern.groups:
            raise LangError(
                "type_error",
                f"{name}: $ must name a group of the pattern, such as $1",
                hint="write \\\\$ for a dollar sign",
            )
        parts += [number, digits]
    return parts


# --- names ---------------------------------------------------------------------------------------


def name_(value: Value) -> str:
    if type(value) is str:
        return value
    if type(value) is Keyword or type(value) is Symbol:
        return str(value.name).rpartition("/")[2] or str(value.name)
    raise expected("name", "a keyword or a string", value)


def keyword_(value: Value, *more: Value) -> Keyword | None:
    """A keyword of a string or symbol; nil for other values; refuses names no source can spell."""
    if type(value) is Keyword and not more:
        return value
    text = value.name if type(value) is Symbol else value
    if more:
        raise LangError("type_error", "keyword: namespaces are not supported")
    if type(text) is not str:
        return None
    text = text.removeprefix(":") if len(text) > 1 else text
    if not _KEYWORD_NAME.match(text) or len(text) > 255:
        raise LangError(
            "type_error",
            f"{text[:40]!r} is no keyword name",
            hint="use letters, digits and - _ ? ! * + < > =",
        )
    return keyword(text)


def symbol_(value: Value) -> Symbol:
    if type(value) is Symbol:
        return value
    if type(value) in (str, Keyword):
        name = value if type(value) is str else value.name
        if not _SYMBOL_NAME.match(name):
            raise LangError("type_error", f"{name[:40]!r} is no name that can be read again")
        return Symbol(name)
    raise expected("symbol", "a string", value)


def char_(value: Value) -> str:
    if type(value) is str and len(value) == 1:
        return value
    if type(value) is int and 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000:
        return chr(value)
    raise LangError("type_error", "char expects the code of a character")
