"""The worker: claims ready tasks into its slots until the goal rests, and reaps dead workers.

A goal rests when nothing of it is ready or running: it is complete, failed, paused, or waits for a
person. A worker that is cancelled lets its attempts settle as interrupted first.
"""

from __future__ import annotations

import asyncio

from holdfast.domain.decide import Decision
from holdfast.domain.model import Claim
from holdfast.engine import claim
from holdfast.engine.outlook import Outlook, outlook
from holdfast.engine.undo import compensate_failed, undo_due
from holdfast.worker.attempt import give_back, run_attempt
from holdfast.worker.liveness import reap
from holdfast.worker.workshop import Workshop

POLL_S = 0.2


async def run_goal(shop: Workshop, goal: int) -> None:
    """Work on one goal until it rests; other processes may work on it at the same time."""
    running: set[asyncio.Task[Decision | None]] = set()
    try:
        while True:
            reap(shop.engine, shop.home, shop.worker, shop.clock)
            _ = shop.sandbox  # refused before anything is claimed when commands have no wall
            await _fill_slots(shop, goal, running)
            if running:
                done, running = await asyncio.wait(
                    running, timeout=POLL_S, return_when=asyncio.FIRST_COMPLETED
                )
                for finished in done:
                    finished.result()  # a bug in an attempt ends the worker, loudly
                continue
            ahead = shop.engine.read(outlook, goal)
            if ahead.ready_ms is None and not ahead.running:
                if not shop.engine.read(undo_due, goal):
                    return
                await shop.engine.acall(compensate_failed, goal)
                continue
            await shop.clock.sleep(_pause_s(shop, ahead))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _fill_slots(
    shop: Workshop, goal: int, running: set[asyncio.Task[Decision | None]]
) -> None:
    while len(running) < shop.settings.slots:
        granted = await _claim(shop, goal)
        if granted is None:
            return
        running.add(asyncio.create_task(run_attempt(shop, granted)))


async def _claim(shop: Workshop, goal: int) -> Claim | None:
    """The next task. One that was granted while we were cancelled is given back."""
    asked = asyncio.ensure_future(
        shop.engine.acall(claim, shop.worker, lease_s=shop.settings.lease_s, goal=goal)
    )
    try:
        return await asyncio.shield(asked)
    except asyncio.CancelledError:
        granted = await asked
        if granted is not None:
            await give_back(shop, granted)
        raise


def _pause_s(shop: Workshop, ahead: Outlook) -> float:
    """Until the next task may start, but never longer than a look at what others do."""
    if ahead.ready_ms is None or ahead.running:
        return POLL_S
    until = (ahead.ready_ms - shop.clock.now_ms()) / 1000
    return min(max(until, 0.0) + 0.001, POLL_S)
