"""Starting, working on and steering goals: what `run`, `resume` and `goal` do.

A goal is made only after everything that can be refused was checked: repository, model, price,
plan. Then it is one transaction, so it is never left half-made.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, get_args

from holdfast.adapters.models.prices import unpriced
from holdfast.adapters.plan_file import read_plan
from holdfast.adapters.repository import Repository
from holdfast.agent.chain import chain
from holdfast.app import HOME_NAME, App
from holdfast.config import Settings
from holdfast.context.limits import resolved
from holdfast.domain.checks import read_check
from holdfast.domain.model import (
    Budget,
    ContextOptions,
    GoalSpec,
    OnFailure,
    Planning,
    PlanSpec,
    Policy,
    Priority,
    Strategy,
    TaskSpec,
    Tier,
)
from holdfast.domain.ports import Progress, Usage
from holdfast.domain.tiers import with_limits
from holdfast.engine import pause, replace_plan, resume, submit
from holdfast.engine.outlook import goal_result
from holdfast.engine.rows import need
from holdfast.engine.undo import undo_due
from holdfast.errors import HoldfastError, NotFound, Refused, Unavailable
from holdfast.frozen import frozen
from holdfast.store import Tx
from holdfast.worker.branch import show_branch
from holdfast.worker.liveness import LifeLine
from holdfast.worker.run import run_goal

EXIT = {
    "passed": 0,
    "failed": 1,
    "waiting": 3,
    "partial": 4,
    "unverified": 5,
    "cancelled": 130,
    "interrupted": 130,
}
PROBE_S = 5.0
ASKING = ("agent", "model", "plan")  # the kinds of task that ask a model


@frozen
class Wish:
    """What a person asked for on the command line."""

    text: str
    repo: Path
    model: str = ""
    checks: Sequence[str] = ()
    plan: Path | None = None
    planning: Planning | None = None
    review: bool = False
    policy: Policy = field(default_factory=Policy)
    budget: Budget = field(default_factory=Budget)
    tier: Tier = "unknown"
    priority: Priority = "normal"
    strategy: Strategy = "dag"


def policy(settings: Settings, calls: str = "native") -> Policy:
    """The policy of a task as the settings have it."""
    _at_least(1, settings, "slots")
    _at_least(0, settings, "max_turns", "attempt_s", why="0 means by the task's tier")
    _at_least(0, settings, "budget_usd", "budget_tokens", why="0 means no limit")
    if settings.on_failure not in get_args(OnFailure):
        raise Refused(f"on_failure is {settings.on_failure!r}", hint="keep or undo")
    resolved(ContextOptions(), settings, settings.model)
    by_tier = {tier: getattr(settings, f"model_{tier}", "") for tier in get_args(Tier)}
    return Policy(
        max_turns=settings.max_turns,
        max_attempts=settings.max_attempts,
        max_takes=settings.max_takes,
        max_verification_retries=settings.max_verification_retries,
        repeat_limit=settings.repeat_limit,
        stall_limit=settings.stall_limit,
        attempt_s=settings.attempt_s,
        check_s=settings.check_s,
        checks_s=settings.checks_s,
        backoff_ms=settings.backoff_ms,
        backoff_ms_max=settings.backoff_ms_max,
        calls="json" if calls == "json" else "native",
        models={tier: models for tier, models in by_tier.items() if models},
        on_failure="undo" if settings.on_failure == "undo" else "keep",
    )


def planning(settings: Settings) -> Planning:
    """How a model plans, as the settings have it."""
    least, most = settings.plan_tasks_min, settings.plan_tasks_max
    if not 1 <= least <= most:
        raise Refused(f"plan_tasks_min is {least} and plan_tasks_max {most}; no plan can be both")
    if settings.plan_levels not in (1, 2):
        raise Refused(f"plan_levels is {settings.plan_levels}; it is 1 or 2")
    _at_least(1, settings, "unit_files_max", "unit_chars_max")
    _at_least(0, settings, "plan_rounds")
    return Planning(
        tasks_min=least,
        tasks_max=most,
        levels=settings.plan_levels,
        unit_files_max=settings.unit_files_max,
        unit_chars_max=settings.unit_chars_max,
        rounds=settings.plan_rounds,
    )


def _at_least(least: int, settings: Settings, *names: str, why: str = "") -> None:
    for name in names:
        if (value := getattr(settings, name)) < least:
            raise Refused(f"{name} is {value}; {why or f'it must be at least {least}'}")


def home_for(start: Path, configured: str = "") -> Path:
    """Where the store lives: configured, else `.holdfast` in the repository, else in `start`."""
    if configured:
        return Path(configured).expanduser().absolute()
    try:
        top = Repository.open(start).work_tree
    except NotFound:
        top = None
    return (top or start.absolute()) / HOME_NAME


def make_home(home: Path) -> None:
    """Create the home, invisible to the repository's git. Idempotent."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        ignore = home / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise Refused(
            f"cannot write to {home}: {error.strerror}", hint="set HOLDFAST_HOME elsewhere"
        ) from error


async def start(app: App, wish: Wish) -> int:
    """Check everything, then make the goal; returns its id. Notes go to the sink."""
    plan = replace(_without_secrets(app, _plan(wish)), strategy=wish.strategy)
    try:
        for models in _chains(plan, wish):
            await _check_chain(app, models, wish.budget)
    finally:
        await app.close_models()
    _ = app.sandbox  # refuse before a goal exists when commands have no wall
    make_home(app.home)
    repository = open_repository(app, wish.repo)
    if not os.access(repository.git_dir, os.W_OK):
        raise Refused(
            f"cannot write to {repository.git_dir}, where the goal's branch belongs",
            hint="--repo names a repository of yours",
        )
    head = repository.head() or ""
    base_tree = repository.tree_of(head) if head else repository.empty_tree()
    dirty = repository.dirty()
    if dirty:
        more = f" and {len(dirty) - 5} more" if len(dirty) > 5 else ""
        note(app, f"works from HEAD; left out: {', '.join(dirty[:5])}{more}")
    return app.engine.call(
        submit,
        GoalSpec(
            text=app.redact(wish.text),
            repository=str(repository.work_tree or repository.git_dir),
            base_commit=head,
            base_tree=base_tree,
            branches=repository.branches("holdfast/"),
            budget=wish.budget,
            model=wish.model,
            seed=app.entropy.seed(),
        ),
        plan,
        review=wish.review and wish.planning is None,
    )


def create_plan(app: App, goal: int, path: Path, wish: Wish) -> int:
    """Give a goal that is being planned a person's plan; returns the plan's id."""
    plan = _without_secrets(app, read_plan(path, policy=wish.policy, checks=wish.checks))
    return app.engine.call(replace_plan, goal, plan, review=wish.review)


def open_repository(app: App, folder: Path) -> Repository:
    """The repository of a folder, or a private copy of a folder that is none; says so."""
    try:
        return Repository.open(folder)
    except NotFound as error:
        if error.code != "no_repository":
            raise
        copy = Repository.copy_of(folder, app.home)
        note(
            app,
            f"{folder} is no git repository: working on a private copy; "
            f"see the result with: git -C {copy.git_dir} log -p BRANCH",
        )
        return copy


def work(app: App, goal: int, *, resumed: bool) -> dict[str, Any]:
    """Work on a goal until it rests; returns the result object. Ctrl-C pauses it, twice ends."""
    if app.given_sandbox is None:
        _ = app.wall  # it is asked for before anything is claimed
    if resumed:
        app.engine.call(resume, goal)
        if app.engine.read(need, "goal", id=goal)["state"] not in ("complete", "dropped"):
            note(app, f"goal {goal} goes on")
    line = LifeLine(app.home, app.worker)
    try:
        asyncio.run(_work(app, goal))
    finally:
        line.close()
    result = app.engine.read(goal_result, goal)
    return {**result, "resumed": resumed}


async def _work(app: App, goal: int) -> None:
    await asyncio.to_thread(show_branch, app, goal)
    task = asyncio.create_task(run_goal(app, goal))
    loop = asyncio.get_running_loop()
    presses: list[asyncio.Task[None]] = []

    async def stop() -> None:
        try:
            await app.engine.acall(pause, goal, reason="interrupted")
        except HoldfastError as error:
            note(app, f"could not pause the goal: {error}")
        task.cancel()

    def interrupt() -> None:
        if presses:
            os._exit(EXIT["interrupted"])
        note(app, "stopping; press Ctrl-C again to stop at once")
        presses.append(loop.create_task(stop()))  # not here: a second press must be heard

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        await task
        await asyncio.to_thread(show_branch, app, goal)  # settled, and then its lease was gone
    except asyncio.CancelledError:
        if not presses:
            raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        await app.close_models()


def _plan(wish: Wish) -> PlanSpec:
    checks = tuple(read_check(line).line for line in wish.checks)
    if wish.plan is not None:
        return read_plan(wish.plan, policy=wish.policy, checks=checks)
    task = TaskSpec(
        key="task", title=wish.text, prompt=wish.text, checks=checks, policy=wish.policy
    )
    if wish.planning is None:
        return PlanSpec(tasks=(replace(task, tier=wish.tier, priority=wish.priority),))
    rules = replace(wish.planning, review=wish.review, strategy=wish.strategy)
    asks = replace(task, key="planning", title="Plan the goal", kind="plan", planning=rules)
    return PlanSpec(tasks=(asks,), source="planning")


def _without_secrets(app: App, plan: PlanSpec) -> PlanSpec:
    """A plan as it may be stored: texts redacted, a credential anywhere else refused."""
    for task in plan.tasks:
        proofs = (*task.preconditions, *task.checks, *task.postconditions)
        names = (task.key, *task.files, *task.creates, *task.requires, *task.inputs)
        sources = (*task.inputs.values(), *(hint.path for hint in task.file_hints))
        for text in (*proofs, task.command, *names, *sources, *(task.effects or ())):
            if app.redact(text) != text:
                raise Refused(
                    f"task {app.redact(task.key)!r} holds a credential in a command, key or file "
                    "name, which would be stored",
                    hint="put it into a file of the repository's ignored ones and read it there",
                    code="secret_in_command",
                )
    tasks = []
    for task in plan.tasks:
        hints = (replace(hint, reason=app.redact(hint.reason)) for hint in task.file_hints)
        texts: dict[str, Any] = {
            name: app.redact(getattr(task, name)) for name in ("prompt", "title", "context")
        }
        criteria = tuple(map(app.redact, task.success_criteria))
        tasks.append(replace(task, **texts, success_criteria=criteria, file_hints=tuple(hints)))
    return replace(plan, tasks=tuple(tasks))


def _chains(plan: PlanSpec, wish: Wish) -> list[str]:
    """Every chain that a task may ask, also one that a plan, a merge or a follow-up adds later."""
    asking = [with_limits(task) for task in plan.tasks if task.kind in ASKING]
    later = wish.policy.models.values() if asking else ()
    return sorted({*(task.model or wish.model for task in asking), *later})


async def _check_chain(app: App, models: str, budget: Budget) -> None:
    """Refuse what can never work; a model that only is away now is left to the others."""
    names = chain(models) or ("",)
    away: list[Unavailable] = []
    for name in names:
        try:
            await _check_model(app, name, budget)
        except Unavailable as error:
            away.append(error)
            if len(away) == len(names):
                raise
            note(app, f"{name} does not answer now, going on with the chain: {error.message}")


async def _check_model(app: App, name: str, budget: Budget) -> None:
    if not name:
        raise Refused(
            "no model is named", hint="--model ollama:qwen3:8b, or HOLDFAST_MODEL", code="no_model"
        )
    model = app.model(name)
    if budget.usd and app.cost(name, Usage()) is None:
        raise unpriced(name, app.prices_file)
    try:
        async with asyncio.timeout(PROBE_S):
            await model.probe()
    except TimeoutError:
        raise Unavailable(
            f"{name} does not answer within {PROBE_S:g} s", hint="is its server running?"
        ) from None


def note(app: App, text: str) -> None:
    """Tell whoever watches this process."""
    app.sink.show(Progress(kind="note", goal=0, task="", text=text))


def resumable(tx: Tx) -> list[int]:
    """The goals that can still go on, oldest first; also one that died before it undid itself."""
    live = {row["id"] for row in tx.all("goal.live")}
    return [
        row["id"] for row in tx.all("goal.list") if row["id"] in live or undo_due(tx, row["id"])
    ]
