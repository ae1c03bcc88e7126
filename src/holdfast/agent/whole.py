"""The executor of a goal's own checks: they run on the merged tree, and a gap asks for a follow-up.

Each take of the task is one round. A round that fails while takes are left ends as a logic failure
that asks for one task, to mend what failed; whether it did, the next round says. The last round
waits for a person, who says `redo` (look again) or why it is given up. A plan without follow-ups
(one take) fails at once.
"""

from __future__ import annotations

from itertools import count

import msgspec

from holdfast.agent import loop
from holdfast.agent.loop import Job
from holdfast.agent.verify import corrective, describe, proven
from holdfast.domain.model import CheckResult, Outcome, TaskSpec

ANSWER = "gap/answer#{round}"


async def verify_goal(job: Job) -> Outcome:
    """Run the goal's checks; see the module for what follows when one does not pass."""
    for number in count(1):
        results = await loop.check(job, f"v{number:02}")
        await job.journal.flush()
        outcome = judge(job, results, number)
        if outcome is not None:
            return outcome
    raise AssertionError("count() does not end")


def judge(job: Job, results: tuple[CheckResult, ...], number: int) -> Outcome | None:
    """What the results of a take's n-th look mean; None when a person said to look again."""
    task = job.bundle.task
    if proven(results):
        done = tuple(describe(result) for result in results)
        answer = "The goal's checks pass on the merged tree."
        return Outcome(
            kind="passed", answer=answer, checks=results, done=done, tree=job.journal.tree
        )
    if job.fence.take < task.policy.max_takes:
        return _gap(job, results, tasks=(_follow_up(job, results),))
    if task.policy.max_takes == 1:
        return _gap(job, results)
    word = job.journal.recorded(ANSWER.format(round=number))
    if word is None:
        detail = f"{_said(results)} after {task.policy.max_takes - 1} follow-ups"
        return Outcome(kind="waiting", reason="gap", detail=detail, checks=results)
    said = msgspec.json.decode(word, type=str)
    return None if said == "redo" else _gap(job, results, said=f"; a person says: {said}")


def _gap(
    job: Job,
    results: tuple[CheckResult, ...],
    *,
    tasks: tuple[TaskSpec, ...] = (),
    said: str = "",
) -> Outcome:
    return Outcome(
        kind="failed",
        failure="logic",
        reason="checks_failed",
        detail=_said(results) + said,
        checks=results,
        done=tuple(describe(result) for result in results if result.verdict == "pass"),
        remaining=tuple(describe(result) for result in results if result.verdict != "pass"),
        tree=job.journal.tree,
        tasks=tasks,
    )


def _follow_up(job: Job, results: tuple[CheckResult, ...]) -> TaskSpec:
    task = job.bundle.task
    number = job.fence.take
    return TaskSpec(
        key=f"{task.key}-mend-{number}",
        title=f"Mend what the goal's checks found, round {number}",
        prompt=corrective(job.bundle.templates["follow_up"], results),
        checks=task.checks,
        refers=task.requires,
        policy=task.policy,
        provisional=True,
    )


def _said(results: tuple[CheckResult, ...]) -> str:
    return "; ".join(describe(result) for result in results if result.verdict != "pass")
