"""Where a take begins: a commit's tree, or the tip with conflicting work merged into it.

Owns what a merge of conflicting work is made of. All merging happens in private git directories;
the user's repository gets objects and refs. The base of a merge is a tree with conflict markers, so
the files, the journal and the undo of such a task are those of any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from holdfast.adapters.repository import Repository
from holdfast.adapters.workspace import merge_in
from holdfast.agent.briefing import Conflict
from holdfast.domain.model import Claim, Outcome, TaskSpec
from holdfast.engine.rows import need, outcome_of, spec_of
from holdfast.errors import NotFound, Refused
from holdfast.frozen import frozen
from holdfast.store import Tx
from holdfast.worker.workshop import Workshop

SIDE_CHARS_MAX = 3000
_TRAILER = re.compile(r"^Holdfast-Attempt: (\d+)\.\d+$", re.MULTILINE)


@frozen
class Base:
    """What a take begins from; `repository` holds the objects of its `tree`."""

    repository: Repository
    tree: str
    conflict: Conflict | None = None


def begin(shop: Workshop, claim: Claim, repository: Repository, git_dir: Path) -> Base:
    """The base of a claim's next take; a merge is made in the private `git_dir`. Deterministic."""
    commit = claim.base_commit
    if not claim.spec.merges:
        tree = repository.tree_of(commit) if commit else repository.empty_tree()
        return Base(repository=repository, tree=tree)
    if not git_dir.is_dir():
        raise NotFound(f"the private git directory {git_dir} is gone", hint="there is no merge yet")
    work = shop.engine.read(work_of, claim.spec.merges)
    before = work.parent or repository.empty_tree()
    merged = merge_in(git_dir, before, commit, work.commit)
    private = Repository.open(git_dir)
    if merged.tree is not None:
        nothing = Conflict(files=(), ours="", theirs="", said="")
        return Base(repository=private, tree=merged.tree, conflict=nothing)
    names = "\0".join(merged.conflicts)
    if shop.redact(names) != names:  # nothing could look for markers under a name that is hidden
        raise Refused("a file in conflict has a credential in its name", hint="rename the file")
    there = set(private.files(merged.marked))
    ours = _others(shop, repository, work.parent, commit, merged.conflicts)
    theirs = shop.engine.read(_specs, [claim.spec.merges])
    conflict = Conflict(
        files=tuple(path for path in merged.conflicts if path in there),
        ours=_described(ours),
        theirs=_described(theirs),
        said=shop.redact(merged.said),
    )
    return Base(repository=private, tree=merged.marked, conflict=conflict)


def merge_task(
    shop: Workshop, claim: Claim, repository: Repository, tip: str, paths: Sequence[str]
) -> TaskSpec:
    """The task that merges this claim's work, which conflicts with `tip` in `paths`.

    It must keep what either side promised: its checks are those of both.
    """
    spec = claim.spec
    others = _others(shop, repository, claim.base_commit, tip, paths)
    taken = shop.engine.read(_keys, claim.fence.task)
    key = f"merge-{spec.key}"
    while key in taken:
        key += "-again"
    sides = [spec, *others]
    refers = [other.key for other in others if other.key in taken and other.key != spec.key]
    return TaskSpec(
        key=key,
        title=f"Merge {spec.label}",
        prompt="",
        requires=(spec.key,),
        refers=tuple(dict.fromkeys(refers)),
        checks=tuple(dict.fromkeys(line for side in sides for line in side.checks)),
        postconditions=tuple(dict.fromkeys(line for side in sides for line in side.promises)),
        tier=spec.tier,
        model=spec.model,
        priority=spec.priority,
        policy=spec.policy,
        merges=claim.fence.task,
    )


def work_of(tx: Tx, task_id: int) -> Outcome:
    """How a task that succeeded ended: its commit, and the commit that this builds on."""
    task = need(tx, "task", id=task_id)
    return outcome_of(need(tx, "attempt", task=task_id, attempt=task["attempts"]))


def _others(
    shop: Workshop, repository: Repository, before: str, tip: str, paths: Sequence[str]
) -> list[TaskSpec]:
    """The tasks whose accepted work touched these files since, oldest first."""
    tasks = []
    for commit in repository.touching(before, tip, paths):
        trailers = _TRAILER.findall(repository.commit_message(commit))
        tasks += [int(task) for task in trailers[-1:]]  # the text above may say anything
    return shop.engine.read(_specs, list(dict.fromkeys(tasks)))


def _specs(tx: Tx, tasks: Sequence[int]) -> list[TaskSpec]:
    return [spec_of(need(tx, "task", id=task)) for task in tasks]


def _keys(tx: Tx, task_id: int) -> set[str]:
    plan = need(tx, "task", id=task_id)["plan_id"]
    return {row["key"] for row in tx.all("task.of_plan", plan=plan)}


def _described(specs: Sequence[TaskSpec]) -> str:
    return "\n\n".join(f"{spec.label}\n\n{spec.prompt}".strip()[:SIDE_CHARS_MAX] for spec in specs)
