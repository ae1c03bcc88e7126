"""What can happen in a tick beside work: faults, people, and those who clean up after both.

A move arms a fault or does something at once; it never looks whether that breaks an invariant. What
it raises is the world's to handle.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from holdfast.agent.whole import ANSWER
from holdfast.domain.model import Fence, Outcome
from holdfast.engine import (
    approve,
    cancel,
    compensate,
    expire,
    force,
    holders,
    reject,
    reopen,
    resume,
    settle,
    signal,
)
from holdfast.engine import pause as pause_goal
from holdfast.errors import Stale
from simulate.ports import SPOKEN

if TYPE_CHECKING:
    from simulate.checkers import Rows
    from simulate.world import World

LEASE_S = 5.0
Move = Callable[["World"], None]


def nothing(world: World) -> None:
    """Most ticks only work goes on."""


# --- who cleans up --------------------------------------------------------------------------------


def reap(world: World) -> None:
    """Who holds a dead worker's lock expires its attempts; who is silent loses them by time."""
    alive = {process.name for process in world.processes}
    engine = world.engine()
    for worker, fence, until_ms in engine.read(holders):
        if worker not in alive:
            engine.call(expire, fence, reason="died")
        elif until_ms < world.clock.now_ms():
            engine.call(expire, fence, reason="silent")


def answer(world: World) -> None:
    """A person answers what waits: an approval, or whether a lost effect happened.

    They look first, and answer only when nobody can still be performing it.
    """
    rows = world.observer.rows
    for task_id, task in rows.tasks.items():
        if task["state"] != "waiting" or world.performing[task_id]:
            continue
        asked = [
            key
            for key, step in rows.steps.items()
            if key[:2] == (task_id, task["take"])
            and step["state"] == "unknown"
            and (*key[:2], f"{key[2]}/answer#{key[3]}", 1) not in rows.steps
        ]
        if not asked and (round_ := _gap(rows, task_id)):
            word = "redo" if world.chance.random() < 0.5 else "let it be"
            world.ask(signal, task_id, ANSWER.format(round=round_), word)
            continue
        if not asked:
            world.ask(signal, task_id, "approval", world.ports.redact(f"yes, by {SPOKEN}"))
            continue
        _, _, name, generation = asked[0]
        word = "it happened" if world.effects[task_id, name] else "redo"
        world.ask(signal, task_id, f"{name}/answer#{generation}", word)


def _gap(rows: Rows, task_id: int) -> int:
    """The round of a goal's checks that a person is asked about; 0 when they are asked else."""
    task = rows.tasks[task_id]
    if json.loads(rows.attempts[task_id, task["attempts"]]["report"])["reason"] != "gap":
        return 0
    return next(
        number
        for number in count(1)
        if (task_id, task["take"], ANSWER.format(round=number), 1) not in rows.steps
    )


def review(world: World) -> None:
    """A person lets a proposed plan run, or asks for another one, which the model says again."""
    for plan_id, plan in world.observer.rows.plans.items():
        if plan["state"] == "proposed":
            if world.chance.random() < 0.2:
                world.ask(reject, plan_id, reason=world.ports.redact(f"not with {SPOKEN}"))
            else:
                world.ask(approve, plan_id)


def go_on(world: World) -> None:
    for goal_id in world.observer.rows.goals:
        world.ask(resume, goal_id)


# --- faults ---------------------------------------------------------------------------------------


def late(world: World) -> None:
    """Time passes, nobody works: leases run out under workers that will wake up."""
    world.clock.advance(int(LEASE_S * 1000) + 1)
    reap(world)


def jump(world: World) -> None:
    ms = world.chance.choice((-3_600_000, -2000, 2000, 60_000))
    world.clock.jump(ms)
    world.happened["clock went forwards" if ms > 0 else "clock went back"] += 1


def crash(world: World) -> None:
    """A process dies at the n-th statement from now, before or after SQLite saw it."""
    wire = world.engine().wire
    wire.arm("crash", world.chance.randint(1, 25), after=world.chance.random() < 0.5)


def crash_at_boundary(world: World) -> None:
    """A process dies at the n-th boundary from now of a step or of a port."""
    world.engine().die_at_boundary(world.chance.randint(1, 8))


def kill(world: World) -> None:
    """A process dies between two statements, wherever its workers are."""
    world.bury(world.chance.choice(world.processes))
    world.happened["killed between statements"] += 1


def full_disk(world: World) -> None:
    world.engine().wire.arm("fail", world.chance.randint(1, 12))


def lost_reply(world: World) -> None:
    world.engine().wire.arm("lose")


def slow_model(world: World) -> None:
    world.ports.slow += 1


def malformed_model(world: World) -> None:
    world.ports.malformed += 1


def settle_again(world: World) -> None:
    """A report arrives a second time, much later: the same answer, or `Stale`, but no change."""
    if world.settled:
        fence, outcome = world.chance.choice(world.settled)
        if world.observer.rows.attempts[fence.task, fence.attempt]["state"] == "ended":
            world.happened["settled twice"] += 1
            world.ask(settle, fence, outcome)


def settle_late(world: World) -> None:
    """A zombie reports something else about an attempt that has ended; it must be refused."""
    rows = world.observer.rows
    ended = [key for key, row in rows.attempts.items() if row["state"] == "ended"]
    if ended:
        task, number = world.chance.choice(sorted(ended))
        take, goal = rows.attempts[task, number]["take"], rows.tasks[task]["goal_id"]
        fence = Fence(task=task, attempt=number, take=take, goal=goal)
        try:
            world.ask(settle, fence, Outcome(kind="unverified", answer="late"))
        except Stale:
            world.happened["settled late"] += 1


# --- people ---------------------------------------------------------------------------------------


def pause_one(world: World) -> None:
    world.ask(pause_goal, world.some_goal())


def cancel_one(world: World) -> None:
    if world.chance.random() < 0.15:
        world.ask(cancel, world.some_goal())


def force_one(world: World) -> None:
    if world.observer.rows.requires and world.chance.random() < 0.2:
        task_id, needed = world.chance.choice(world.observer.rows.requires)
        world.ask(force, task_id, needed, reason=world.ports.redact(f"{SPOKEN} insists"))


def reopen_one(world: World) -> None:
    """A person gives a goal that failed another chance."""
    for goal_id, goal in world.observer.rows.goals.items():
        if goal["state"] == "failed":
            world.ask(reopen, goal_id, reason=world.ports.redact(f"{SPOKEN} hopes"))
            world.happened["reopened"] += 1


def undo_one(world: World) -> None:
    world.ask(compensate, world.some_goal())


FAULTY: tuple[Move, ...] = (
    *(late, jump, crash, crash, crash_at_boundary, crash_at_boundary, kill, full_disk, lost_reply),
    *(slow_model, malformed_model, settle_again, settle_late),
)
CHAOS: tuple[Move, ...] = (
    *(nothing,) * 10,
    *(reap, review, answer, go_on) * 2,
    *FAULTY,
    *(pause_one, cancel_one, force_one, undo_one),
)
UNDOING: tuple[Move, ...] = (
    *(nothing,) * 4,
    *(reap, review, answer, go_on) * 2,
    *FAULTY,
    *(pause_one, force_one),
)
REOPENING: tuple[Move, ...] = (*CHAOS, *(reopen_one,) * 4)
