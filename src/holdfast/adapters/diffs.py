"""What a step changed, told to a reader: totals of the whole diff, its first lines without secrets.

Owns the bounds of a shown diff and where it is cut. A file may hold what no log may (design I9), so
the text is redacted before it is cut: of a diff larger than `READ_BYTES` only the beginning is
read, and the last `MARGIN` characters of that are dropped after redaction, for a secret that the
cut has halved is none that the redactor knows.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.domain.ports import Diff
from holdfast.trace.gitdiff import DIFF_LINES_MAX, LINE_CHARS_MAX
from holdfast.trace.redact import MARGIN

READ_BYTES = 1_000_000


def summary(diff: bytes, redact: Callable[[str], str]) -> Diff:
    """The totals of `diff`, and its first lines as they may be kept."""
    lines = diff.split(b"\n")
    text = redact(diff[:READ_BYTES].decode(errors="replace"))
    whole = len(diff) <= READ_BYTES
    kept = (text if whole else text[:-MARGIN]).splitlines()
    shown = [line[:LINE_CHARS_MAX] for line in kept[:DIFF_LINES_MAX]]
    return Diff(
        files_changed=sum(line.startswith(b"diff --git ") for line in lines),
        lines_added=sum(line[:1] == b"+" and line[:4] != b"+++ " for line in lines),
        lines_removed=sum(line[:1] == b"-" and line[:4] != b"--- " for line in lines),
        text="\n".join(shown),
        truncated=not whole or shown != kept,
    )
