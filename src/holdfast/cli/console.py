"""What a person or a program sees: results on stdout, progress on stderr, nothing hostile.

Every text that came from a model, a tool, a file or a user passes `plain`, which makes control and
direction characters visible, so that no output can move a cursor, set a title or reorder a line.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TextIO

from holdfast.domain.plain import plain

if TYPE_CHECKING:
    from holdfast.cli.page import Page

P = ParamSpec("P")


def lively(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can colour and move its cursor, whose person wants it."""
    dumb = os.environ.get("TERM", "dumb") in ("", "dumb", "unknown")
    return stream.isatty() and not dumb and not os.environ.get("NO_COLOR")


class OutputGone(Exception):
    """The reader of our results went away, or the disk they go to is full."""


class Console:
    """Writes one invocation's output. With `json`, stdout carries JSON and nothing else."""

    def __init__(self, *, json: bool) -> None:
        self.json = json

    def say(self, text: str = "") -> None:
        """A line for a person; silent with `--json`."""
        if not self.json:
            _print(plain(text))

    def page(self) -> Page:
        """An empty page for stdout as it is: as wide as the terminal, unlimited in a pipe.

        `COLUMNS` decides where it is set.
        """
        from holdfast.cli.page import Page

        given = os.environ.get("COLUMNS", "")
        width = int(given) if given.isdigit() else 0
        if not width and sys.stdout.isatty():
            width = shutil.get_terminal_size().columns
        encoding = (getattr(sys.stdout, "encoding", "") or "ascii").lower()
        return Page(width=width, ascii_only=not encoding.startswith("utf"))

    def show(
        self, write: Callable[Concatenate[Page, P], None], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """A page for a person, which `write` fills; silent with `--json`."""
        if not self.json:
            page = self.page()
            write(page, *args, **kwargs)
            for row in page.lines(colour=lively(sys.stdout)):
                _print(row)

    def emit(self, value: Mapping[str, Any]) -> None:
        """One JSON object on a line of its own; silent without `--json`."""
        if self.json:
            _print(json.dumps(value, ensure_ascii=True, separators=(",", ":")))

    def note(self, text: str) -> None:
        """Progress, on stderr. Nobody has to listen: work goes on when the terminal is gone."""
        try:
            sys.stderr.write(plain(text) + "\n")
            sys.stderr.flush()
        except OSError:
            silence(sys.stderr)

    def refuse(self, message: str, *, hint: str = "", code: str = "refused", exit_code: int) -> int:
        """An error with its remedy; with `--json` also an object on stdout. Returns `exit_code`."""
        self.emit({"type": "error", "code": code, "message": message, "hint": hint})
        self.note(f"holdfast: {message}" + (f"\n  {hint}" if hint else ""))
        return exit_code


def silence(stream: TextIO) -> None:
    """Nobody reads a stream any more: what is still in it must not fail the interpreter's end."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _print(line: str) -> None:
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()  # in step with stderr, and streams can be followed
    except OSError as error:
        raise OutputGone(f"cannot write the output: {error.strerror}") from error
