"""What changed in a git work tree since the last turn: one unified diff of at most 50 lines.

Owns snapshots and diffs, through the `git` program. Leaves the repository's index, refs, stash and
working files alone: a snapshot is a tree written with a private index. Staged, unstaged and
untracked files count; ignored ones do not. Works without any commit. Outside a repository, without
git, or when git takes too long, there is no diff and no error. Hooks and configured diff programs
never run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

DIFF_LINES_MAX = 50
LINE_CHARS_MAX = 400
GIT_S = 10.0
_PROGRAM = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Totals are of the whole change; `text` is its first lines, whole within the limits."""

    files_changed: int
    lines_added: int
    lines_removed: int
    text: str
    truncated: bool


class Turns:
    """The turns of one work tree: each `next` tells what changed since the one before.

    The first is relative to HEAD. Snapshots live in a scratch directory of their own, which goes
    away with this object; the repository's own objects are only read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0
        self._tree: str | None = None
        self._scratch = Path(tempfile.mkdtemp(prefix="agentlog-"))
        weakref.finalize(self, _remove, self._scratch, os.getpid())
        self._objects: dict[str, str] = {}

    def next(self) -> Diff | None:
        """The change of the turn that ends now; None when there is none, or git cannot say."""
        self.number += 1
        tree = self._snapshot()
        if tree is None:
            return None
        before = self._tree or self._git("rev-parse", "--verify", "-q", "HEAD^{tree}")
        self._tree = tree
        return self._between((before or "").strip() or EMPTY_TREE, tree)

    def _snapshot(self) -> str | None:
        """The id of a tree equal to the work tree, written with a private index."""
        self._objects = {}  # or git would name our own objects as the repository's
        found = self._git(
            "rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-path", "objects"
        )
        if found is None or found.count("\n") != 3:
            return None
        root, git_directory, objects = (Path(line) for line in found.splitlines())
        own = self._scratch / "objects"
        own.mkdir(exist_ok=True)
        self._objects = {
            "GIT_OBJECT_DIRECTORY": str(own),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.path.absolute() / objects),
        }
        index = self._scratch / "index"
        real = git_directory / "index"
        if real.is_file():
            # Its stat data saves hashing every unchanged file. Its own time goes with it: git looks
            # into a file as young as the index and trusts the stat data of every older one.
            with contextlib.suppress(OSError):  # replaced under us: git hashes every file
                shutil.copy2(real, index)
        private = {"GIT_INDEX_FILE": str(index)}
        if self._git("-C", str(root), "add", "--all", more=private) is None:
            return None
        tree = self._git("write-tree", more=private)
        return tree.strip() if tree else None

    def _between(self, before: str, after: str) -> Diff | None:
        if before == after:
            return None
        options = ("-r", "--no-ext-diff", "--no-textconv", "--no-color", before, after)
        numbers = self._git("diff-tree", "-z", "--numstat", *options)
        if not numbers:
            return None
        rows = [row.split("\t", 2) for row in numbers.split("\0") if row.count("\t") == 2]
        lines = (self._git("diff-tree", "-p", *options) or "").splitlines()
        shown = [line[:LINE_CHARS_MAX] for line in lines[:DIFF_LINES_MAX]]
        return Diff(
            files_changed=len(rows),
            lines_added=sum(int(row[0]) for row in rows if row[0].isdigit()),
            lines_removed=sum(int(row[1]) for row in rows if row[1].isdigit()),
            text="\n".join(shown),
            truncated=shown != lines,
        )

    def _git(self, *words: str, more: Mapping[str, str] = MappingProxyType({})) -> str | None:
        """Standard output of one git command, or None if it failed in any way."""
        # Variables like GIT_DIR of a surrounding hook would point elsewhere.
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            done = subprocess.run(  # noqa: S603  no word here comes from outside
                [*_PROGRAM, *words],
                cwd=self.path,
                env={**own, **quiet, **self._objects, **more},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=GIT_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError, ValueError):
            return None
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _remove(scratch: Path, pid: int) -> None:
    """Remove a scratch directory at the end of the process that made it, not of its forks."""
    if os.getpid() == pid:
        shutil.rmtree(scratch, ignore_errors=True)
