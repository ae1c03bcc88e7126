"""Pages of text for a person: rows of styled parts, tables and paragraphs, in a width.

Owns layout and nothing else: what a page says is the business of the verb that shows it. A page is
built once and written once (`Console.show`), coloured where a person looks at a terminal and plain
everywhere else. Every part is made safe when it is added, so no page can hold a hostile character.

A width of 0 is no limit: what is piped into another program is never cut, only aligned.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from holdfast.cli import look
from holdfast.domain.plain import plain

T = TypeVar("T")
Part = tuple[str, str]

_SGR = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}
MIN_WIDTH = 20
NARROW = 72  # below it a line of a tree has no room for all that it could say
ALIGNED = 90  # where the right edge is when there is no limit


class Page:
    """Rows in the order they were added."""

    def __init__(self, *, width: int = 0, ascii_only: bool = False) -> None:
        self.width = max(width, MIN_WIDTH) if width else 0
        self.narrow = 0 < self.width < NARROW
        self.ascii_only = ascii_only
        self._rows: list[list[Part]] = []

    def row(self, *left: Part | str, right: Sequence[Part | str] = (), indent: int = 0) -> None:
        """One line; `right` stands at the right edge, and `left` gives way to it."""
        begin = [(" " * indent, ""), *map(_safe, left)]
        end = [_safe(part) for part in right]
        self._rows.append(self._fit(begin, end))

    def whole(self, *parts: Part | str, indent: int = 0) -> None:
        """One line that is never cut, such as a command to copy; a terminal may wrap it."""
        self._rows.append([(" " * indent, ""), *map(_safe, parts)])

    def text(self, text: str, *, style: str = "", indent: int = 0, lines_max: int = 0) -> None:
        """A paragraph from outside, wrapped; its own line breaks are kept."""
        rows = [row for each in look.clean(text).splitlines() for row in self._wrap(each, indent)]
        shown = rows[:lines_max] if lines_max else rows
        self._rows += [[(" " * indent, ""), (row, style)] for row in shown]
        if len(shown) < len(rows):
            self.row((f"[{look.count(len(rows) - len(shown), 'more line')}]", "dim"), indent=indent)

    def blank(self) -> None:
        self._rows.append([])

    def table(self, columns: Mapping[str, Callable[[T], Part | str]], rows: Iterable[T]) -> None:
        """Columns as wide as their widest cell, by head and what a row says there.

        A head that begins with `>` aligns right; the last column gives way to the width.
        """
        from rich.cells import cell_len

        names: list[Part] = [(head.removeprefix(">"), "dim") for head in columns]
        lines = [names, *([_safe(cell(row)) for cell in columns.values()] for row in rows)]
        widths = [max(cell_len(text) for text, _ in column) for column in zip(*lines, strict=True)]
        for line in lines:
            parts: list[Part] = []
            for at, (head, (text, style)) in enumerate(zip(columns, line, strict=True), start=1):
                gap, last = " " * (widths[at - 1] - cell_len(text)), at == len(widths)
                cell = gap + text if head.startswith(">") else text + ("" if last else gap)
                parts.append((cell + ("" if last else "  "), style))
            self._rows.append(self._fit(parts, []))

    def mark(self, state: str) -> Part:
        """The glyph of a state, a verdict or an outcome, with the space behind it."""
        return f"{look.glyph(state, ascii_only=self.ascii_only)} ", look.style(state)

    def lines(self, *, colour: bool = False) -> Iterator[str]:
        """The page as lines of text, in colours where they are wanted."""
        for row in self._rows:
            parts = [painted(text, style) if colour else text for text, style in row]
            line = "".join(parts).rstrip()
            yield line.replace("…", "~") if self.ascii_only else line

    def _fit(self, begin: list[Part], end: list[Part]) -> list[Part]:
        if self.width:
            return fit(begin, end, self.width)
        from rich.cells import cell_len

        gap = ALIGNED - sum(cell_len(text) for text, _ in (*begin, *end))
        return [*begin, (" " * max(gap, 2), ""), *end] if end else begin

    def _wrap(self, text: str, indent: int) -> list[str]:
        if not self.width or not text.strip():
            return [text]
        width = max(self.width - indent, 8)
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def fit(begin: Sequence[Part], end: Sequence[Part], width: int) -> list[Part]:
    """Two groups of parts as one line of at most `width` cells, the second at the right edge."""
    from rich.cells import cell_len

    kept = cut(end, width)
    size = sum(cell_len(text) for text, _ in kept)
    room = width - size - 1 if kept else width
    left = cut(begin, max(room, 0))
    gap = width - size - sum(cell_len(text) for text, _ in left)
    return [*left, (" " * gap, ""), *kept] if kept else left


def cut(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts within `width` cells; the one that is cut says so by its end."""
    from rich.cells import cell_len, set_cell_size

    kept: list[Part] = []
    for text, style in parts:
        size = cell_len(text)
        if size > width:
            shown = set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""
            return [*kept, (shown, style)]
        kept.append((text, style))
        width -= size
    return kept


def _safe(part: Part | str) -> Part:
    text, style = (part, "") if isinstance(part, str) else part
    return look.flat(text), style


def painted(text: str, style: str) -> str:
    """Text made safe, in a style; a style of "" adds nothing."""
    codes = ";".join(_SGR[word] for word in style.split() if word in _SGR)
    return f"\x1b[{codes}m{plain(text)}\x1b[0m" if codes and text else plain(text)
