"""What a goal or an attempt changed in files, read from git: for `diff` and the pages.

A goal is compared from the commit it began with to what its branch shall show, an attempt from its
take's base tree to the tree of its last step. The bytes are those of the person's own files: they
go to that person's terminal and into no record.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.adapters.diffs import changed_files, patch
from holdfast.adapters.git import Git, GitFailed
from holdfast.adapters.repository import Repository
from holdfast.app import App
from holdfast.engine.attempts import attempt_record
from holdfast.engine.rows import need
from holdfast.errors import HoldfastError, NotFound, Refused
from holdfast.frozen import frozen


@frozen
class Changes:
    """Two trees or commits and the git that knows both."""

    git: Git
    before: str
    after: str

    def patch(self) -> bytes:
        return patch(self.git, self.before, self.after)


def changes(app: App, what: str) -> Changes:
    """The changes of a goal (`3`) or an attempt (`7.2`). Raises `NotFound` when git lost them."""
    if re.fullmatch(r"[0-9]+\.[0-9]+", what):
        return _of_attempt(app, what)
    if not re.fullmatch(r"[0-9]+", what):
        raise Refused(
            f"{what!r} is no goal and no attempt", hint="holdfast diff 1 (a goal), or 1.1"
        )
    return _of_goal(app, int(what))


def stat(found: Changes) -> list[dict[str, Any]]:
    """The changed files as JSON objects; the counts of a binary file are null."""
    return [asdict(each) for each in changed_files(found.git, found.before, found.after)]


def diffstat(app: App, what: str) -> list[dict[str, Any]] | None:
    """The same of a goal or an attempt; None when git no longer has its trees."""
    try:
        return stat(changes(app, what))
    except HoldfastError:
        return None


def _of_goal(app: App, goal: int) -> Changes:
    row = app.engine.read(need, "goal", id=goal)
    repository = Repository.open(Path(row["repository"]))
    before, after = row["base_commit"] or row["base_tree"], row["branch_commit"]
    return _known(Changes(git=repository.git, before=before, after=after or before), f"goal {goal}")


def _of_attempt(app: App, name: str) -> Changes:
    """From its take's base to its last done step, in the task's private directory; where that is
    gone, to the commit that was kept."""
    record = app.engine.read(attempt_record, name, verify=False)
    git_dir = app.home / "tasks" / str(record.fence.task) / "git"
    if git_dir.is_dir():
        done = [step.tree_after for step in record.steps if step.state == "done"]
        last = next(filter(None, reversed(done)), record.base_tree)
        made = Changes(git=Git(git_dir=git_dir), before=record.base_tree, after=last)
        return _known(made, f"attempt {name}")
    outcome = record.outcome
    if outcome is None or not outcome.commit:
        raise NotFound(f"the files of attempt {name} are gone", hint="holdfast attempt show")
    row = app.engine.read(need, "goal", id=record.fence.goal)
    repository = Repository.open(Path(row["repository"]))
    made = Changes(git=repository.git, before=record.base_tree, after=outcome.commit)
    return _known(made, f"attempt {name}")


def _known(found: Changes, what: str) -> Changes:
    try:
        for name in (found.before, found.after):
            found.git.run("rev-parse", "-q", "--verify", f"{name}^{{tree}}")
    except GitFailed as error:
        raise NotFound(f"git no longer has the files of {what}") from error
    return found
