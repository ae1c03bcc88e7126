"""Undo a goal: check that nobody changed its branch since, then run its compensation plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.adapters.repository import Repository
from holdfast.app import App
from holdfast.app.goals import work
from holdfast.engine import compensate
from holdfast.engine.undo import to_undo
from holdfast.errors import Refused
from holdfast.store import Tx


def what_if(app: App, goal: int) -> dict[str, Any]:
    """What undoing a goal would walk back, without doing it."""
    row, tasks = app.engine.read(_goal, goal), app.engine.read(to_undo, goal)
    repository = Repository.open(Path(row["repository"]))
    _unchanged(repository, row)
    return {
        "type": "undo",
        "goal": goal,
        "dry_run": True,
        "tasks": [task["key"] for task in tasks],
        "files": repository.changed(row["branch_commit"], row["base_commit"])
        if row["base_commit"]
        else repository.files(row["branch_commit"]),
        "base_tree": row["base_tree"],
    }


def undo(app: App, goal: int) -> dict[str, Any]:
    """Walk a goal's work back, newest first; go on with an undo that was cut short.

    Refuses, naming the files, when someone changed the goal's branch since.
    """
    row = app.engine.read(_goal, goal)
    repository = Repository.open(Path(row["repository"]))
    _unchanged(repository, row)
    # Undone, but not yet shown: a process died between the two, and `work` begins with showing.
    if row["undone_ms"] is None or row["shown_commit"] == row["branch_commit"]:
        app.engine.call(compensate, goal)
    result = work(app, goal, resumed=True)
    after = app.engine.read(_goal, goal)
    tree = repository.tree_of(after["branch_commit"])
    return {
        "type": "undo",
        "goal": goal,
        "state": result["state"],
        "undone": result["undone"],
        "branch": after["branch"],
        "tree": tree,
        "base_tree": after["base_tree"],
        "tree_equal": tree == after["base_tree"],
    }


def _unchanged(repository: Repository, row: Any) -> None:
    """The branch must hold what the goal left on it; a missing one will be made again.

    It may still show the work before the last when a process died between settling and showing.
    """
    there = repository.branch_commit(row["branch"])
    if there in (None, row["branch_commit"], row["shown_commit"]):
        return
    names = repository.changed(row["branch_commit"], there)
    shown = ", ".join(names[:10]) or "its history"
    raise Refused(
        f"branch {row['branch']} changed since goal {row['id']} left it: {shown}",
        hint="move those commits elsewhere, or undo them first",
        code="changed_since",
    )


def _goal(tx: Tx, goal: int) -> Any:
    row = tx.one("goal.get", id=goal)
    if row is None:
        raise Refused(f"there is no goal {goal}", hint="holdfast goal list")
    return row
