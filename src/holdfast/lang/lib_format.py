"""`format`: Java's Formatter for finite values.

Widths and precisions are bounded by `format_width`. nil is "" for %s, as `str` has it, and "null"
for numeric conversions, as Java has it. Rounding is half up, from the exact decimal value.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

from holdfast.lang.api import LangError, Value
from holdfast.lang.dates import Date, Instant
from holdfast.lang.lib_numbers import LONG_MAX
from holdfast.lang.lib_types import kind_name
from holdfast.lang.meter import ACTIVE, refuse_size, text_size
from holdfast.lang.printer import display, readable
from holdfast.lang.values import is_true, type_name, utf16

_SPEC = re.compile(
    r"%(?:(\d+)\$|(<))?([-#+ 0,(]*)(\d+)?(?:\.(\d+))?(t[A-Za-z]|[a-zA-Z%])", re.ASCII
)
_EXACT = Context(prec=1200)


def format_(template: Value, *args: Value) -> str:
    if type(template) is not str:
        raise LangError("type_error", f"format expects a string, got {type_name(template)}")
    parts: list[str] = []
    at, ordinary, previous = 0, 0, -1
    for found in _SPEC.finditer(template):
        literal = template[at : found.start()]
        if "%" in literal:
            break
        parts.append(literal)
        at = found.end()
        _check_flags(found)
        if found[6] in ("n", "%"):
            parts.append(_pad("\n" if found[6] == "n" else "%", found))
            continue
        if found[1]:
            previous = int(found[1]) - 1
        elif not found[2]:
            previous, ordinary = ordinary, ordinary + 1
        if not 0 <= previous < len(args):
            raise LangError("type_error", f"format: nothing is given for {found[0]}")
        parts.append(_convert(found, args[previous]))
    if "%" in template[at:]:
        bad = template[at + template[at:].index("%") :][:6]
        raise LangError(
            "type_error", f"format does not know {bad!r}", hint="write %% for a percent"
        )
    parts.append(template[at:])
    text_size(sum(map(len, parts)))
    return "".join(parts)


# The flags that each conversion takes, as in Java.
_FLAGS = {
    "d": "-+ 0,(", "o": "-#0", "x": "-#0", "e": "-#+ 0(", "f": "-#+ 0,(", "g": "-+ 0,(",
    "s": "-", "b": "-", "c": "-", "h": "-", "t": "-", "%": "-", "n": "",
}  # fmt: skip


def _check_flags(found: re.Match[str]) -> None:
    """Refuse what Java refuses: flags a conversion does not take, or that contradict each other."""
    flags, kind = found[3], found[6][0].lower()
    wrong = [flag for flag in flags if flag not in _FLAGS.get(kind, flags)]
    wrong += [pair for pair in ("-0", "+ ") if set(pair) <= set(flags)]
    wrong += [flag for flag in "-0" if flag in flags and not found[4]]
    if kind in "doxctn%" and found[5]:
        wrong.append(f".{found[5]}")
    if kind == "n" and found[4]:
        wrong.append(found[4])
    if wrong:
        raise LangError("type_error", f"format: {found[0]} does not go with {' '.join(wrong)}")


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    number = int(text) if len(text) < 9 else 10**9
    if number > ACTIVE.get().limits.format_width:
        refuse_size("format_width", "format: a width or precision")
    return number


def _pad(text: str, found: re.Match[str]) -> str:
    width = _limit(found[4]) or 0
    return text.ljust(width) if "-" in found[3] else text.rjust(width)


def _convert(found: re.Match[str], value: Value) -> str:
    kind = found[6]
    lower = kind.lower()
    if lower in ("d", "o", "x", "e", "f", "g") and value is not None:
        text = _number(found, lower, value)
    elif lower in ("s", "b", "c", "h", "d", "o", "x", "e", "f", "g"):
        text = _text(lower, value)
        precision = _limit(found[5])
        text = text if precision is None else text[:precision]
    elif kind[0] == "t":
        text = _time(kind[1], value)
    else:
        raise LangError("type_error", f"format does not know %{kind}")
    return _pad(text.upper() if kind[0].isupper() else text, found)


def _text(kind: str, value: Value) -> str:
    if kind == "b":
        return "true" if is_true(value) else "false"
    if value is None:
        return "" if kind == "s" else "null"
    if kind == "c":
        if type(value) is str and len(value) == 1:
            return value
        if type(value) is int and 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000:
            return chr(value)
        raise LangError("type_error", f"format: %c expects a character, got {type_name(value)}")
    if kind == "h":
        return f"{_hash(value) & 0xFFFFFFFF:x}"
    return display(value) if type(value) is not dict else readable(value)


def _hash(value: Value) -> int:
    """Java's hash of a string or integer; others have none here."""
    if type(value) is str:
        found = 0
        for unit in memoryview(utf16(value)).cast("H"):
            found = (31 * found + unit) & 0xFFFFFFFF
        return found
    if type(value) is int:
        return value ^ (value >> 32)
    raise LangError("type_error", f"format: %h has no hash for a {type_name(value)}")


def _number(found: re.Match[str], kind: str, value: Value) -> str:
    flags = found[3]
    if kind in ("d", "o", "x"):
        if type(value) is not int:
            raise LangError(
                "type_error", f"format: %{kind} expects an integer, got {kind_name(value)}"
            )
        digits = _integer(kind, value, flags)
    else:
        if type(value) is not float:
            raise LangError(
                "type_error", f"format: %{kind} expects a float, got {kind_name(value)}"
            )
        if not math.isfinite(value):
            return "NaN" if value != value else ("" if value > 0 else "-") + "Infinity"
        precision = _limit(found[5])
        digits = _decimal(kind, abs(value), 6 if precision is None else precision)
    negative = value < 0 or (value == 0 and math.copysign(1, value) < 0)
    if kind in ("o", "x"):
        negative = False
    if "," in flags:
        whole, dot, fraction = digits.partition(".")
        digits = re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", whole) + dot + fraction
    before, after = ("(", ")") if "(" in flags and negative else ("-" if negative else "", "")
    if not negative:
        before = "+" if "+" in flags else " " if " " in flags else ""
    width = _limit(found[4]) or 0
    if "0" in flags:
        prefix = digits[:2] if digits[:2] == "0x" else ""
        body = digits[len(prefix) :]
        digits = prefix + body.rjust(width - len(before + after + prefix), "0")
    return before + digits + after


def _integer(kind: str, value: int, flags: str) -> str:
    if kind == "d":
        return display(abs(value))
    if value < 0:
        value += 2**64 if value >= -LONG_MAX - 1 else 0
    text = f"{value:{kind}}"
    return ("0x" if kind == "x" else "0") + text if "#" in flags else text


def _decimal(kind: str, value: float, precision: int) -> str:
    exact = Decimal(repr(value))
    if kind == "f":
        return _fixed(exact, precision)
    if kind == "e":
        return _exponent(exact, precision)
    precision = precision or 1
    rounded = _EXACT.plus(exact) if exact == 0 else _significant(exact, precision)
    if rounded == 0 or Decimal("0.0001") <= rounded < Decimal(10) ** precision:
        scale = precision - 1 - (rounded.adjusted() if rounded else 0)
        return _fixed(exact, max(scale, 0))
    return _exponent(exact, precision - 1)


def _significant(exact: Decimal, digits: int) -> Decimal:
    return exact.quantize(
        Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=ROUND_HALF_UP, context=_EXACT
    )


def _fixed(exact: Decimal, precision: int) -> str:
    kept = min(precision, 800)
    found = exact.quantize(Decimal(1).scaleb(-kept), rounding=ROUND_HALF_UP, context=_EXACT)
    return f"{found:f}" + "0" * (precision - kept)


def _exponent(exact: Decimal, precision: int) -> str:
    if exact == 0:
        shift, mantissa = 0, Decimal(0)
    else:
        mantissa = _significant(exact, precision + 1)
        shift = mantissa.adjusted()
        mantissa = mantissa.scaleb(-shift, context=_EXACT)
    return f"{_fixed(mantissa, precision)}e{'-' if shift < 0 else '+'}{abs(shift):02d}"


_TIME = {
    "Y": "%Y", "y": "%y", "m": "%m", "d": "%d", "H": "%H", "I": "%I", "M": "%M", "S": "%S",
    "B": "%B", "b": "%b", "h": "%b", "A": "%A", "a": "%a", "j": "%j", "F": "%Y-%m-%d",
    "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y",
}  # fmt: skip


def _time(letter: str, value: Value) -> str:
    if isinstance(value, Date | Instant):
        seconds = value.ms / 1000 if isinstance(value, Date) else value.ns // 10**9
        if letter in _TIME:
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)
            return moment.strftime(_TIME[letter])
    raise LangError("type_error", f"format: %t{letter} expects a date, got {type_name(value)}")
