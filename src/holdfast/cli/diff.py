"""What a goal or an attempt changed, as a diff.

  holdfast diff 3               goal 3: from the commit it began with to what its branch holds
  holdfast diff 7.2             attempt 2 of task 7: from the tree its take began with to its last
  holdfast diff 3 --stat        only the files, with the lines added and removed

On a terminal it is coloured and goes through your pager ($PAGER, else less) when it is longer than
the screen; `--no-pager` and NO_COLOR switch that off. Control characters in files are made visible.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from holdfast.cli import attempt_page
from holdfast.cli.common import add_place, opened
from holdfast.cli.console import Console, lively
from holdfast.cli.page import painted

_STYLES = (("+++ ", "bold"), ("--- ", "bold"), ("diff ", "bold"), ("index ", "dim"))
_MARKS = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", help="a goal (3) or an attempt (7.2)")
    add_place(parser)
    parser.add_argument("--stat", action="store_true", help="only the files")
    parser.add_argument("--no-pager", action="store_true", help="write it all at once")


def run(arguments: argparse.Namespace, console: Console) -> int:
    from holdfast.adapters.pager import paged
    from holdfast.app.changes import changes, stat

    with opened(arguments, console, quiet=True) as app:
        found = changes(app, arguments.what)
    files, patch = stat(found), "" if arguments.stat else found.patch().decode(errors="replace")
    if console.json:
        names = {"before": found.before, "after": found.after}
        console.emit({"type": "diff", "of": arguments.what, **names, "files": files, "diff": patch})
        return 0
    page, colour = console.page(), lively(sys.stdout)
    attempt_page.files(page, files, indent=0)
    rows = [*page.lines(colour=colour)]
    if not arguments.stat:
        rows += ["", *lines(patch, colour=colour)]
    text = "\n".join(rows) + "\n"
    if arguments.no_pager or not sys.stdout.isatty() or not paged(text):
        sys.stdout.write(text)
        sys.stdout.flush()
    return 0


def lines(patch: str, *, colour: bool) -> Iterator[str]:
    """A unified diff line by line, safe on a terminal."""
    header = True
    for row in patch.split("\n"):
        if row.startswith("diff --git "):
            header = True
        elif row.startswith("@@"):
            header = False
        yield painted(row, _style(row, header)) if colour else painted(row, "")


def _style(row: str, header: bool) -> str:
    """A line's style; a removed line that reads like a header is none."""
    if header:
        return next((style for start, style in _STYLES if row.startswith(start)), "dim")
    return _MARKS.get(row[:1], "")
