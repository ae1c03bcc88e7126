"""Dates and times as values: `java.util.Date`, `Instant`, `LocalDate` and `Duration`.

Owns parsing, printing and arithmetic of the four; the names and arities they are reached by are in
the table of built-ins. Times are exact integers (milliseconds for `Date`, nanoseconds elsewhere),
never floats. The proleptic Gregorian calendar of `datetime` bounds years to 1..9999, and no value
can be made that it could not show.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.lang.api import LangError

NS = 1_000_000_000
EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_INSTANT = re.compile(
    r"([+-]?\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
    r"(?:[Zz]|([+-]\d\d):?(\d\d))",
    re.ASCII,
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class Temporal:
    """The common base, so that code can ask whether a value is one of the four."""

    NAME: ClassVar[str] = "time"


@dataclass(frozen=True, order=True, slots=True)
class Date(Temporal):
    """A `java.util.Date`: milliseconds since 1970-01-01T00:00Z."""

    ms: int
    NAME: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        _check_day(self.ms // 86_400_000)

    def __str__(self) -> str:
        return instant_text(self.ms * 1_000_000)


@dataclass(frozen=True, order=True, slots=True)
class Instant(Temporal):
    """A `java.time.Instant`: nanoseconds since 1970-01-01T00:00Z."""

    ns: int
    NAME: ClassVar[str] = "instant"

    def __post_init__(self) -> None:
        _check_day(self.ns // (86_400 * NS))

    def __str__(self) -> str:
        return instant_text(self.ns)


@dataclass(frozen=True, order=True, slots=True)
class LocalDate(Temporal):
    """A `java.time.LocalDate`: days since 1970-01-01."""

    day: int
    NAME: ClassVar[str] = "local-date"

    def __post_init__(self) -> None:
        _check_day(self.day)

    def __str__(self) -> str:
        return dt.date.fromordinal(self.day + EPOCH_DAY).isoformat()


@dataclass(frozen=True, order=True, slots=True)
class Duration(Temporal):
    """A `java.time.Duration`: a signed number of nanoseconds."""

    ns: int
    NAME: ClassVar[str] = "duration"

    def __post_init__(self) -> None:
        if abs(self.ns) >= 2**63 * NS:
            raise LangError("arithmetic_error", "the duration is longer than a Java one")

    def __str__(self) -> str:
        sign, rest = ("-", -self.ns) if self.ns < 0 else ("", self.ns)
        hours, rest = divmod(rest, 3600 * NS)
        minutes, rest = divmod(rest, 60 * NS)
        seconds, nanos = divmod(rest, NS)
        text = f"{sign}{hours}H" if hours else ""
        text += f"{sign}{minutes}M" if minutes else ""
        if seconds or nanos or not text:
            fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
            text += f"{sign}{seconds}{fraction}S"
        return f"PT{text}"


TEMPORAL: tuple[type, ...] = (Date, Instant, LocalDate, Duration)


def _check_day(day: int) -> None:
    if not 1 <= day + EPOCH_DAY <= dt.date.max.toordinal():
        raise LangError("arithmetic_error", "the date leaves the years 1 to 9999")


def instant_text(ns: int) -> str:
    """ISO 8601 in UTC, with as many groups of three fraction digits as are needed."""
    seconds, nanos = divmod(ns, NS)
    days, second = divmod(seconds, 86_400)
    date = LocalDate(days)
    fraction = ""
    if nanos:
        digits = f"{nanos:09d}"
        width = 3 if nanos % 1_000_000 == 0 else 6 if nanos % 1_000 == 0 else 9
        fraction = "." + digits[:width]
    return f"{date}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}{fraction}Z"


def _refuse(text: object, what: str) -> LangError:
    shown = repr(text[:60]) if type(text) is str else "what is no string"
    return LangError("type_error", f"cannot parse {shown} as {what}")


def parse_instant(text: Any) -> Instant:
    """Strict ISO instants with a zone: `2024-01-02T03:04:05Z`, `…05.123+01:00`."""
    found = _INSTANT.fullmatch(text) if type(text) is str else None
    if found is None:
        raise _refuse(text, "an instant such as 2024-01-02T03:04:05Z")
    year, month, day, hour, minute, second, fraction, zone_h, zone_m = found.groups()
    try:
        days = dt.date(int(year), int(month), int(day)).toordinal() - EPOCH_DAY
        dt.time(int(hour), int(minute), int(second or 0))
    except ValueError:
        raise _refuse(text, "an instant such as 2024-01-02T03:04:05Z") from None
    offset = 0
    if zone_h:
        offset = int(zone_h) * 3600 + (-1 if zone_h[0] == "-" else 1) * int(zone_m) * 60
    seconds = days * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second or 0) - offset
    return Instant(seconds * NS + int((fraction or "").ljust(9, "0")))


def parse_local_date(text: Any) -> LocalDate:
    if type(text) is not str or not _DATE.fullmatch(text):
        raise _refuse(text, "a date such as 2024-01-02")
    try:
        return LocalDate(dt.date.fromisoformat(text).toordinal() - EPOCH_DAY)
    except ValueError:
        raise _refuse(text, "a date such as 2024-01-02") from None


_LEGACY = re.compile(r"(?:\w{3},? )?(\w{3}) (\d\d?) (\d\d):(\d\d):(\d\d) (?:UTC|GMT|Z) (\d{4})")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def parse_legacy(text: str) -> Date:
    """The form that `java.util.Date` prints: `Thu Jan 01 00:00:01 UTC 1970`."""
    found = _LEGACY.fullmatch(text)
    if found is None or found[1] not in _MONTHS:
        raise _refuse(text, "a date; use java.time.Instant/parse or LocalDate/parse")
    _, day, hour, minute, second, year = found.groups()
    try:
        moment = dt.date(int(year), _MONTHS.index(found[1]) + 1, int(day))
    except ValueError:
        raise _refuse(text, "a date") from None
    days = moment.toordinal() - EPOCH_DAY
    return Date((days * 86_400 + int(hour) * 3600 + int(minute) * 60 + int(second)) * 1000)


def shift_days(date: LocalDate, days: int) -> LocalDate:
    return LocalDate(date.day + days)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
