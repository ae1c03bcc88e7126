"""What a person or a program sees: results on stdout, progress on stderr, nothing hostile.

Every text that came from a model, a tool, a file or a user passes `plain`, which makes control and
direction characters visible, so that no output can move a cursor, set a title or reorder a line.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

# C0 and C1 controls except newline and tab, DEL, and the bidirectional and line-separator marks.
_HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """Text that is safe on a terminal: hostile characters become a visible `\\xNN` or `\\uNNNN`."""
    return _HOSTILE.sub(_visible, text)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


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

    def emit(self, value: Mapping[str, Any]) -> None:
        """One JSON object on a line of its own, flushed, so that streams can be followed."""
        _print(json.dumps(value, ensure_ascii=True, separators=(",", ":")))

    def note(self, text: str) -> None:
        """Progress, on stderr. Nobody has to listen: work goes on when the terminal is gone."""
        with suppress(OSError):
            sys.stderr.write(plain(text) + "\n")
            sys.stderr.flush()

    def refuse(self, message: str, *, hint: str = "", code: str = "refused", exit_code: int) -> int:
        """An error with its remedy; with `--json` also an object on stdout. Returns `exit_code`."""
        if self.json:
            self.emit({"type": "error", "code": code, "message": message, "hint": hint})
        self.note(f"holdfast: {message}" + (f"\n  {hint}" if hint else ""))
        return exit_code


def _print(line: str) -> None:
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()  # in step with stderr, and streams can be followed
    except OSError as error:
        raise OutputGone(f"cannot write the output: {error.strerror}") from error
