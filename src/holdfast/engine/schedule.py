"""The order of a plan's tasks: which may start when, and which strategy says so.

Owns no state: a strategy is written down as the priorities of tasks that are there, and a
requirement always comes first.
"""

from __future__ import annotations

from typing import Any, get_args

from holdfast.domain import graph
from holdfast.domain.model import Strategy
from holdfast.engine.rows import need, spec_of
from holdfast.errors import Refused
from holdfast.store import Tx

Json = dict[str, Any]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def requires_dag_schedule(
    tx: Tx, plan_id: int | None = None, *, strategy: Strategy = "dag"
) -> Json:
    """The order in which a plan's tasks may start, and which never will as things stand.

    Without `plan_id`, the tasks of all plans that are running or paused. `dag` is topological, ties
    by priority (higher first), then id; `bfs` goes level by level, and starts nothing earlier than
    its requirements either. `cycles` can only hold links that another program wrote into the store.
    """
    if strategy not in STRATEGIES:
        raise Refused(f"there is no strategy {strategy!r}", hint=", ".join(STRATEGIES))
    plans = _live_plans(tx) if plan_id is None else [need(tx, "plan", id=plan_id)["id"]]
    tasks = {row["id"]: row for plan in plans for row in tx.all("task.of_plan", plan=plan)}
    requires: dict[int, list[int]] = {task: [] for task in sorted(tasks)}
    for row in (row for plan in plans for row in tx.all("link.of_plan", plan=plan)):
        if row["to_id"] in tasks:
            requires[row["from_id"]].append(row["to_id"])
    loops = graph.cycles(requires)
    looped = {task for loop in loops for task in loop.members}
    sound = {
        task: [other for other in needed if other not in looped]
        for task, needed in requires.items()
        if task not in looped
    }
    named = {str(task): [str(other) for other in needed] for task, needed in sound.items()}
    wish = {str(task): spec_of(tasks[task]).rank for task in sound}
    order = graph.order(named, wish)
    if strategy == "bfs":
        level = graph.levels(named)
        order.sort(key=lambda key: (level[key], -wish[key], int(key)))
    return {
        "strategy": strategy,
        "order": [int(key) for key in order],
        "blocked": {
            task: [row["id"] for row in tx.all("task.unmet", id=task)]
            for task in requires
            if tx.all("task.unmet", id=task)
        },
        "cycles": [
            {"members": loop.members, "loop": loop.loop, "remove": loop.remove} for loop in loops
        ],
    }


def order_plan(tx: Tx, plan_id: int, strategy: Strategy) -> None:
    """Let a plan's ready tasks start in the order of a strategy from now on. Idempotent.

    `bfs` is written down as priorities below zero, so that it favours no plan over another's.
    """
    order = requires_dag_schedule(tx, plan_id, strategy=strategy)["order"]
    rank = {task: index for index, task in enumerate(order)}
    for row in tx.all("task.of_plan", plan=plan_id):
        wished = spec_of(row).rank
        priority = wished if strategy == "dag" else -rank.get(row["id"], len(rank))
        tx.run("task.prioritise", id=row["id"], priority=priority)


def _live_plans(tx: Tx) -> list[int]:
    goals = [row["id"] for row in tx.all("goal.live")]
    plans = [plan for goal in goals for plan in tx.all("plan.of_goal", goal=goal)]
    return [plan["id"] for plan in plans if plan["state"] in ("running", "paused")]
