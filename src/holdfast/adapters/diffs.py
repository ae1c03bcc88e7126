"""What a step changed, told to a reader: totals of the whole diff, its first lines without secrets.

Owns the bounds of a diff that is kept and where it is cut, and the reading of whole diffs for the
person whose files they are. What is kept: a file may hold what no log may (design I9), so the text
is redacted before it is cut: of a diff larger than `READ_BYTES` only the beginning is read, and the
last `MARGIN` characters of that are dropped after redaction, for a secret that the cut has halved
is none that the redactor knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.adapters.git import Git
from holdfast.domain.ports import Diff
from holdfast.frozen import frozen
from holdfast.trace.gitdiff import DIFF_LINES_MAX, LINE_CHARS_MAX
from holdfast.trace.redact import MARGIN

READ_BYTES = 1_000_000
# `1 file changed, 2 insertions(+), 3 deletions(-)`: the numbers with the first letter of what.
_COUNT = re.compile(r"(\d+) ([fid])")
_PLUMBING = ("diff-tree", "-r", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")


@frozen
class FileChange:
    """A file that differs. `status` is A, D, M or T; the counts are None for a binary file."""

    path: str
    status: str
    added: int | None
    removed: int | None


def statuses(git: Git, before: str, after: str) -> dict[str, str]:
    """What differs between two trees or commits: A, D, M or T by name."""
    fields = git.names(*_PLUMBING, "-z", "--name-status", before, after)
    return dict(zip(fields[1::2], fields[::2], strict=True))


def changed_files(git: Git, before: str, after: str) -> tuple[FileChange, ...]:
    """What differs between two trees or commits, with its lines, sorted by name."""
    status = statuses(git, before, after)
    found = []
    for row in git.names(*_PLUMBING, "-z", "--numstat", before, after):
        added, removed, path = row.split("\t", 2)
        lines = (int(added), int(removed)) if added != "-" else (None, None)
        found.append(FileChange(path=path, status=status[path], added=lines[0], removed=lines[1]))
    return tuple(sorted(found, key=lambda each: each.path))


def patch(git: Git, before: str, after: str) -> bytes:
    """The whole unified diff; binary files are only named."""
    return git.run(*_PLUMBING, "-p", before, after)


def summary(git: Git, before: str, after: str, redact: Callable[[str], str]) -> Diff:
    """What lies between two trees, however large: its totals, and its first lines as kept."""
    options = ("--full-index", "--shortstat", "-p")
    found, whole = git.beginning(*_PLUMBING, *options, before, after, bytes_max=READ_BYTES)
    head, _, diff = found.partition(b"\n\n")
    counts = {word: int(number) for number, word in _COUNT.findall(head.decode())}
    totals = (counts.get("f", 0), counts.get("i", 0), counts.get("d", 0))
    return told(diff, totals, redact, whole=whole)


def told(
    diff: bytes, totals: tuple[int, int, int], redact: Callable[[str], str], *, whole: bool = True
) -> Diff:
    """A diff as it may be kept; `totals` are files, added and removed lines of all of it.

    Of one that is not `whole` only the beginning is here, and its end may be half a secret.
    """
    text = redact(diff.decode(errors="replace"))
    kept = (text if whole else text[:-MARGIN]).splitlines()
    shown = [line[:LINE_CHARS_MAX] for line in kept[:DIFF_LINES_MAX]]
    return Diff(
        files_changed=totals[0],
        lines_added=totals[1],
        lines_removed=totals[2],
        text="\n".join(shown),
        truncated=not whole or shown != kept,
    )
