"""The Java methods and classes that models reach for: `.indexOf`, `LocalDate/parse` and their kin.

Strings are counted in UTF-16 units here and out-of-range positions are refused, as Java does.
Only the methods of the table exist; nothing reaches a host object.
"""

from __future__ import annotations

from codecs import utf_16_le_decode
from collections.abc import Callable
from operator import gt, lt

from holdfast.lang import dates
from holdfast.lang.api import LangError, Value
from holdfast.lang.dates import NS, Date, Duration, Instant, LocalDate
from holdfast.lang.lib_numbers import number
from holdfast.lang.lib_seqs import count_arg
from holdfast.lang.lib_strings import strict_text
from holdfast.lang.values import equal, expected, type_name, utf16


def _string(units: bytes) -> str:
    return utf_16_le_decode(units, "replace", True)[0]


def _needle(name: str, value: Value) -> bytes:
    if type(value) is int and 0 <= value < 0x110000:
        return utf16(chr(value))
    return utf16(strict_text(name, value))


def _find(units: bytes, part: bytes, start: int) -> int:
    """The first whole-unit position at or after `start`, else -1."""
    at = units.find(part, 2 * start)
    while at >= 0 and at % 2:
        at = units.find(part, at + 1)
    return at // 2 if at >= 0 else -1


def index_of(text: Value, part: Value, start: Value = 0) -> int:
    if isinstance(text, tuple):
        return next((at for at, item in enumerate(text) if equal(item, part)), -1)
    units = utf16(strict_text(".indexOf", text))
    low = min(max(count_arg(".indexOf", start), 0), len(units) // 2)
    return _find(units, _needle(".indexOf", part), low)


def last_index_of(text: Value, part: Value, start: Value = None) -> int:
    if isinstance(text, tuple):
        hits = [at for at, item in enumerate(text) if equal(item, part)]
        return hits[-1] if hits else -1
    units, wanted = utf16(strict_text(".lastIndexOf", text)), _needle(".lastIndexOf", part)
    high = (len(units) - len(wanted)) // 2
    if start is not None:
        high = min(high, count_arg(".lastIndexOf", start))
    for at in range(high, -1, -1):
        if units.startswith(wanted, 2 * at):
            return at
    return -1


def length(text: Value) -> int:
    return len(utf16(strict_text(".length", text))) // 2


def substring(text: Value, start: Value, end: Value = None) -> str:
    units = utf16(strict_text(".substring", text))
    size = len(units) // 2
    low = count_arg(".substring", start)
    high = size if end is None else count_arg(".substring", end)
    if not 0 <= low <= high <= size:
        raise LangError(
            "type_error",
            f".substring: {low} to {high} is outside a string of {size} units",
            hint="subs clamps instead",
        )
    return _string(units[2 * low : 2 * high])


def contains(text: Value, part: Value) -> bool:
    return strict_text(".contains", part) in strict_text(".contains", text)


def starts_with(text: Value, part: Value, offset: Value = 0) -> bool:
    units, wanted = utf16(strict_text(".startsWith", text)), utf16(strict_text(".startsWith", part))
    at = count_arg(".startsWith", offset)
    return 0 <= 2 * at <= len(units) and units.startswith(wanted, 2 * at)


def ends_with(text: Value, part: Value) -> bool:
    return strict_text(".endsWith", text).endswith(strict_text(".endsWith", part))


def _changing(name: str, change: Callable[[str], str]) -> Callable[[Value], str]:
    return lambda text: change(strict_text(name, text))


_UP_TO_SPACE = "".join(map(chr, range(33)))  # what Java trims: no other white space
trim = _changing(".trim", lambda text: text.strip(_UP_TO_SPACE))
lower, upper = _changing(".toLowerCase", str.lower), _changing(".toUpperCase", str.upper)


# --- dates ---------------------------------------------------------------------------------------


def _ordered(
    name: str, kinds: tuple[type, ...], holds: Callable[[Value, Value], bool]
) -> Callable[[Value, Value], bool]:
    """A comparison of two moments of one of these kinds."""

    def compared(one: Value, other: Value) -> bool:
        _check_both(name, kinds, one, other)
        return holds(one, other)

    return compared


def _check_both(name: str, kinds: tuple[type, ...], one: Value, other: Value) -> None:
    if type(one) not in kinds or type(one) is not type(other):
        raise LangError(
            "type_error", f"{name} cannot compare {type_name(one)} with {type_name(other)}"
        )


before, after = _ordered(".before", (Date,), lt), _ordered(".after", (Date,), gt)
is_before = _ordered(".isBefore", (LocalDate, Instant), lt)
is_after = _ordered(".isAfter", (LocalDate, Instant), gt)


def make_date(*args: Value) -> Date:
    if not args:
        return Date(dates.now_ms())
    value = args[0]
    if type(value) is int:
        return Date(value)
    if type(value) is Date:
        return value
    if type(value) is str:
        return dates.parse_legacy(value)
    raise expected("java.util.Date.", "milliseconds", value)


def get_time(value: Value) -> int:
    if type(value) is not Date:
        hint = "use .toEpochMilli" if type(value) is Instant else ""
        raise expected(".getTime", "a date", value, hint=hint)
    return value.ms


def to_epoch_milli(value: Value) -> int:
    if type(value) is not Instant:
        raise expected(".toEpochMilli", "an instant", value)
    return value.ns // 1_000_000


def _days(name: str, value: Value, days: Value) -> tuple[LocalDate, int]:
    if type(value) is not LocalDate:
        raise expected(name, "a local date", value)
    found = number(name, days)
    return value, 0 if found != found else count_arg(name, days)


def plus_days(value: Value, days: Value) -> LocalDate:
    date, count = _days(".plusDays", value, days)
    return dates.shift_days(date, count)


def minus_days(value: Value, days: Value) -> LocalDate:
    date, count = _days(".minusDays", value, days)
    return dates.shift_days(date, -count)


def to_epoch_day(value: Value) -> int:
    return _days(".toEpochDay", value, 0)[0].day


def between(one: Value, other: Value) -> Duration:
    _check_both("Duration/between", (Instant,), one, other)
    return Duration(other.ns - one.ns)


def _in_units(name: str, unit_ns: int, *, past: bool = False) -> Callable[[Value], int]:
    """A duration in whole units, cut towards zero, or else towards the past."""

    def counted(value: Value) -> int:
        if type(value) is not Duration:
            raise expected(name, "a duration", value)
        return value.ns // unit_ns if past or value.ns >= 0 else -(-value.ns // unit_ns)

    return counted


to_days, to_hours = _in_units(".toDays", 86_400 * NS), _in_units(".toHours", 3_600 * NS)
to_minutes = _in_units(".toMinutes", 60 * NS)
to_millis = _in_units(".toMillis", 1_000_000, past=True)  # as Java has it
