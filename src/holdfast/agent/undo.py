"""The executor of a compensating task: walk trees back, each checked by its hash."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise

from holdfast.agent.conversation import encode
from holdfast.agent.journal import Effectful, Performed
from holdfast.agent.loop import Job
from holdfast.domain.model import CheckResult, Outcome
from holdfast.errors import Refused


async def undo(job: Job) -> Outcome:
    """Restore the workspace step by step to the base tree; idempotent after a kill anywhere."""
    trees = job.bundle.undo
    for index, (here, there) in enumerate(pairwise(trees)):
        await job.journal.step(
            Effectful(
                key=f"undo:{index:04}",
                kind="tool",
                effect="idempotent",
                request=encode({"from": here, "to": there}),
                perform=partial(asyncio.to_thread, _walk, job, here, there),
                writes=True,
            )
        )
    await job.journal.flush()
    tree = job.journal.tree
    proof = CheckResult(
        command=f"tree {trees[-1]}",
        verdict="pass" if tree == trees[-1] else "fail",
        output=f"the tree is {tree}",
    )
    return Outcome(
        kind="passed" if proof.verdict == "pass" else "failed",
        failure=None if proof.verdict == "pass" else "logic",
        answer=f"Walked {len(trees) - 1} steps back to tree {trees[-1]}",
        checks=(proof,),
        tree=tree,
    )


def _walk(job: Job, here: str, there: str) -> Performed:
    workspace = job.workspace
    found = workspace.stage()
    if found not in (here, there):
        names = ", ".join(name for _, name in workspace.changed(here, found))
        raise Refused(f"someone changed since: {names}", code="changed_since")
    workspace.restore(there)
    if workspace.stage() != there:
        raise Refused(f"the restored files are not tree {there}", code="not_restored")
    return Performed(result=encode({"tree": there}))
