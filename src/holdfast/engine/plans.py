"""How plans come to be: proposed, approved, rejected, replaced, and given one more task.

Owns what makes a plan's rows. Which plan a goal works by follows from states alone: the planning
plan (one task that asks a model), then the revision it proposed or a person wrote. A goal is
`decomposing` until a revision is approved. Nothing here decides how a task ends.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain import contract, graph
from holdfast.domain.model import PlanSpec, TaskSpec
from holdfast.domain.tiers import guess, tier_of, with_limits
from holdfast.engine.moves import move_goal, move_plan, move_task
from holdfast.engine.rows import encode, need, spec_of
from holdfast.engine.schedule import order_plan
from holdfast.errors import Refused
from holdfast.store import Row, Tx, transition
from holdfast.trace.events import compact


def propose(tx: Tx, goal_id: int, plan: PlanSpec) -> int:
    """Add a validated revision to a goal, for approval; returns the plan's id."""
    validate(plan)
    plan_id = draft(tx, goal_id, plan.source)
    add_tasks(tx, goal_id, plan_id, plan.tasks)
    if plan.strategy != "dag":
        order_plan(tx, plan_id, plan.strategy)
    move_plan(tx, need(tx, "plan", id=plan_id), "draft", "propose")
    return plan_id


def draft(tx: Tx, goal_id: int, source: str) -> int:
    """Begin a goal's next revision, without tasks yet; returns the plan's id."""
    plan_id = tx.number("id.plan")
    transition(
        tx,
        "plan",
        "draft",
        source="",
        entity=str(plan_id),
        goal=goal_id,
        statement="draft",
        values={
            "id": plan_id,
            "goal": goal_id,
            "revision": tx.number("id.revision", goal=goal_id),
            "plan_source": source,
        },
    )
    return plan_id


def approve(tx: Tx, plan_id: int) -> int:
    """Let a proposed plan run, and its goal execute; returns the goal's id. Idempotent."""
    plan = need(tx, "plan", id=plan_id)
    if plan["state"] == "running":
        return int(plan["goal_id"])
    move_plan(tx, plan, plan["state"], "approve")
    goal = need(tx, "goal", id=plan["goal_id"])
    if goal["state"] == "decomposing" and plan["source"] not in ("planning", "undo"):
        move_goal(tx, goal["id"], "decomposing", "execute")
    return int(goal["id"])


def reject(tx: Tx, plan_id: int, *, reason: str) -> int:
    """Refuse a proposed plan; returns the goal's id.

    The model that proposed it is asked again, and told why; a goal whose plan a person wrote fails,
    because nobody is left to plan it.
    """
    if not reason.strip():
        raise Refused("a rejection needs a reason", hint='--reason "what is wrong with it"')
    plan = need(tx, "plan", id=plan_id)
    move_plan(tx, plan, plan["state"], "reject", reason=reason)
    _cancel_tasks(tx, plan_id, f"plan {plan['revision']} was rejected")
    goal_id, planning = int(plan["goal_id"]), _planning(tx, plan["goal_id"])
    if planning is None:
        move_goal(tx, goal_id, "decomposing", "fail", reason="plan_rejected")
    else:
        approve(tx, propose(tx, goal_id, PlanSpec(tasks=(planning,), source="planning")))
    return goal_id


def replace_plan(tx: Tx, goal_id: int, plan: PlanSpec, *, review: bool = False) -> int:
    """A person's plan for a goal that is being planned; what was proposed before is superseded.

    It runs at once unless `review` leaves it proposed. Returns the plan's id.
    """
    goal = need(tx, "goal", id=goal_id)
    if goal["state"] != "decomposing":
        raise Refused(
            f"goal {goal_id} is {goal['state']}; only a goal that is being planned takes a plan",
            hint="start another goal with `holdfast run --plan FILE`",
        )
    for before in tx.all("plan.of_goal", goal=goal_id):
        if before["state"] in ("draft", "proposed", "running", "paused"):
            _refuse_at_work(tx, before)
            move_plan(tx, before, before["state"], "supersede", reason="a person wrote another")
            _cancel_tasks(tx, before["id"], f"plan {before['revision']} is superseded")
    plan_id = propose(tx, goal_id, plan)
    if not review:
        approve(tx, plan_id)
    return plan_id


def validate(plan: PlanSpec) -> None:
    """Refuse a plan that cannot be: empty, a key twice, a missing requirement, a loop, a clause."""
    if not plan.tasks:
        raise Refused("a plan needs at least one task", code="plan_empty")
    keys = [task.key for task in plan.tasks]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise Refused(f"the plan names {twice[0]!r} twice", code="plan_duplicate")
    graph.validate({task.key: task.requires for task in plan.tasks})
    for task in plan.tasks:
        try:
            contract.validate(task)
        except Refused as error:
            raise Refused(
                f"task {task.key!r}: {error.message}", hint=error.hint, code=error.code
            ) from error


def add_tasks(tx: Tx, goal_id: int, plan_id: int, specs: Sequence[TaskSpec]) -> list[int]:
    """Append tasks to a plan, with links by key to each other and to its tasks; returns their ids.

    A task begins blocked while one of its requirements has not succeeded.
    """
    there = tx.all("task.of_plan", plan=plan_id)
    ids = {task["key"]: int(task["id"]) for task in there}
    done = {task["key"] for task in there if task["state"] == "succeeded"}
    made = []
    for position, spec in enumerate(specs, start=len(there)):
        ids[spec.key] = task_id = tx.number("id.task")
        made.append(task_id)
        waits = [key for key in spec.requires if key not in done]
        transition(
            tx,
            "task",
            "block" if waits else "unblock",
            source="",
            entity=str(task_id),
            goal=goal_id,
            task=task_id,
            statement="create",
            reason="waits for " + ", ".join(waits) if waits else "",
            values={
                "id": task_id,
                "plan": plan_id,
                "goal": goal_id,
                "key": spec.key,
                "position": position,
                "priority": spec.rank,
                "spec": encode(with_limits(spec)).decode(),
            },
        )
        _record_tier(tx, goal_id, task_id, spec)
    for spec in specs:
        for kind, keys in (("requires", spec.requires), ("refers", spec.refers)):
            for key in keys:
                if key not in ids:
                    raise Refused(f"task {spec.key!r} refers to {key!r}, which is not in the plan")
                tx.run("link.add", from_id=ids[spec.key], to_id=ids[key], kind=kind)
    return made


def _record_tier(tx: Tx, goal_id: int, task_id: int, spec: TaskSpec) -> None:
    """The tier in force beside what the heuristic says, so that the two can be compared."""
    if spec.kind not in ("agent", "model"):
        return
    found = guess(spec)
    said = "was said" if spec.tier != "unknown" else "was not said"
    reason = f"the tier {said}; the heuristic says {found.tier}: {found.reason}"
    body = {"question": "which tier?", "answer": tier_of(spec), "reason": reason}
    tx.log("decision", encode(compact("decision", body)), goal=goal_id, task=task_id)


def _planning(tx: Tx, goal_id: int) -> TaskSpec | None:
    """The task that plans this goal, as it was asked for; None when no model does."""
    for plan in tx.all("plan.of_goal", goal=goal_id):
        if plan["source"] == "planning":
            for task in tx.all("task.of_plan", plan=plan["id"]):  # none: they went on elsewhere
                return spec_of(task)
    return None


def _refuse_at_work(tx: Tx, plan: Row) -> None:
    busy = [task for task in tx.all("task.of_plan", plan=plan["id"]) if task["state"] == "running"]
    if busy:
        raise Refused(
            f"task {busy[0]['id']} ({busy[0]['key']}) is running",
            hint=f"holdfast plan pause {plan['id']}, then give the plan again",
        )


def _cancel_tasks(tx: Tx, plan_id: int, reason: str) -> None:
    for task in tx.all("task.of_plan", plan=plan_id):
        if task["state"] in ("blocked", "ready", "waiting"):
            move_task(tx, task, "cancel", reason=reason)
