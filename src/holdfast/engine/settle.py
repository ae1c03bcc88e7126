"""Use cases that end an attempt, and what follows for its task, plan and goal, in one transaction.

`settle` ends it with an outcome, `expire` without one. `decide` alone chooses the task's event.
A late settle of an expired attempt is `Stale`: its work is evidence, never applied. An outcome may
ask for tasks: a planning task for a plan, a goal's checks for a follow-up, conflicting work for its
merge. They are rows of the same transaction, so they are never asked for twice.
"""

from __future__ import annotations

from typing import Any

from holdfast.context.retrieve import add_document
from holdfast.domain.decide import Decision, History, decide
from holdfast.domain.model import Fence, Outcome, PlanSpec
from holdfast.engine.moves import move_goal, move_plan, move_task
from holdfast.engine.plans import add_tasks, approve, propose
from holdfast.engine.rows import decode, encode, need, outcome_of, spec_of
from holdfast.engine.steering import accept_index
from holdfast.errors import Refused, Stale
from holdfast.store import Row, Tx, transition
from holdfast.trace.events import compact


def settle(tx: Tx, fence: Fence, outcome: Outcome) -> Decision:
    """End the attempt; the task succeeds, retries, waits, fails or is cancelled accordingly.

    Idempotent for the same outcome: a repeated report of an ended attempt gets the same answer.
    """
    attempt = need(tx, "attempt", task=fence.task, attempt=fence.attempt)
    task = need(tx, "task", id=fence.task)
    report = encode(outcome).decode()
    if attempt["state"] != "open":
        if attempt["report"] == report:
            return decide(outcome, _history_then(tx, task, attempt), spec_of(task).policy)
        raise Stale(
            f"attempt {fence.session} has ended ({attempt['outcome']})",
            hint="another attempt owns the task now",
        )
    _proven(fence, outcome)
    _builds_on_tip(tx, task, outcome)
    return _end(tx, task, attempt, "settle", outcome, report)


def expire(tx: Tx, fence: Fence, *, reason: str = "lost") -> Decision | None:
    """End an attempt whose worker is dead or silent; None when it has ended already."""
    attempt = need(tx, "attempt", task=fence.task, attempt=fence.attempt)
    if attempt["state"] != "open":
        return None
    outcome = Outcome(kind="expired", failure="transient", reason=reason)
    task = need(tx, "task", id=fence.task)
    return _end(tx, task, attempt, "expire", outcome, encode(outcome).decode())


def end_cancelled(tx: Tx, task: Row, reason: str) -> None:
    """End the open attempt of a running task because its goal was dropped."""
    attempt = need(tx, "attempt", task=task["id"], attempt=task["attempts"])
    outcome = Outcome(kind="cancelled", failure="cancelled", reason=reason)
    _end(tx, task, attempt, "settle", outcome, encode(outcome).decode())


def shown(tx: Tx, goal: int, commit: str) -> None:
    """Remember that the user's branch shows a commit, so that only the missing is shown again."""
    tx.run("goal.shown", id=goal, commit=commit)


def conflicts(outcome: Outcome) -> bool:
    """True for work that is whole but not on the tip: a task it asks for merges it."""
    return any(task.merges for task in outcome.tasks)


def unblock(tx: Tx, task: Row) -> None:
    """Let a blocked task start once nothing it requires is unmet. Idempotent."""
    if task["state"] != "blocked" or tx.all("task.unmet", id=task["id"]):
        return
    move_task(tx, task, "unblock")


def plan_progress(tx: Tx, plan_id: int) -> None:
    """Finish a plan whose tasks all succeeded; break one that can no longer go on. Idempotent."""
    plan = need(tx, "plan", id=plan_id)
    if plan["state"] not in ("running", "paused"):
        return
    standing = tx.one("plan.standing", plan=plan_id)
    assert standing is not None
    if standing["going"]:
        return
    if standing["stopped"]:
        stopped = tx.one("task.stopped", plan=plan_id)
        assert stopped is not None
        _broken(tx, plan, stopped)
    elif not standing["blocked"]:
        if plan["state"] == "paused":
            move_plan(tx, plan, "paused", "resume")
        move_plan(tx, plan, "running", "finish")
        _finished(tx, plan)


def _end(tx: Tx, task: Row, attempt: Row, event: str, outcome: Outcome, report: str) -> Decision:
    decision = decide(outcome, _history(tx, task, attempt), spec_of(task).policy)
    key = {"task": task["id"], "attempt": attempt["number"]}
    # A call that was cut short may have been served: its reserve counts as spent, an estimate.
    cut_short = event == "expire" or outcome.kind == "cancelled"
    orphans = tx.all("attempt.orphans", take=attempt["take"], **key) if cut_short else []
    transition(
        tx,
        "attempt",
        event,
        source="open",
        entity=f"{task['id']}.{attempt['number']}",
        goal=task["goal_id"],
        reason=outcome.reason,
        values={
            "outcome": outcome.kind,
            "failure": outcome.failure or "",
            "report": report,
            "orphan_tokens": attempt["reserved_tokens"] if cut_short else 0,
            "orphan_nusd": sum(orphan["cost_nusd"] or 0 for orphan in orphans),
            "orphan_unpriced": sum(orphan["cost_nusd"] is None for orphan in orphans),
            **key,
        },
        **key,
    )
    for orphan in orphans:
        _record_orphan(tx, task, attempt, orphan)
    if outcome.failure is not None and outcome.kind != "expired":
        _record_failure(tx, task, attempt, outcome)
    _remember(tx, task, attempt["number"], outcome)
    accept_index(tx, task, attempt["number"], outcome)
    _move_task(tx, task, outcome, decision)
    return decision


def _record_orphan(tx: Tx, task: Row, attempt: Row, orphan: Row) -> None:
    """The call that nobody saw answered, so that the events' sums are the ledger's to the unit."""
    payload = {
        "call_id": orphan["key"],
        "model": _asked_model(tx, task["id"], attempt["take"], orphan["position"]),
        "tokens_in": orphan["reserve_tokens"],
        "tokens_out": 0,
        "cost_nusd": orphan["cost_nusd"],
        "estimated": True,
        "error": {"type": "orphaned", "msg": "no reply was seen; its reserve counts as spent"},
        "step": orphan["key"],
    }
    tx.log(
        "llm_call",
        encode(compact("llm_call", payload)),
        goal=task["goal_id"],
        task=task["id"],
        attempt=attempt["number"],
    )


def _asked_model(tx: Tx, task: int, take: int, position: int) -> str:
    """Whom a step asked: a request names its model where it is another than in the one before."""
    for row in tx.all("step.asked_before", task=task, take=take, position=position):
        request = decode(tx.unpack(row["request"], verify=False), Any)
        if isinstance(request, dict) and request.get("model"):
            return str(request["model"])
    return "unknown"


def _record_failure(tx: Tx, task: Row, attempt: Row, outcome: Outcome) -> None:
    error = {"type": outcome.failure, "msg": f"{outcome.reason}: {outcome.detail}"}
    tx.log(
        "failure",
        encode(compact("failure", {"error": error, "origin": "attempt"})),
        goal=task["goal_id"],
        task=task["id"],
        attempt=attempt["number"],
    )


def _remember(tx: Tx, task: Row, attempt: int, outcome: Outcome) -> None:
    """Index what an attempt answered, or how it failed, for the later tasks of its plan."""
    match outcome.kind:
        case "passed" | "unverified":
            kind, text = "output", outcome.answer
        case "failed" | "partial":
            kind, text = "incident", outcome.detail
        case _:
            return
    if text.strip():
        add_document(
            tx,
            "output" if kind == "output" else "incident",
            f"{task['id']}.{attempt}",
            title=spec_of(task).label,
            body=text,
            task=task["id"],
            plan=task["plan_id"],
        )


def _proven(fence: Fence, outcome: Outcome) -> None:
    """I11: passed means that there was a check and every one passed, whoever says it."""
    verdicts = {check.verdict for check in outcome.checks}
    if outcome.kind == "passed" and verdicts != {"pass"}:
        said = ", ".join(sorted(verdicts)) or "nothing"
        raise Refused(
            f"attempt {fence.session} says passed, but its checks say {said}",
            hint="without a check that passed it is unverified",
            code="not_proven",
        )


def _builds_on_tip(tx: Tx, task: Row, outcome: Outcome) -> None:
    """Work is accepted on the tip it was merged with, or not yet: another task was first."""
    if outcome.kind not in ("passed", "unverified") or not outcome.commit or conflicts(outcome):
        return
    undoing = need(tx, "plan", id=task["plan_id"])["source"] == "undo"
    tip = need(tx, "goal", id=task["goal_id"])["branch_commit" if undoing else "tip_commit"]
    if outcome.parent != tip and outcome.commit != tip:
        raise Refused(
            f"the goal's branch moved to {tip[:12]} meanwhile",
            hint="merge with it and settle again",
            code="tip_moved",
        )


def _move_task(tx: Tx, task: Row, outcome: Outcome, decision: Decision) -> None:
    move_task(
        tx,
        task,
        decision.event,
        reason=decision.reason,
        statement=decision.event if decision.event in ("succeed", "retry", "fail") else "",
        strikes=decision.strikes,
        take_open=0 if decision.fresh else 1,
        # Without a delay no clock is asked: it may be set back, and the task would wait for it.
        not_before_ms=tx.now_ms + decision.delay_ms if decision.delay_ms else 0,
        commit="" if conflicts(outcome) else outcome.commit,
    )
    if outcome.tasks:
        _ask_for(tx, need(tx, "task", id=task["id"]), outcome, decision)
    if decision.event == "succeed":
        if outcome.commit and not conflicts(outcome):
            tx.run("goal.accept", id=task["goal_id"], commit=outcome.commit)
        for dependant in tx.all("task.dependants", id=task["id"]):
            unblock(tx, dependant)
    elif decision.event == "fail" and outcome.commit:
        tx.run("goal.keep", id=task["goal_id"], commit=outcome.commit)
    plan_progress(tx, task["plan_id"])


def _ask_for(tx: Tx, task: Row, outcome: Outcome, decision: Decision) -> None:
    """Make the tasks that an outcome asks for; none when its task has ended without success."""
    spec, goal = spec_of(task), task["goal_id"]
    if spec.planning is not None and decision.event == "succeed":
        order = spec.planning.strategy
        plan = propose(tx, goal, PlanSpec(tasks=outcome.tasks, source="model", strategy=order))
        if not spec.planning.review:
            approve(tx, plan)
    elif decision.event == "succeed":  # merges: who waited for the task waits for them as well
        waiting = tx.all("task.dependants", id=task["id"])
        made = add_tasks(tx, goal, task["plan_id"], outcome.tasks)
        _require(tx, [row["id"] for row in waiting if row["state"] == "blocked"], made)
    elif decision.event == "retry":  # follow-ups: the task looks again once they are done
        _require(tx, [task["id"]], add_tasks(tx, goal, task["plan_id"], outcome.tasks))
        keys = ", ".join(other.key for other in outcome.tasks)
        move_task(tx, task, "block", reason=f"waits for {keys}")
        if need(tx, "goal", id=goal)["state"] == "verifying":
            move_goal(tx, goal, "verifying", "gap", reason=f"{task['key']} failed: {keys}")


def _require(tx: Tx, tasks: list[int], needed: list[int]) -> None:
    for task in tasks:
        for other in needed:
            tx.run("link.add", from_id=task, to_id=other, kind="requires")


def _finished(tx: Tx, plan: Row) -> None:
    goal = need(tx, "goal", id=plan["goal_id"])
    if plan["source"] == "planning":
        return
    if plan["source"] == "undo":
        tx.run("goal.undone", id=goal["id"])
        for task in tx.all("task.of_goal", goal=goal["id"]):
            if task["plan_id"] != plan["id"]:
                tx.run("task.undone", id=task["id"])
        return
    if goal["tip_commit"]:  # not what a failed take kept, which a fresh one may not have needed
        tx.run("goal.accept", id=goal["id"], commit=goal["tip_commit"])
    if goal["state"] == "executing":
        move_goal(tx, goal["id"], "executing", "verify")
    move_goal(tx, goal["id"], "verifying", "complete")


def _broken(tx: Tx, plan: Row, stopped: Row) -> None:
    """Nothing of a broken plan can run: its work is kept, so there is nothing to compensate."""
    if stopped["state"] == "cancelled":
        move_plan(tx, plan, plan["state"], "cancel", reason=stopped["reason"])
    else:
        if plan["state"] == "paused":
            move_plan(tx, plan, "paused", "resume")
        move_plan(tx, plan, "running", "break", reason=f"task {stopped['key']} failed")
        move_plan(tx, plan, "compensating", "undone", reason="the work is kept")
    goal = need(tx, "goal", id=plan["goal_id"])
    if plan["source"] == "undo" or goal["state"] not in ("decomposing", "executing", "verifying"):
        return
    event = "drop" if stopped["state"] == "cancelled" else "fail"
    move_goal(tx, goal["id"], goal["state"], event, reason=stopped["reason"])


def _history(tx: Tx, task: Row, attempt: Row) -> History:
    goal = need(tx, "goal", id=task["goal_id"])
    return History(
        strikes=task["strikes"],
        takes=task["take"],
        progressed=attempt["steps"] > 0,
        seed=goal["seed"],
    )


def _history_then(tx: Tx, task: Row, attempt: Row) -> History:
    """What an ended attempt was judged by: strikes counted since do not change the answer."""
    policy, strikes = spec_of(task).policy, 0
    now = _history(tx, task, attempt)
    for row in tx.all("attempt.of_task", task=task["id"]):
        history = History(
            strikes=strikes, takes=row["take"], progressed=row["steps"] > 0, seed=now.seed
        )
        if row["number"] == attempt["number"]:
            return history
        then = decide(outcome_of(row), history, policy)
        strikes = 0 if then.event == "fail" else then.strikes  # reopened: it counts anew
    raise AssertionError("an attempt is among the attempts of its task")
