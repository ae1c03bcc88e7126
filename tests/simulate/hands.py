"""What the hands of a simulated worker leave: trees, a proof of the whole, and commits.

Everything here goes through the real code that a worker runs at the same place (`_commit` with its
merges, `whole.judge`, `trees_to_undo`); only files and git are those of `git.py`. It also says what
must be in a commit: the work of every task that was required, and in the end of every one accepted.
"""

from itertools import count
from types import SimpleNamespace
from typing import Any

import msgspec

from holdfast.agent import whole
from holdfast.agent.journal import LiveJournal
from holdfast.domain.model import Claim, Outcome
from holdfast.engine import Engine
from holdfast.engine.undo import trees_to_undo
from holdfast.worker import attempt
from simulate.checkers import Broken, Rows
from simulate.git import BASE, Git, lines_of, tree_of
from simulate.ports import Ports
from simulate.scripts import Script


class Hands:
    """The files and commits of every worker of one world."""

    def __init__(self, git: Git, ports: Ports) -> None:
        self._git, self._ports = git, ports

    def tree(self, engine: Engine, rows: Rows, granted: Claim, line: str) -> str:
        """The tree an attempt leaves: its base with its own line, both sides merged, or undone.

        An undo that finds a tree which it does not know is refused; nobody here changed it, so it
        raises `Broken`.
        """
        spec, me = granted.spec, str(granted.fence.task)
        base = self._git.tree_of(granted.base_commit)
        if spec.compensates:
            _, commit, parent = engine.read(trees_to_undo, spec.compensates)
            if base not in (self._git.tree_of(commit), self._git.tree_of(parent)):
                raise Broken("I10", f"task {me} finds a tree that it cannot walk back")
            return self._git.tree_of(parent)
        if spec.kind in ("plan", "verify"):
            return base
        lines = lines_of(base)
        if spec.merges:
            for name, writers in lines_of(self._git.tree_of(_work(rows, spec.merges))).items():
                there = lines.get(name, ())
                lines[name] = (*there, *(who for who in writers if who not in there))
        if line:
            lines[line] = (*lines.get(line, ()), me)
        return tree_of(lines)

    def commit(self, engine: Engine, granted: Claim, outcome: Outcome) -> Outcome:
        """The outcome with its commit, on the tip as it is now; a conflict asks for its merge."""
        shop: Any = SimpleNamespace(engine=engine, clock=engine.clock, redact=self._ports.redact)
        git: Any = self._git
        return attempt._commit(shop, granted, git, git, outcome)

    def prove(self, journal: LiveJournal, script: Script, granted: Claim) -> Outcome:
        """The goal's own checks on the merged tree, judged round by round."""
        bundle = SimpleNamespace(task=granted.spec, templates={"follow_up": "mend\n{{report}}"})
        job: Any = SimpleNamespace(journal=journal, fence=granted.fence, bundle=bundle)
        for number in count(1):
            said = script.checks(granted.fence.take + number - 1)
            outcome = whole.judge(job, tuple(map(self._ports.checked, said)), number)
            if outcome is not None:
                return outcome
        raise AssertionError("count() does not end")

    def begins(self, rows: Rows, granted: Claim) -> None:
        """Raises `Broken` when the base of a claim lacks work that it requires (I3)."""
        me = granted.fence.task
        ignored = {needed for task_id, needed in rows.forced if task_id == me}
        ignored |= {_spec(rows.tasks[needed])["merges"] for needed in ignored}
        ignored.add(granted.spec.merges)  # its work is what is to be merged
        for task_id, needed in rows.requires:
            if task_id == me and needed not in ignored:
                self._holds(rows, granted.base_commit, needed, "I3")

    def nothing_lost(self, rows: Rows) -> None:
        """Raises `Broken` when accepted work is not on its goal's branch, or an undo left some."""
        for goal_id, goal in rows.goals.items():
            if goal["undone_ms"] is not None:
                if self._git.tree_of(goal["branch_commit"]) != self._git.tree_of(BASE):
                    raise Broken("I10", f"goal {goal_id} is undone, and its tree is another one")
                continue
            merging = {_spec(row)["merges"] for row in rows.tasks.values() if _merged(row)}
            for task_id, task in rows.tasks.items():
                accepted = task["state"] == "succeeded" and (
                    task["commit_id"] or task_id in merging
                )
                if accepted and task["goal_id"] == goal_id:
                    self._holds(rows, goal["tip_commit"], task_id, "I14")

    def _holds(self, rows: Rows, commit: str, task_id: int, invariant: str) -> None:
        work = _work(rows, task_id)
        if work and not self._git.holds(commit, work):
            raise Broken(invariant, f"{commit} does not hold {work}, the work of task {task_id}")


def _work(rows: Rows, task_id: int) -> str:
    """The commit of a task that succeeded, on the tip or still to be merged."""
    last = rows.attempts[task_id, rows.tasks[task_id]["attempts"]]
    return str(msgspec.json.decode(last["report"])["commit"])


def _spec(task: Any) -> Any:
    return msgspec.json.decode(task["spec"])


def _merged(task: Any) -> bool:
    return task["state"] == "succeeded" and bool(_spec(task)["merges"])
