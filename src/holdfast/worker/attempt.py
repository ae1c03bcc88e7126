"""One attempt from claim to settle: workspace, bundle, executor, commit, outcome.

Renewal runs beside the executor, never inside it. An attempt that cannot renew stops itself before
anyone else may start (self-fencing); one that lost its lease reports nothing.
"""

from __future__ import annotations

import asyncio
import shutil
import traceback
from dataclasses import replace
from errno import EDQUOT, ENOSPC
from pathlib import Path

import msgspec

from holdfast.adapters.repository import Repository
from holdfast.adapters.tools.bounds import bounded
from holdfast.adapters.workspace import TaskWorkspace
from holdfast.agent.executors import execute
from holdfast.agent.journal import LiveJournal
from holdfast.agent.loop import Job
from holdfast.context.bundle import Bundle
from holdfast.domain.decide import Decision
from holdfast.domain.model import Claim, Outcome
from holdfast.domain.plain import plain
from holdfast.domain.ports import Progress
from holdfast.engine import renew, settle
from holdfast.engine.rows import need
from holdfast.errors import Corrupt, FailureClass, HoldfastError, Refused, Stale, Unavailable
from holdfast.store import Tx
from holdfast.worker.branch import show_branch
from holdfast.worker.workshop import Workshop


async def run_attempt(shop: Workshop, claim: Claim) -> Decision | None:
    """Run a claimed attempt and settle it; None when another attempt owns the task by then."""
    _say(shop, claim, "attempt", f"{claim.fence.session} started")
    work = asyncio.create_task(_work(shop, claim))
    lease = asyncio.create_task(_keep_lease(shop, claim, work))
    try:
        decision, root = await work
    except Stale:
        _say(shop, claim, "attempt", f"{claim.fence.session} lost its lease")
        return None
    finally:
        work.cancel()
        lease.cancel()
        await asyncio.gather(work, lease, return_exceptions=True)
    # Only now: an attempt that has settled has no lease to keep, and nothing may cut this short.
    if root is not None and decision.event in ("succeed", "fail"):
        await asyncio.to_thread(show_branch, shop, claim.fence.goal)
        # The work is in the private git directory; the checkout was only a place to work in.
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)
    return decision


async def _work(shop: Workshop, claim: Claim) -> tuple[Decision, Path | None]:
    """Everything under the lease; also the checkout that can go once the work is shown.

    Whoever cancels it, and whenever, the attempt has ended when it returns or raises `Stale`.
    """
    try:
        return await _perform(shop, claim)
    except asyncio.CancelledError:
        return await asyncio.shield(give_back(shop, claim)), None


async def _perform(shop: Workshop, claim: Claim) -> tuple[Decision, Path | None]:
    try:
        repository = await asyncio.to_thread(shop.repository, claim)
        workspace = await asyncio.to_thread(shop.workspace, claim, repository)
        bundle, base_tree, claim = await _bundle(shop, claim, repository, workspace)
        outcome = await _execute(shop, claim, bundle, workspace, base_tree)
    except (Stale, Corrupt):
        raise  # a damaged store is no fault of the task: restored, the attempt goes on
    except Unavailable as error:
        return await _fail(shop, claim, "transient", error.code, str(error)), None
    except HoldfastError as error:
        return await _fail(shop, claim, "policy", error.code, str(error)), None
    except msgspec.MsgspecError as error:  # of the take's record: a fresh one needs none of it
        detail = f"a record of another version of Holdfast cannot be read: {error}"
        return await _fail(shop, claim, "logic", "divergence", detail), None
    except Exception as error:  # a full disk, else a bug, ours or a tool's: it ends with evidence
        if isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
            return await _fail(shop, claim, "transient", "disk_full", _where(error)), None
        return await _fail(shop, claim, "unknown", "crashed", _where(error)), None
    decision = await _settle(shop, claim, repository, workspace, outcome)
    return decision, workspace.root


async def _fail(
    shop: Workshop, claim: Claim, failure: FailureClass, reason: str, detail: str
) -> Decision:
    """End as failed by an error, whose words may be anyone's: names of files, a tool's own."""
    outcome = Outcome(kind="failed", failure=failure, reason=reason, detail=shop.redact(detail))
    return await shop.engine.acall(settle, claim.fence, outcome)


async def _execute(
    shop: Workshop, claim: Claim, bundle: Bundle, workspace: TaskWorkspace, base_tree: str
) -> Outcome:
    journal = LiveJournal(
        shop.engine,
        claim.fence,
        claim.steps,
        base_tree=base_tree,
        workspace=workspace,
        probe=shop.probe,
    )
    await asyncio.to_thread(workspace.restore, journal.last_tree())
    job = Job(
        bundle=bundle,
        journal=journal,
        workspace=workspace,
        model=shop.model,
        tools=bounded(shop.tools, bundle.task.effects, shop.redact),
        problems=shop.problems,
        cost=shop.cost,
        sink=shop.sink,
        fence=claim.fence,
        clock=shop.clock,
    )
    outcome = await execute(job)
    await journal.flush()
    return outcome


async def _bundle(
    shop: Workshop, claim: Claim, repository: Repository, workspace: TaskWorkspace
) -> tuple[Bundle, str, Claim]:
    """The take's bundle and base tree, recorded or made now; the claim has the steps of that."""
    if claim.bundle_sha256:
        content = shop.engine.read(Tx.get, claim.bundle_sha256)
        return msgspec.json.decode(content, type=Bundle), claim.base_tree, claim
    # Late: a take that goes on has its bundle, and needs nothing of what makes one.
    from holdfast.worker.gather import briefed  # noqa: PLC0415  see above

    return await briefed(shop, claim, repository, workspace.git_dir)


async def _settle(
    shop: Workshop,
    claim: Claim,
    repository: Repository,
    workspace: TaskWorkspace,
    outcome: Outcome,
) -> Decision:
    """Commit what was done and settle; merge if another was first."""
    while True:
        kept = await asyncio.to_thread(_commit, shop, claim, repository, workspace, outcome)
        try:
            decision = await shop.engine.acall(settle, claim.fence, kept)
        except Refused as refused:
            if refused.code != "tip_moved":
                raise
        else:
            said = f"{claim.fence.session} {kept.kind}: {_headline(kept)}"
            _say(shop, claim, "attempt", said)
            return decision


def _commit(
    shop: Workshop,
    claim: Claim,
    repository: Repository,
    workspace: TaskWorkspace,
    outcome: Outcome,
) -> Outcome:
    """The outcome with its commit, if anything changed; its objects are fetched before.

    Work that conflicts with the tip is committed where it began, and a task of its own merges it; a
    merge that conflicts itself begins again on the new tip, as does a command while it has takes,
    and work whose conflict is in a file that no context may name.
    """
    base_tree = workspace.tree_of(claim.base_commit or None)
    if not outcome.tree or outcome.tree == base_tree:
        return outcome
    from holdfast.worker.merging import merge_task, work_of  # noqa: PLC0415  as in `_bundle`

    goal = shop.engine.read(need, "goal", id=claim.fence.goal)
    tip = str(goal["branch_commit" if claim.spec.kind == "compensate" else "tip_commit"])
    tree, accepted = outcome.tree, outcome.kind in ("passed", "unverified")
    parents = [tip if accepted else claim.base_commit]
    ref = f"refs/holdfast/goals/{claim.fence.goal}"
    if tip != claim.base_commit and accepted:
        merged = workspace.merge(base_tree, repository.tree_of(tip), tree)
        names = ", ".join(merged.conflicts)
        if merged.tree is not None:
            tree = merged.tree
        elif _merged_apart(claim) and names == shop.redact(names):
            merge = merge_task(shop, claim, repository, tip, merged.conflicts)
            outcome = replace(outcome, tasks=(merge,))
            parents, ref = [claim.base_commit], f"refs/holdfast/conflicts/{claim.fence.task}"
        else:
            return replace(
                outcome,
                kind="failed",
                failure="logic",
                reason="merge_conflict",
                detail=f"the goal's branch changed the same lines: {shop.redact(names)}",
                fresh=True,
            )
    if claim.spec.merges and accepted:
        parents.append(shop.engine.read(work_of, claim.spec.merges).commit)
    commit = workspace.commit(
        tree,
        parents=[parent for parent in parents if parent],
        message=_message(claim, outcome),
        when_ms=shop.clock.now_ms(),
    )
    repository.fetch(workspace.git_dir, commit)
    repository.keep(ref, commit)
    return replace(outcome, commit=commit, parent=parents[0])


def _merged_apart(claim: Claim) -> bool:
    """Whether a model merges this work in a task of its own, if it conflicts.

    A command is run again on the new tip instead, which is exact and costs nothing, but not for
    ever: in its last take a model merges it too, if the goal names one.
    """
    spec = claim.spec
    last = claim.fence.take >= spec.policy.max_takes and bool(spec.model or claim.model)
    return not spec.merges and (spec.kind == "agent" or (spec.kind == "shell" and last))


async def give_back(shop: Workshop, claim: Claim) -> Decision:
    """End a claimed attempt as interrupted; its task is ready again, without a strike."""
    outcome = Outcome(kind="cancelled", failure="cancelled", reason="interrupted")
    return await shop.engine.acall(settle, claim.fence, outcome)


async def _keep_lease(
    shop: Workshop, claim: Claim, work: asyncio.Task[tuple[Decision, Path | None]]
) -> None:
    """Renew by a third of the lease; stop the work when asked to, or before the lease can end."""
    lease_s = claim.lease_s
    deadline = shop.clock.monotonic_s() + lease_s
    while not work.done():
        await shop.clock.sleep(lease_s / 3)
        try:
            answer = await shop.engine.acall(renew, claim.fence, lease_s=lease_s)
        except Stale:
            work.cancel()
            return
        except HoldfastError as error:
            if shop.clock.monotonic_s() + lease_s / 3 > deadline:
                _say(shop, claim, "lease", f"cannot renew: {error}")
                work.cancel()
                return
            continue
        deadline = shop.clock.monotonic_s() + lease_s
        if answer == "cancel":
            work.cancel()
            return


def _message(claim: Claim, outcome: Outcome) -> str:
    """A commit message whose trailers lead back to the journal."""
    spec = claim.spec
    body = [plain(spec.label)]
    if outcome.kind not in ("passed", "unverified"):
        body.append(f"Kept work of an attempt that ended {outcome.kind}: {outcome.reason}")
    elif outcome.answer:
        body.append(plain(outcome.answer.strip()))
    trailers = [
        f"Holdfast-Goal: {claim.fence.goal}",
        f"Holdfast-Task: {spec.key}",
        f"Holdfast-Attempt: {claim.fence.session}",
    ]
    return "\n\n".join([*body, "\n".join(trailers)]) + "\n"


def _headline(outcome: Outcome) -> str:
    text = outcome.detail or outcome.answer or outcome.reason
    return text.splitlines()[0][:200] if text else "done"


def _where(error: Exception) -> str:
    """An unexpected exception for a person: what, and the line that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


def _say(shop: Workshop, claim: Claim, kind: str, text: str) -> None:
    shop.sink.show(
        Progress(
            kind=kind,
            goal=claim.fence.goal,
            task=claim.spec.label,
            text=text,
            attempt=claim.fence.session,
        )
    )
