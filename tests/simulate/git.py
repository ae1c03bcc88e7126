"""A repository as small as one can be: every line has the tasks that changed it, oldest first.

Stands for the user's repository and every private git directory at once: objects are never lost,
since the real ones are on disk before a commit of the store names them. A tree is its own name. The
real `_commit` of a worker runs on it, so what it merges, and with which parents, is judged here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.adapters.workspace import Merged

BASE = "c0"
Lines = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Commit:
    tree: str
    parents: tuple[str, ...] = ()
    message: str = ""


def tree_of(lines: Lines) -> str:
    return json.dumps({name: writers for name, writers in sorted(lines.items()) if writers})


def lines_of(tree: str) -> dict[str, tuple[str, ...]]:
    return {name: tuple(writers) for name, writers in json.loads(tree).items()}


def merged(base: str, ours: str, theirs: str) -> Merged:
    """Line by line, as git merges: only a line that both sides changed differently conflicts."""
    before, one, other = lines_of(base), lines_of(ours), lines_of(theirs)
    found: dict[str, tuple[str, ...]] = {}
    conflicts = []
    for name in sorted({*before, *one, *other}):
        was, left, right = (side.get(name, ()) for side in (before, one, other))
        if was not in (left, right) and left != right:
            conflicts.append(name)
        found[name] = right if left == was else left
    return Merged(tree=None if conflicts else tree_of(found), conflicts=tuple(conflicts))


class Git:
    """What `_commit` asks of a repository and of a workspace."""

    git_dir = "everywhere"

    def __init__(self) -> None:
        self.commits = {BASE: Commit(tree=tree_of({}))}

    def tree_of(self, commit: str | None) -> str:
        return self.commits[commit or BASE].tree

    def merge(self, base: str, ours: str, theirs: str) -> Merged:
        return merged(base, ours, theirs)

    def commit(self, tree: str, *, parents: Sequence[str], message: str, when_ms: int) -> str:
        name = f"c{len(self.commits)}"
        self.commits[name] = Commit(tree=tree, parents=tuple(parents), message=message)
        return name

    def fetch(self, git_dir: str, commit: str) -> None:
        """Its objects are here already."""

    def keep(self, ref: str, commit: str) -> None:
        """Nothing is ever collected."""

    def touching(self, before: str, tip: str, paths: Sequence[str]) -> list[str]:
        """The commits of the tip's first parents since `before` that changed one of the lines."""
        found = []
        while tip != before:
            commit = self.commits[tip]
            now, then = lines_of(commit.tree), lines_of(self.tree_of(commit.parents[0]))
            if any(now.get(path) != then.get(path) for path in paths):
                found.append(tip)
            tip = commit.parents[0]
        return found[::-1]

    def commit_message(self, commit: str) -> str:
        return self.commits[commit].message

    def holds(self, commit: str, older: str) -> bool:
        """Whether a commit has another among its ancestors, or is it."""
        seen, left = set(), [commit]
        while left:
            name = left.pop()
            if name == older:
                return True
            if name not in seen:
                seen.add(name)
                left += self.commits[name].parents
        return False
