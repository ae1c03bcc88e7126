"""What an attempt is run with: the wired parts of one process, and the places of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.adapters.repository import Repository
from holdfast.adapters.workspace import TaskWorkspace
from holdfast.agent.journal import Probe
from holdfast.config import Settings
from holdfast.domain.model import Claim
from holdfast.domain.ports import Clock, Model, Sandbox, Sink, Tool, ToolSpec, Usage
from holdfast.engine import Engine
from holdfast.engine.outlook import previous_end
from holdfast.worker.liveness import SILENT

# A query and texts → the similarity of each text, -1 to 1; raises `Unavailable`.
Near = Callable[[str, Iterable[str]], Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """One process's parts. `model` and `cost` answer for a `provider:model`, opened once each.

    `near` compares texts by meaning, where an embedder is configured.
    """

    engine: Engine
    clock: Clock
    settings: Settings
    home: Path
    worker: str
    sandbox: Sandbox
    tools: Mapping[str, Tool]
    problems: Callable[[ToolSpec, Mapping[str, Any]], list[str]]
    model: Callable[[str], Model]
    cost: Callable[[str, Usage], int | None]
    redact: Callable[[str], str]
    sink: Sink
    probe: Probe
    near: Near | None = None

    def repository(self, claim: Claim) -> Repository:
        """The repository of a goal: the user's own, or our private copy of a plain folder."""
        source = self.home / "source.git"
        return Repository.open(
            source if claim.repository == str(source) else Path(claim.repository)
        )

    def workspace(self, claim: Claim, repository: Repository) -> TaskWorkspace:
        """The workspace of an attempt: the old directory if its owner is gone, else a fresh one."""
        folder = self.home / "tasks" / str(claim.fence.task)
        owner, reason = self.engine.read(previous_end, claim.fence.task, before=claim.fence.attempt)
        known = sorted(int(path.name.partition("-")[2]) for path in folder.glob("work-*[0-9]"))
        fresh = not known or (reason == SILENT and known[-1] <= owner)
        number = claim.fence.attempt if fresh else known[-1]
        workspace = TaskWorkspace.create(
            folder / "git",
            folder / f"work-{number}",
            repository,
            base=claim.base_commit or None,
            sandbox=self.sandbox,
            redact=self.redact,
            task=str(claim.fence.task),
            take=claim.fence.take,
        )
        if claim.spec.compensates and (undone := self.git_dir(claim.spec.compensates)).is_dir():
            workspace.borrow(undone)
        return workspace

    def git_dir(self, task: int) -> Path:
        """A task's private git directory; it may have been removed since."""
        return self.home / "tasks" / str(task) / "git"
