"""Strategies that turn an attempt into an outcome: agent loop, single model call, shell, and more.

One table, one shape: a `Job` in, an `Outcome` out. `execute` also turns the expected ends that come
as exceptions into outcomes; bugs and lost leases pass through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict

import msgspec

from holdfast.adapters.tools.bounds import clause, listed, take_back
from holdfast.agent import evidence, loop
from holdfast.agent.chain import chain
from holdfast.agent.conversation import Conversation, encode
from holdfast.agent.journal import Effectful, Performed, Undecided
from holdfast.agent.loop import Job
from holdfast.agent.undo import undo
from holdfast.agent.whole import verify_goal
from holdfast.domain.model import Outcome, TaskKind
from holdfast.domain.ports import CommandResult
from holdfast.errors import Divergence, Exhausted, ModelError, Refused, Stale, Unavailable
from holdfast.frozen import frozen


async def execute(job: Job) -> Outcome:
    """Run the task's executor; failure is an outcome with its class, never a success.

    `Stale` passes through: an attempt that lost its lease has nothing to report.
    """
    try:
        return await perform(job)
    except Undecided as error:
        return Outcome(kind="waiting", reason="undecided", detail=_evidence(error))
    except ModelError as error:
        return Outcome(
            kind="failed",
            failure=error.failure_class,
            reason=error.code,
            detail=str(error),
            retry_after_s=error.retry_after_s,
            tree=job.journal.tree,
        )
    except Divergence as error:
        return Outcome(
            kind="failed", failure="logic", reason="divergence", detail=str(error), fresh=True
        )
    except Exhausted as error:
        return Outcome(
            kind="partial",
            failure="budget",
            reason=error.resource,
            detail=str(error),
            remaining=("the budget is spent",),
            tree=job.journal.tree,
        )
    except Stale:
        raise
    except Unavailable as error:
        return Outcome(kind="failed", failure="transient", reason=error.code, detail=str(error))
    except Refused as error:
        return Outcome(kind="failed", failure="policy", reason=error.code, detail=str(error))


async def perform(job: Job) -> Outcome:
    """The attempt itself, live, resumed or replayed: its preconditions, then its executor."""
    unmet = await loop.preconditions(job)
    return unmet if unmet is not None else await EXECUTORS[job.bundle.task.kind](job)


async def agent(job: Job) -> Outcome:
    """The loop. A merge whose conflict went away before it began asks no model."""
    task = job.bundle.task
    if task.merges and not task.files:
        answer = "Nothing was in conflict any more."
        return await loop.conclude(job, answer, await loop.check(job, "v01"))
    return await loop.run(job)


async def single(job: Job) -> Outcome:
    """One model call without tools; its text is the answer, then the checks."""
    bundle = job.bundle
    talk = Conversation(
        model=chain(bundle.model)[0],
        seed=bundle.seed,
        tools=(),
        system=bundle.system,
        user=bundle.user,
    )
    said = await loop.ask(job, talk, "t001")
    results = await loop.check(job, "v01")
    return await loop.conclude(job, said.actions.answer, results, rules=bundle.index_rules)


@frozen
class Ran(CommandResult):
    """A shell task's command, and what it wrote outside the task's effects (taken back)."""

    outside: tuple[str, ...] = ()


async def shell(job: Job) -> Outcome:
    """One command in the sandbox, no model; exit code 0 is success, then the checks."""
    task = job.bundle.task

    async def perform() -> Performed:
        before = job.journal.tree
        done = await job.workspace.sandbox.run(
            task.command, root=job.workspace.root, timeout_s=task.policy.attempt_s
        )
        names = await asyncio.to_thread(take_back, job.workspace, before, task.effects)
        ran = Ran(**asdict(done), outside=tuple(names))
        return Performed(result=encode(ran), events=(evidence.command_output("command", done),))

    content = await job.journal.step(
        Effectful(
            key="command",
            kind="tool",
            effect="compensable",
            request=encode({"command": task.command}),
            perform=perform,
            writes=True,
        )
    )
    ran = msgspec.json.decode(content, type=Ran)
    answer = (ran.stdout + ran.stderr)[-2000:]
    if ran.exit_code == 0 and not ran.timed_out and not ran.outside:
        return await loop.conclude(job, answer, await loop.check(job, "v01"))
    await job.journal.flush()
    if ran.outside:
        detail = f"it wrote {listed(ran.outside)}: {clause(task.effects or ())}"
        return Outcome(
            kind="failed", failure="policy", reason="outside_effects", detail=detail, answer=answer
        )
    return Outcome(
        kind="failed",
        failure="logic",
        reason="command_timeout" if ran.timed_out else "command_failed",
        detail=f"exit code {ran.exit_code}: {answer[-500:]}",
        answer=answer,
        tree=job.journal.tree,
    )


async def plan(job: Job) -> Outcome:
    """See `agent.planner`."""
    from holdfast.agent.planner import plan as planned  # noqa: PLC0415  most attempts never plan

    return await planned(job)


def _evidence(error: Undecided) -> str:
    return f"{error.row.key}#{error.row.generation}: {error.row.request.decode()[:500]}"


EXECUTORS: Mapping[TaskKind, Callable[[Job], Awaitable[Outcome]]] = {
    "agent": agent,
    "model": single,
    "shell": shell,
    "plan": plan,
    "verify": verify_goal,
    "compensate": undo,
}
