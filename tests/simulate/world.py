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
from holdfast.domain.model import Claim, Fence, Outcome
from holdfast.engine import brief, claim, compensate, renew, settle, submit
from holdfast.errors import Exhausted, Refused, Stale, Unavailable
from simulate.checkers import Broken, Observer, at_rest, begun
from simulate.faults import Killed, SimClock, SimEngine, pause
from simulate.git import Git
from simulate.hands import Hands
from simulate.moves import (
    CHAOS,
    LEASE_S,
    REOPENING,
    UNDOING,
    Move,
    answer,
    go_on,
    nothing,
    reap,
    review,
)
from simulate.ports import SPOKEN, Ports
from simulate.scripts import (
    RESERVE_TOKENS,
    Act,
    Script,
    make_goal,
    make_plan,
    make_script,
    make_undo,
    proposed,
)

PROCESSES = 2
SLOTS = 2
CALM_TICKS_MAX = 400
Journey = Coroutine[Any, Any, None]


class Process:
    """One holdfast process: an engine of its own and the workers that die with it.

    `undoing` counts those that walk work back.
    """

    def __init__(self, name: str, engine: SimEngine) -> None:
        self.name, self.engine = name, engine
        self.workers: dict[str, Journey] = {}
        self.undoing = 0


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
        self.ports = Ports(self.clock, self.happened)
        self.hands = Hands(Git(), self.ports)
        self.settled: list[tuple[Fence, Outcome]] = []
        self.performing: Counter[int] = Counter()
        self.scripts: dict[int, Script] = {}
        self._born = 0
        self.processes = [self._start(index) for index in range(PROCESSES)]

    def play(self, ticks: int = 120) -> None:
        """Submit, let things go wrong for some ticks, then calm down until every goal has ended."""
        for index in range(self.goals):
            name = f"{self.seed}.{index}"
            goal = replace(make_goal(name), text=self.ports.redact(f"Use {SPOKEN}"))
            self.ask(submit, goal, make_plan(name))
        if self.faults:
            peace = (nothing,) * self.chance.choice((0, 20, 60))
            for _ in range(ticks):
                self._tick(self.chance.choice((*CHAOS, *peace)))
        self._calm()
        if self.chance.random() < 0.5:
            for goal_id in self.observer.rows.goals:
                self._undo(goal_id)
            if self.faults:
                for _ in range(ticks // 4):
                    self._tick(self.chance.choice(UNDOING))
            self._calm()
        failed = any(row["state"] == "failed" for row in self.observer.rows.goals.values())
        if failed and self.faults and self.seed % 8 == 3:  # a sample: it costs as much as the rest
            for _ in range(ticks // 8):
                self._tick(self.chance.choice(REOPENING))
            self._calm()
        self.observer.search()

    def close(self) -> None:
        for process in self.processes:
            self.bury(process)
        self.observer.close()

    # --- the scheduler ----------------------------------------------------------------------------

    def _tick(self, move: Move) -> None:
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
        self.ports.slow = self.ports.malformed = 0
        for process in self.processes:
            process.engine.calm()
        for _ in range(CALM_TICKS_MAX):
            for index in (*range(PROCESSES),) * 4:
                self._step(index)
            reap(self)
            review(self)
            answer(self)
            go_on(self)
            self.clock.advance(500)
            if self._rests():
                break
        at_rest(self.observer.rows)
        self.hands.nothing_lost(self.observer.rows)
        for effect, times in self.effects.items():
            if times > 1:
                raise Broken("I13", f"{effect} really happened {times} times")

    def _undo(self, goal_id: int) -> None:
        try:
            self.ask(compensate, goal_id)
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
            process.workers[f"w{self._born:06}"] = self._life(process)
        name = self.chance.choice(sorted(process.workers))
        try:
            process.workers[name].send(None)
        except StopIteration:
            del process.workers[name]
        except Killed:
            self.bury(process)
        except Stale:
            del process.workers[name]
            self.happened["zombie stopped"] += 1

    def _start(self, index: int) -> Process:
        self._born += 1
        engine = SimEngine(self.path, self.clock, self.observer.look, self.happened)
        return Process(f"p{index}.{self._born}", engine)

    def bury(self, process: Process) -> None:
        """End a process as SIGKILL does, wherever its workers are."""
        self.happened["killed during compensation"] += process.undoing > 0
        for journey in process.workers.values():
            journey.close()
        process.workers.clear()
        if not process.engine.closed:
            process.engine.abandon()
        self.happened["process died"] += 1

    def _bury_the_dead(self) -> None:
        for process in self.processes:
            if process.engine.wire.dead:
                self.bury(process)

    def _restart(self) -> None:
        for index, process in enumerate(self.processes):
            if process.engine.wire.dead:
                self.processes[index] = self._start(index)

    # --- a worker ---------------------------------------------------------------------------------

    async def _life(self, process: Process) -> None:
        """One claim from lease to end, as `worker.attempt` lives it."""
        engine = process.engine
        try:
            granted = await engine.acall(claim, process.name, lease_s=LEASE_S)
        except Unavailable:
            return
        if granted is None:
            return
        own_until = self.clock.monotonic_s() + LEASE_S
        undoing = granted.spec.kind == "compensate"
        process.undoing += undoing
        try:
            outcome = await self._attempt(engine, granted, own_until)
        except Unavailable as error:
            detail = self.ports.redact(str(error))
            outcome = Outcome(kind="failed", failure="transient", reason=error.code, detail=detail)
        finally:
            process.undoing -= undoing
        try:
            await self._settle(engine, granted, outcome)
        except Unavailable:
            self.happened["end not reported"] += 1  # its lease runs out

    async def _attempt(self, engine: SimEngine, granted: Claim, own_until: float) -> Outcome:
        fence, script = granted.fence, self._script(granted)
        if not granted.bundle_sha256 or self.chance.random() < 0.2:
            # A changed prompt file must not change a take that has begun.
            text = f"bundle {fence.task} {self.chance.choice('ab')} {SPOKEN}"
            bundle, base = self.ports.redact(text).encode(), granted.base_commit
            self.hands.begins(self.observer.rows, granted)
            try:
                await engine.acall(brief, fence, bundle, base_commit=base, base_tree="t0")
            except Stale:
                if not granted.bundle_sha256:
                    raise
                self.happened["second bundle refused"] += 1
        journal = LiveJournal(engine, fence, granted.steps, base_tree="t0", probe=engine.boundary)
        if script.asks and journal.recorded("approval") is None:
            return Outcome(kind="waiting", reason="approval")
        try:
            for act in script.acts:
                await journal.step(self._effectful(engine, fence, act, own_until))
                if act.kind == "model":  # what it asks to see shares a commit with the reply
                    look = Act(key=f"{act.key}/look", effect="pure")
                    await journal.step(self._effectful(engine, fence, look, own_until))
                if await engine.acall(renew, fence, lease_s=LEASE_S) == "cancel":
                    return Outcome(kind="cancelled", failure="cancelled", reason="interrupted")
                own_until = self.clock.monotonic_s() + LEASE_S
        except Undecided as error:
            return Outcome(kind="waiting", reason="undecided", detail=error.row.key)
        except Exhausted as error:
            return Outcome(kind="partial", failure="budget", reason=error.resource)
        await journal.flush()
        tree = self.hands.tree(engine, self.observer.rows, granted, script.line)
        return replace(await self._end(journal, script, granted), tree=tree)

    async def _end(self, journal: LiveJournal, script: Script, granted: Claim) -> Outcome:
        fence, spec = granted.fence, granted.spec
        match script.ending(fence.attempt):
            case "answer" if spec.kind == "compensate":
                return Outcome(kind="unverified", answer="undone")
            case "answer" if spec.planning is not None:
                tasks = proposed(self._name(fence), spec)
                proof = (self.ports.checked("pass"),)
                return Outcome(kind="passed", answer="a plan", checks=proof, tasks=tasks)
            case "answer" if spec.kind == "verify":
                return self.hands.prove(journal, script, granted)
            case "transient":
                return Outcome(kind="failed", failure="transient", reason="http_503")
            case "partial":
                return Outcome(kind="partial", failure="budget", reason="turns")
            case "policy":
                return Outcome(kind="failed", failure="policy", reason="refused")
            case "interrupted" if self.faults:
                return Outcome(kind="cancelled", failure="cancelled", reason="interrupted")
            case _:
                results = tuple(map(self.ports.checked, script.checks(fence.take)))
                job: Any = SimpleNamespace(journal=journal)
                return await loop.conclude(job, "done", results, provisional=spec.provisional)

    def _effectful(self, engine: SimEngine, fence: Fence, act: Act, own_until: float) -> Effectful:
        request = f'{{"do":"{act.key}","task":{fence.task}}}'

        async def perform() -> Performed:
            self.performing[fence.task] += 1
            try:
                if act.effect != "pure":
                    begun(self.observer.rows, fence.task, fence.take, act.key)
                engine.boundary("before_port", act.key)
                await pause()
                performed = self.ports.perform(act)
                if self.clock.monotonic_s() > own_until:
                    raise Stale("fenced by its own clock")
                if act.effect == "irreversible":
                    self.effects[fence.task, act.key] += 1
                engine.boundary("after_port", act.key)
                await pause()
            finally:
                self.performing[fence.task] -= 1
            return performed

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
        for _ in range(5):
            kept = self.hands.commit(engine, granted, outcome)
            await pause()
            self.settled.append((granted.fence, kept))
            try:
                await engine.acall(settle, granted.fence, kept)
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
            made = make_undo if granted.spec.kind == "compensate" else make_script
            self.scripts[fence.task] = made(self._name(fence), granted.spec.key)
        return self.scripts[fence.task]

    def _name(self, fence: Fence) -> str:
        return f"{self.seed}.{fence.goal - 1}"

    # --- the hands of the moves -------------------------------------------------------------------

    def ask(self, use_case: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
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
