"""A scripted world over the real store and engine: processes, workers, a person, faults, one seed.

The world is a scheduler. A worker is a coroutine that runs the real use cases and the real journal
of an attempt (`LiveJournal`) and yields wherever another could come between. Each tick the seed
chooses who goes on or what goes wrong; after every transaction the observer checks every invariant.
Nothing here has threads, real time or real chance, so a seed is a whole run.
"""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from holdfast.agent import loop
from holdfast.agent.journal import Effectful, LiveJournal, Performed, Undecided
from holdfast.domain.model import CheckResult, Claim, Fence, Outcome
from holdfast.domain.ports import Usage
from holdfast.engine import (
    brief,
    cancel,
    claim,
    compensate,
    expire,
    force,
    holders,
    renew,
    resume,
    settle,
    signal,
    submit,
)
from holdfast.engine import pause as pause_goal
from holdfast.errors import Exhausted, Refused, Stale, Unavailable
from holdfast.store import Tx
from simulate.checkers import Broken, Observer, at_rest
from simulate.faults import Killed, SimClock, SimEngine, pause
from simulate.scripts import RESERVE_TOKENS, Act, Script, make_goal, make_plan, make_script

LEASE_S = 5.0
PROCESSES = 2
SLOTS = 2
CALM_TICKS_MAX = 400
Journey = Coroutine[Any, Any, None]


class Process:
    """One holdfast process: an engine of its own and the workers that die with it."""

    def __init__(self, name: str, path: Path, clock: SimClock, observe: Callable[[], None]) -> None:
        self.name, self.engine = name, SimEngine(path, clock, observe)
        self.workers: dict[str, Journey] = {}


class World:
    """One run of one seed. `play()` runs it and raises `Broken` at the first broken invariant."""

    def __init__(self, seed: int, folder: Path, *, faults: bool = True, goals: int = 1) -> None:
        self.seed, self.faults, self.goals = seed, faults, goals
        self.chance = random.Random(seed)
        self.clock = SimClock()
        self.path = folder / "holdfast.db"
        self.observer = Observer(self.path)
        self.effects: Counter[tuple[int, str]] = Counter()
        self.happened: Counter[str] = Counter()
        self.settled: list[tuple[Fence, Outcome]] = []
        self.performing: Counter[int] = Counter()
        self.scripts: dict[int, Script] = {}
        self._born = 0
        self.processes = [self._start(index) for index in range(PROCESSES)]

    def play(self, ticks: int = 120) -> None:
        """Submit, let things go wrong for some ticks, then calm down until every goal has ended."""
        for index in range(self.goals):
            name = f"{self.seed}.{index}"
            self._ask(submit, make_goal(name), make_plan(name))
        if self.faults:
            peace = (nothing,) * self.chance.choice((0, 20, 60))
            for _ in range(ticks):
                self._tick(self.chance.choice((*CHAOS, *peace)))
        self._calm()
        if self.chance.random() < 0.5:
            for goal_id in self.observer.rows.goals:
                self._undo(goal_id)
            self._calm()

    def close(self) -> None:
        for process in self.processes:
            self._bury(process)
        self.observer.close()

    # --- the scheduler ----------------------------------------------------------------------------

    def _tick(self, move: Callable[["World"], None]) -> None:
        for _ in range(self.chance.randrange(10)):
            self._step(self.chance.randrange(PROCESSES))
        self.clock.advance(self.chance.randrange(300))
        self.happened[move.__name__] += 1
        try:
            move(self)
        except Killed:
            self._bury_the_dead()
        except (Refused, Stale, Unavailable):
            self.happened["refused"] += 1
        self._restart()

    def _calm(self) -> None:
        """Faults are off: the person answers, paused goals go on, and all must end (I12)."""
        self.clock.set_right()
        for process in self.processes:
            process.engine.wire.disarm()
        for _ in range(CALM_TICKS_MAX):
            for index in (*range(PROCESSES),) * 4:
                self._step(index)
            reap(self)
            answer(self)
            go_on(self)
            self.clock.advance(500)
            if self._rests():
                break
        at_rest(self.observer.rows)
        for effect, times in self.effects.items():
            if times > 1:
                raise Broken("I13", f"{effect} really happened {times} times")

    def _undo(self, goal_id: int) -> None:
        try:
            self._ask(compensate, goal_id)
        except Refused:
            self.happened["nothing to undo"] += 1

    def _rests(self) -> bool:
        try:
            at_rest(self.observer.rows)
        except Broken:
            return False
        return not any(self.performing.values())

    def _step(self, index: int) -> None:
        """Let one worker of a process go on to its next yield; start one if a slot is free."""
        self._restart()
        process = self.processes[index]
        while len(process.workers) < SLOTS:
            self._born += 1
            process.workers[f"w{self._born:06}"] = self._life(process.engine, process.name)
        name = self.chance.choice(sorted(process.workers))
        try:
            process.workers[name].send(None)
        except StopIteration:
            del process.workers[name]
        except Killed:
            self._bury(process)
        except Stale:
            del process.workers[name]
            self.happened["zombie stopped"] += 1

    def _start(self, index: int) -> Process:
        self._born += 1
        return Process(f"p{index}.{self._born}", self.path, self.clock, self.observer.look)

    def _bury(self, process: Process) -> None:
        for journey in process.workers.values():
            journey.close()
        process.workers.clear()
        if not process.engine.closed:
            process.engine.abandon()
        self.happened["process died"] += 1

    def _bury_the_dead(self) -> None:
        for process in self.processes:
            if process.engine.wire.dead:
                self._bury(process)

    def _restart(self) -> None:
        for index, process in enumerate(self.processes):
            if process.engine.wire.dead:
                self.processes[index] = self._start(index)

    # --- a worker ---------------------------------------------------------------------------------

    async def _life(self, engine: SimEngine, process: str) -> None:
        """One claim from lease to end, as `worker.attempt` lives it."""
        try:
            granted = await engine.acall(claim, process, lease_s=LEASE_S)
        except Unavailable:
            return
        if granted is None:
            return
        own_until = self.clock.monotonic_s() + LEASE_S
        try:
            outcome = await self._attempt(engine, granted, own_until)
        except Unavailable as error:
            outcome = Outcome(kind="failed", failure="transient", reason=error.code)
        try:
            await self._settle(engine, granted, outcome)
        except Unavailable:
            self.happened["end not reported"] += 1  # its lease runs out

    async def _attempt(self, engine: SimEngine, granted: Claim, own_until: float) -> Outcome:
        fence, script = granted.fence, self._script(granted)
        if granted.spec.kind == "compensate":
            return Outcome(kind="unverified", tree="undone", answer="undone")
        if not granted.bundle_sha256 or self.chance.random() < 0.2:
            # A changed prompt file must not change a take that has begun.
            bundle = f"bundle {fence.task} {self.chance.choice('ab')}".encode()
            try:
                await engine.acall(brief, fence, bundle, base_commit="c0", base_tree="t0")
            except Stale:
                if not granted.bundle_sha256:
                    raise
                self.happened["second bundle refused"] += 1
        journal = LiveJournal(engine, fence, granted.steps, base_tree="t0")
        if script.asks and journal.recorded("approval") is None:
            return Outcome(kind="waiting", reason="approval")
        try:
            for act in script.acts:
                await journal.step(self._effectful(fence, act, own_until))
                if await engine.acall(renew, fence, lease_s=LEASE_S) == "cancel":
                    return Outcome(kind="cancelled", failure="cancelled", reason="interrupted")
                own_until = self.clock.monotonic_s() + LEASE_S
        except Undecided as error:
            return Outcome(kind="waiting", reason="undecided", detail=error.row.key)
        except Exhausted as error:
            return Outcome(kind="partial", failure="budget", reason=error.resource)
        return await self._end(journal, script, fence)

    async def _end(self, journal: LiveJournal, script: Script, fence: Fence) -> Outcome:
        await journal.flush()
        match script.ending(fence.attempt):
            case "transient":
                return Outcome(kind="failed", failure="transient", reason="http_503")
            case "partial":
                return Outcome(kind="partial", failure="budget", reason="turns")
            case "policy":
                return Outcome(kind="failed", failure="policy", reason="refused")
            case "interrupted" if self.faults:
                return Outcome(kind="cancelled", failure="cancelled", reason="interrupted")
            case _:
                verdicts = script.checks(fence.take)
                results = tuple(CheckResult(command="c", verdict=word) for word in verdicts)  # type: ignore[arg-type]
                job: Any = SimpleNamespace(journal=journal)
                return await loop.conclude(job, "done", results)

    def _effectful(self, fence: Fence, act: Act, own_until: float) -> Effectful:
        request = f'{{"do":"{act.key}","task":{fence.task}}}'

        async def perform() -> Performed:
            self.performing[fence.task] += 1
            try:
                await pause()
                if self.clock.monotonic_s() > own_until:
                    raise Stale("fenced by its own clock")
                if act.effect == "irreversible":
                    self.effects[fence.task, act.key] += 1
                await pause()
            finally:
                self.performing[fence.task] -= 1
            return Performed(result=b'"did"', usage=Usage(tokens_in=act.tokens))

        return Effectful(
            key=act.key,
            kind=act.kind,
            effect=act.effect,
            request=request.encode(),
            perform=perform,
            reserve_tokens=RESERVE_TOKENS if act.tokens else 0,
            answered=lambda word: msgspec.json.encode(word),
        )

    async def _settle(self, engine: SimEngine, granted: Claim, outcome: Outcome) -> None:
        """Settle, on the tip as it is now; the reply may be lost, so it is sent again."""
        undoing = granted.spec.kind == "compensate"
        for _ in range(5):
            tip = engine.read(_tip, granted.fence.goal, undoing)
            await pause()
            if outcome.kind in ("passed", "unverified", "partial"):
                commit = f"c{granted.fence.session}"
                outcome = replace(outcome, commit=commit, parent=tip)
            self.settled.append((granted.fence, outcome))
            try:
                await engine.acall(settle, granted.fence, outcome)
            except Refused as error:
                if error.code != "tip_moved":
                    raise
                self.happened["tip moved"] += 1
                continue
            except Unavailable:
                self.happened["settled again"] += 1
                continue
            return

    def _script(self, granted: Claim) -> Script:
        fence = granted.fence
        if fence.task not in self.scripts:
            name = f"{self.seed}.{fence.goal - 1}"
            self.scripts[fence.task] = make_script(name, granted.spec.key)
        return self.scripts[fence.task]

    # --- the hands of the moves below -------------------------------------------------------------

    def _ask(self, use_case: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Someone calls the engine, through a process that is alive."""
        return self.engine().call(use_case, *args, **kwargs)

    def engine(self) -> SimEngine:
        """The engine of a process that is alive."""
        self._restart()
        return self.chance.choice(self.processes).engine

    def some_goal(self) -> int:
        return self.chance.choice(sorted(self.observer.rows.goals))

    def some_task(self) -> int:
        return self.chance.choice(sorted(self.observer.rows.tasks))


def nothing(world: World) -> None:
    """Most ticks only work goes on."""


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
        if not asked:
            world._ask(signal, task_id, "approval", "yes")
            continue
        _, _, name, generation = asked[0]
        word = "it happened" if world.effects[task_id, name] else "redo"
        world._ask(signal, task_id, f"{name}/answer#{generation}", word)


def go_on(world: World) -> None:
    for goal_id in world.observer.rows.goals:
        world._ask(resume, goal_id)


def slow(world: World) -> None:
    """Time passes, nobody works: leases run out under workers that will wake up."""
    world.clock.advance(int(LEASE_S * 1000) + 1)
    reap(world)


def jump(world: World) -> None:
    world.clock.jump(world.chance.choice((-3_600_000, -2000, 2000, 60_000)))


def crash(world: World) -> None:
    """A process dies at the n-th statement from now, before or after SQLite saw it."""
    wire = world.engine().wire
    wire.arm("crash", world.chance.randint(1, 25), after=world.chance.random() < 0.5)


def kill(world: World) -> None:
    """A process dies between two statements, at whatever boundary its workers are."""
    world._bury(world.chance.choice(world.processes))


def full_disk(world: World) -> None:
    wire = world.engine().wire
    wire.arm("fail", world.chance.randint(1, 12))


def lost_reply(world: World) -> None:
    world.engine().wire.arm("lose")


def settle_again(world: World) -> None:
    """A report arrives a second time, much later; the same answer, or `Stale`, but no change."""
    if world.settled:
        fence, outcome = world.chance.choice(world.settled)
        if world.observer.rows.attempts[fence.task, fence.attempt]["state"] == "ended":
            world._ask(settle, fence, outcome)


def settle_late(world: World) -> None:
    """A zombie reports something else about an attempt that has ended."""
    ended = [key for key, row in world.observer.rows.attempts.items() if row["state"] == "ended"]
    if ended:
        task, number = world.chance.choice(sorted(ended))
        take = world.observer.rows.attempts[task, number]["take"]
        goal = world.observer.rows.tasks[task]["goal_id"]
        fence = Fence(task=task, attempt=number, take=take, goal=goal)
        world._ask(settle, fence, Outcome(kind="unverified", answer="late"))


def pause_one(world: World) -> None:
    world._ask(pause_goal, world.some_goal())


def cancel_one(world: World) -> None:
    if world.chance.random() < 0.15:
        world._ask(cancel, world.some_goal())


def force_one(world: World) -> None:
    if world.observer.rows.requires and world.chance.random() < 0.2:
        task_id, needed = world.chance.choice(world.observer.rows.requires)
        world._ask(force, task_id, needed, reason="the person insists")


def undo_one(world: World) -> None:
    world._ask(compensate, world.some_goal())


def _tip(tx: Tx, goal: int, undoing: bool) -> str:
    row = tx.one("goal.get", id=goal)
    assert row is not None
    return str(row["branch_commit" if undoing else "tip_commit"])


CHAOS: tuple[Callable[[World], None], ...] = (
    *(nothing,) * 10,
    *(reap, answer, go_on) * 2,
    slow,
    jump,
    crash,
    crash,
    kill,
    full_disk,
    lost_reply,
    settle_again,
    settle_late,
    pause_one,
    cancel_one,
    force_one,
    undo_one,
)


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder for one run, in memory where the machine has such: nothing here tests a disk."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def explain(seed: int, error: BaseException) -> str:
    """What to print when a seed fails."""
    return f"seed {seed} breaks {error}\nagain: make simulate SEEDS={seed}"


def run_seed(seed: int, folder: Path, *, faults: bool = True) -> World:
    """Play a seed to its end; the world is closed, its counts can still be read."""
    world = World(seed, folder, faults=faults, goals=1 + seed % 2)
    try:
        world.play()
    finally:
        world.close()
    return world
