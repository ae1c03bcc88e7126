"""The goal's branch in the user's repository: moved forward to the accepted work, never taken away.

Only the kept work of a failed attempt gives way to accepted work, which does not build on it.

The commit's objects were fetched before the attempt settled, so this is one reference update. It is
done again by `resume` when a process died between settling and showing.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.adapters.git import GitFailed
from holdfast.adapters.repository import Repository
from holdfast.domain.ports import Progress
from holdfast.engine import shown
from holdfast.engine.rows import need
from holdfast.errors import Refused
from holdfast.worker.workshop import Workshop


def show_branch(shop: Workshop, goal: int) -> None:
    """Make the branch show the goal's newest work. Idempotent; a branch the user holds is left."""
    row = shop.engine.read(need, "goal", id=goal)
    commit = row["branch_commit"]
    if not commit or commit == row["shown_commit"]:
        return
    repository = Repository.open(Path(row["repository"]))
    try:
        repository.fetch_branch(shop.home, commit, row["branch"], replaces=row["shown_commit"])
    except (Refused, GitFailed) as error:  # theirs is in the way; `resume` shows it once it is not
        text = f"{error}; the work is at refs/holdfast/goals/{goal}"
        shop.sink.show(Progress(kind="branch", goal=goal, task="", text=text))
        return
    shop.engine.call(shown, goal, commit)
