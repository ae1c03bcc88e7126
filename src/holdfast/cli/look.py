"""How things look to a person: one way each to write money, tokens, times and states.

Owns the words, glyphs and styles that every page, table and the live view share; knows no layout.
Text from outside becomes safe here (`clean`, `line`, by `plain`) before it is measured or styled.
Styles are names that `rich` knows; without a terminal nothing of them is left.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.domain.plain import plain

if TYPE_CHECKING:
    from holdfast.domain.ports import Progress

# State, verdict or outcome → glyph, its form without Unicode, style.
_LOOKS: Mapping[str, tuple[str, str, str]] = {
    "succeeded": ("✓", "+", "green"),
    "complete": ("✓", "+", "green"),
    "passed": ("✓", "+", "green"),
    "pass": ("✓", "+", "green"),
    "done": ("✓", "+", "green"),
    "unverified": ("✓", "+", "yellow"),
    "failed": ("✗", "x", "red"),
    "fail": ("✗", "x", "red"),
    "expired": ("✗", "x", "yellow"),
    "unknown": ("?", "?", "yellow"),
    "absent": ("?", "?", "red"),
    "partial": ("◐", "/", "yellow"),
    "running": ("●", "*", "cyan"),
    "executing": ("●", "*", "cyan"),
    "decomposing": ("●", "*", "cyan"),
    "verifying": ("●", "*", "cyan"),
    "open": ("●", "*", "cyan"),
    "intended": ("●", "*", "cyan"),
    "waiting": ("?", "?", "magenta"),
    "proposed": ("?", "?", "magenta"),
    "paused": ("‖", "=", "yellow"),
    "interrupted": ("‖", "=", "yellow"),
    "ready": ("○", "o", ""),
    "submitted": ("○", "o", ""),
    "draft": ("○", "o", ""),
    "blocked": ("·", ".", "dim"),
    "": ("○", "o", "dim"),
}
_OTHER = ("−", "-", "dim")


def glyph(state: str, *, ascii_only: bool = False) -> str:
    """One character for a state, a verdict or an outcome."""
    return _LOOKS.get(state, _OTHER)[1 if ascii_only else 0]


def style(state: str) -> str:
    """The style of a state, a verdict or an outcome; "" for none."""
    return _LOOKS.get(state, _OTHER)[2]


def money(usd: float | None) -> str:
    """Dollars to a hundredth of a cent; an unknown price says so, it is not zero."""
    return "unknown price" if usd is None else f"${usd:,.4f}"


def cash(usd: float | None) -> str:
    """The same for a narrow column: an unknown price is `$?`."""
    return "$?" if usd is None else money(usd)


def count(number: int, noun: str) -> str:
    """`1 step`, `1,234 steps`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def span(ms: int) -> str:
    """How long something took, in the two units that matter: `0.4 s`, `12 s`, `3:05`, `2:00:07`."""
    seconds = max(ms, 0) / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def moment(ms: int | None) -> str:
    """A point in time, local: `2026-11-21 09:42:49`; "" for none."""
    return "" if ms is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(ms / 1000))


def size(number: int) -> str:
    """Bytes for a person: `512 B`, `1.5 KB`, `48.0 MB`."""
    amount, unit = float(number), "B"
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{number} B" if unit == "B" else f"{amount:.1f} {unit}"


def clean(text: str) -> str:
    """Text from outside, safe on a terminal; tabs become spaces, which can be measured."""
    return plain(text).expandtabs(4)


def line(text: str) -> str:
    """Text from outside as one safe line: its line breaks become spaces."""
    return " ".join(plain(text).split())


def flat(text: str) -> str:
    """The same with every space kept, for text that is aligned already."""
    return plain(text).replace("\n", " ").replace("\t", " ")


def note(progress: Progress) -> str:
    """Progress as one line, whatever a text in it says."""
    who = f"{progress.task[:30]} | " if progress.task else ""
    return flat(f"  {who}{progress.text}")


def head(text: str) -> str:
    """The first line of a text from outside that says anything, safe; "" for none."""
    return next((line(row) for row in text.splitlines() if row.strip()), "")
