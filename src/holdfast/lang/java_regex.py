"""Java's regular expressions in the spelling of Python's `re`.

Owns the translation, in one pass over the pattern: classes by name, quotation, named groups, ends
of input, line breaks. Refuses with `re.error` what Python has no counterpart for, instead of
letting it mean something else there: a class inside a class, an intersection, foreign flags.
Compiling, limits and the functions that match are `regexes`.

The result is meant for `re.ASCII`: as in Java, `\\w`, `\\d`, `\\s` and `(?i)` know ASCII only, and
`\\p{L}`, `\\p{Lu}`, `\\p{Ll}`, `\\p{N}` and `\\p{Nd}` know the planes of Unicode that are in use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import NoReturn

_CODE_POINTS = 0x32000  # no letter or number has been given a place beyond
_BREAKS = r"\n\x0b\f\r\x85\u2028\u2029"
_BLANKS = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"

_ASCII: Mapping[str, str] = {
    "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "Upper": "A-Z", "Lower": "a-z",
    "Punct": r"!-/:-@\[-`{-~", "Space": r"\s", "Blank": r" \t", "XDigit": "0-9a-fA-F",
    "Cntrl": r"\x00-\x1f\x7f", "Graph": "!-~", "Print": " -~", "ASCII": r"\x00-\x7f",
}  # fmt: skip
_UNICODE: Mapping[str, Callable[[str], bool]] = {
    "L": str.isalpha, "IsAlphabetic": str.isalpha, "IsL": str.isalpha, "IsLetter": str.isalpha,
    "Lu": str.isupper, "IsLu": str.isupper, "IsUppercase": str.isupper,
    "Ll": str.islower, "IsLl": str.islower, "IsLowercase": str.islower,
    "N": str.isnumeric, "IsN": str.isnumeric, "Nd": str.isdecimal, "IsDigit": str.isdecimal,
}  # fmt: skip

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|\Z)"
    r"|\\(?P<not>[pP])(?:\{(?P<name>\w+)\}|(?P<letter>[A-Z]))"
    r"|\\x\{(?P<code>[0-9a-fA-F]{1,6})\}|\\0(?P<octal>[0-3]?[0-7]{1,2})|\\c(?P<control>.)"
    r"|\\k<(?P<again>\w+)>"
    r"|\\(?P<escaped>.)"
    r"|(?P<open>\[\^?)|(?P<close>\])|(?P<and>&&)"
    r"|\(\?(?:(?P<flags>[a-zA-Z-]+)[:)]|<(?P<group>\w+)>|(?P<foreign>P))"
    r"|(?P<plain>.)",
    re.DOTALL,
)
# Outside of a class; inside of one only those of _SETS, without their brackets.
_ESCAPES: Mapping[str, str] = {
    "z": r"\Z",
    "Z": rf"(?=(?:\r\n|[{_BREAKS}])?\Z)",
    "R": rf"(?:\r\n|[{_BREAKS}])",
    "e": r"\x1b",
}
_SETS: Mapping[str, str] = {"h": _BLANKS, "v": _BREAKS}


def in_python(source: str) -> str:
    """The pattern for `re.compile` with `re.ASCII`."""
    out: list[str] = []
    opened = -1  # where the class began that the scan is in
    for token in _TOKEN.finditer(source):
        kind, text = token.lastgroup or "", token[0]
        inside = opened >= 0
        if kind == "close" and inside and opened != token.start():
            opened = -1
            out.append("]")
        elif kind == "open" and not inside:
            opened = token.end()
            out.append(text)
        elif inside and kind in ("open", "and"):
            _refuse("a class inside a class, or &&, is not supported", source, token.start())
        elif inside and kind in ("flags", "group", "foreign"):
            out.append(text)
        elif kind in ("close", "and", "plain"):
            out.append(f"\\{text}" if kind == "close" else text)
        else:
            out.append(_translated(kind, token, inside, source))
    return "".join(out)


def _translated(kind: str, token: re.Match[str], inside: bool, source: str) -> str:
    text = token[0]
    match kind:
        case "quoted":
            return re.escape(token["quoted"])
        case "name" | "letter":
            return _class(token["name"] or token["letter"], token["not"] == "P", inside, source)
        case "code":
            return _character(int(token["code"], 16), source)
        case "octal":
            return _character(int(token["octal"], 8), source)
        case "control":
            return _character(ord(token["control"]) ^ 64, source)
        case "again":
            return f"(?P={token['again']})"
        case "group":
            return f"(?P<{token['group']}>"
        case "flags":
            if set(token["flags"]) - set("imsx-"):
                _refuse(f"the flags {text} are not supported", source, token.start())
            return text
        case "foreign":
            _refuse("(?P is not Java's: write (?<name>…)", source, token.start())
        case "escaped":
            return _escape(token["escaped"], inside, source)
    return text


def _escape(letter: str, inside: bool, source: str) -> str:
    if letter in _SETS:
        return _SETS[letter] if inside else f"[{_SETS[letter]}]"
    if letter.lower() in _SETS and not inside:
        return f"[^{_SETS[letter.lower()]}]"
    if letter in _ESCAPES and not inside:
        return _ESCAPES[letter]
    if letter == "U" or letter == "N":
        _refuse(f"bad escape \\{letter}", source, 0)
    return f"\\{letter}"


def _class(name: str, negative: bool, inside: bool, source: str) -> str:
    if name in _ASCII:
        ranges = _ASCII[name]
    elif name in _UNICODE:
        ranges = _ranges(_UNICODE[name])
    else:
        _refuse(f"the class \\p{{{name}}} is not supported", source, 0)
    if not inside:
        return f"[^{ranges}]" if negative else f"[{ranges}]"
    if negative:
        _refuse(f"\\P{{{name}}} inside a class is not supported", source, 0)
    return ranges


def _character(code: int, source: str) -> str:
    if code > 0x10FFFF:
        _refuse(f"there is no character {code:x}", source, 0)
    return f"\\U{code:08x}"


@cache
def _ranges(belongs: Callable[[str], bool]) -> str:
    """The characters for which `belongs` holds, as ranges of a class: some milliseconds, once."""
    edges = [0, *(belongs(chr(code)) for code in range(_CODE_POINTS)), 0]
    starts = [code for code in range(_CODE_POINTS) if edges[code + 1] and not edges[code]]
    ends = [code for code in range(_CODE_POINTS) if edges[code + 1] and not edges[code + 2]]
    return "".join(f"\\U{start:08x}-\\U{end:08x}" for start, end in zip(starts, ends, strict=True))


def _refuse(message: str, source: str, at: int) -> NoReturn:
    raise re.error(message, source, at)
