"""Numbers from text, and `java.lang.Math`.

Clojure's parsers answer nil for what is no number; Java's raise. `Math/…` answers Java's kinds:
floats from `ceil` and `floor`, NaN outside a function's domain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from holdfast.lang.api import LangError, Value
from holdfast.lang.lib_numbers import LONG_MAX, LONG_MIN, ceil, floor, number, to_float
from holdfast.lang.values import expected, type_name

_INTEGER = re.compile(r"[+-]?\d{1,40}\Z")  # the digits of every script, as in Java
_DECIMAL = re.compile(
    r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?\Z", re.ASCII
)
_HEX = re.compile(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]{1,5}\Z", re.ASCII)


def parse_long(text: Value) -> int | None:
    if type(text) is not str or not _INTEGER.match(text):
        return None
    found = int(text)
    return found if LONG_MIN <= found <= LONG_MAX else None


def parse_double(text: Value) -> float | None:
    if type(text) is not str or len(text) > 400:
        return None
    text = text.strip(" \t\n\r\f\v")
    if _DECIMAL.match(text):
        return float(text.rstrip("dDfF") if text[-1:] in "dDfF" else text)
    if _HEX.match(text):
        try:
            return float.fromhex(text)
        except (ValueError, OverflowError):
            return None
    return None


def parse_boolean(text: Value) -> bool | None:
    return {"true": True, "false": False}.get(text) if type(text) is str else None


def _shown(text: Value) -> str:
    return repr(text[:40]) if type(text) is str else f"a {type_name(text)}"


def java_integer(low: int, high: int, name: str) -> Callable[..., int]:
    """`Integer/parseInt` and `Long/parseLong`: these raise, and take a radix."""

    def parse(text: Value, radix: Value = 10) -> int:
        if type(text) is str and type(radix) is int and 2 <= radix <= 36 and len(text) <= 80:
            digits = text[1:] if text[:1] in ("+", "-") else text
            if digits.isascii() and digits.isalnum():
                try:
                    found = int(text, radix)
                except ValueError:
                    found = high + 1
                if low <= found <= high:
                    return found
        raise LangError("type_error", f"{name} cannot parse {_shown(text)}")

    return parse


def java_double(text: Value) -> float:
    found = parse_double(text)
    if found is None:
        raise LangError("type_error", f"Double/parseDouble cannot parse {_shown(text)}")
    return found


def java_boolean(text: Value) -> bool:
    if text is not None and type(text) is not str:
        raise expected("Boolean/parseBoolean", "a string", text)
    return text is not None and text.lower() == "true"


# --- Math/…: Java's kinds of result --------------------------------------------------------------


def math_floor(value: Value) -> float:
    return to_float(floor(value))


def math_ceil(value: Value) -> float:
    return to_float(ceil(value))


def math_round(value: Value) -> int:
    found = number("Math/round", value)
    if found != found:
        return 0
    if math.isinf(found):
        return LONG_MAX if found > 0 else LONG_MIN
    return math.floor(found + 0.5) if type(found) is float else int(found)


def math_unary(name: str, make: Callable[[float], float]) -> Callable[[Value], float]:
    """One of the functions of `java.lang.Math` that answer NaN outside their domain."""

    def call(value: Value) -> float:
        found = to_float(number(f"Math/{name}", value))
        try:
            return make(found)
        except ValueError:
            return -math.inf if found == 0 and name.startswith("log") else math.nan
        except OverflowError:
            return math.inf

    return call
