"""Runs that a server starts: goals that one process works on, each a task of its event loop.

Owns which goal a request means and that no goal is worked on twice here. What a run is, and that it
survives a kill, is the engine's. Close it before the loop ends: what runs is given back, ready.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from holdfast.app import App
from holdfast.app.desk import with_changes
from holdfast.app.goals import Wish, note, policy, resumable, start
from holdfast.domain.model import Budget, ContextOptions, Strategy
from holdfast.engine import resume
from holdfast.engine.outlook import goal_result
from holdfast.engine.schedule import order_plan
from holdfast.engine.steering import need_sources
from holdfast.errors import HoldfastError, Refused
from holdfast.store import Tx
from holdfast.web.bodies import Json, RunBody
from holdfast.worker.branch import show_branch
from holdfast.worker.liveness import LifeLine
from holdfast.worker.run import run_goal


class Runs:
    """See the module. All its methods run on one event loop."""

    def __init__(self, app: App, repo: Path) -> None:
        self._app, self._repo = app, repo
        self._going: dict[int, asyncio.Task[None]] = {}
        self._starting = asyncio.Lock()
        self._line: LifeLine | None = None

    async def run(self, asked: RunBody) -> Json:
        """Start or go on; answers at once, or with `wait` when the goals rest.

        A title is the goal's text: one that is known goes on, or is told when it is over, unless
        `again` asks for a new one. Without a title it is every goal that can go on.
        """
        async with self._starting:  # two requests of one title must not make two goals
            goals = await self._goals(asked)
            for goal in goals:
                await self._go(goal, asked.strategy)
        if asked.options.wait:
            going = [self._going[goal] for goal in goals if goal in self._going]
            await asyncio.shield(asyncio.gather(*going, return_exceptions=True))
        return {"type": "run", "goals": [self.result(goal) for goal in goals]}

    def result(self, goal: int) -> Json:
        """What `holdfast run` ends with, and whether this process works on it."""
        found = self._app.engine.read(goal_result, goal)
        return {**found, "running": goal in self._going}

    async def close(self) -> None:
        """Give back what runs, and let go of the lifeline. Idempotent."""
        for task in self._going.values():
            task.cancel()
        await asyncio.gather(*self._going.values(), return_exceptions=True)
        if self._line is not None:
            self._line.close()
            self._line = None

    async def _goals(self, asked: RunBody) -> list[int]:
        title = self._app.redact((asked.title or "").strip())
        if not title:
            if asked.title is not None or asked.options.again:
                raise Refused("a new goal needs a title", hint="it says what you want")
            return self._app.engine.read(resumable)
        known = self._app.engine.read(_titled, title)
        return [known] if known and not asked.options.again else [await self._start(title, asked)]

    async def _start(self, title: str, asked: RunBody) -> int:
        settings, options = self._app.settings, asked.options
        changes = options.changes(asked.use_context)
        context = with_changes(ContextOptions(), changes, self._app.redact)
        self._app.engine.read(need_sources, context.manual, 0)
        rules = policy(settings)
        wish = Wish(
            text=title,
            repo=self._repo,
            model=options.model or settings.model,
            checks=options.checks,
            policy=replace(rules, context=context, max_turns=options.max_turns or rules.max_turns),
            budget=Budget(
                tokens=options.budget_tokens or settings.budget_tokens,
                usd=options.budget_usd or settings.budget_usd,
            ),
            strategy=asked.strategy or "dag",
        )
        return await start(self._app.beside(settings), wish)

    async def _go(self, goal: int, strategy: Strategy | None) -> None:
        if goal in self._going or goal not in self._app.engine.read(resumable):
            return
        if self._line is None:
            self._line = LifeLine(self._app.home, self._app.worker)
        if strategy is not None:
            await self._app.engine.acall(_reorder, goal, strategy)
        await self._app.engine.acall(resume, goal)
        task = asyncio.create_task(self._work(goal))
        self._going[goal] = task
        task.add_done_callback(lambda done: self._going.pop(goal, None))

    async def _work(self, goal: int) -> None:
        app = self._app.beside(self._app.settings)
        try:
            await asyncio.to_thread(show_branch, app, goal)
            await run_goal(app, goal)
            await asyncio.to_thread(show_branch, app, goal)
        except HoldfastError as error:  # whoever asks for the goal sees its state; this says why
            note(app, f"goal {goal} stopped: {error}")
        finally:
            await app.close_models()


def _titled(tx: Tx, text: str) -> int:
    """The newest goal of this text that was not dropped; 0 when there is none."""
    row = tx.one("goal.titled", text=text)
    return 0 if row is None else int(row["id"])


def _reorder(tx: Tx, goal: int, strategy: Strategy) -> None:
    for plan in tx.all("plan.of_goal", goal=goal):
        if plan["state"] in ("running", "paused"):
            order_plan(tx, plan["id"], strategy)
