"""A small plan with every kind of step, driven by one worker, to be killed anywhere and driven on.

The driver is a program, not a world: given the same store it always does the same next thing, so
two runs differ only by where one of them was killed.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from desk import done
from holdfast.agent.journal import Effectful, LiveJournal, Performed, Undecided
from holdfast.domain.model import CheckResult, Claim, GoalSpec, Outcome, PlanSpec, Policy, TaskSpec
from holdfast.domain.ports import Usage
from holdfast.engine import brief, claim, expire, holders, settle, signal, submit
from simulate.checkers import Observer
from simulate.faults import SimClock, SimEngine

PATIENT = Policy(max_attempts=10)  # a process that dies again and again is not the plan's fault
PLAN = PlanSpec(
    tasks=(
        TaskSpec(key="a", prompt="first", policy=PATIENT),
        TaskSpec(key="b", prompt="then", requires=("a",), policy=PATIENT),
    ),
    source="person",
)
SCRIPTS = {
    "a": (("ask", "idempotent"), ("read", "pure"), ("write", "compensable"), ("look", "pure")),
    "b": (("pay", "irreversible"), ("ask", "idempotent")),
}


class Reference:
    """The store of one run with the world beside it: what really happened, and a person."""

    def __init__(self, folder: Path) -> None:
        self.path, self.clock = folder / "holdfast.db", SimClock()
        self.observer = Observer(self.path)
        self.effects: Counter[str] = Counter()
        self.statements = 0

    def run(
        self,
        arm: Callable[[SimEngine], None] = lambda engine: None,
        probe: Callable[[str, str], None] = lambda boundary, key: None,
    ) -> None:
        """One process: go on from whatever the store holds until nothing is left to do."""
        engine = SimEngine(self.path, self.clock, self.observer.look)
        try:
            arm(engine)
            self._go(engine, probe)
        finally:
            self.statements = engine.wire.statements
            engine.abandon()

    def close(self) -> None:
        self.observer.close()

    def end(self) -> dict[str, Any]:
        """What must not depend on where the run was killed.

        How an irreversible step came to be known may differ: recorded, or told by the person.
        """
        rows = self.observer.rows
        return {
            "goals": [(row["state"], row["tip_commit"]) for row in rows.goals.values()],
            "plans": [row["state"] for row in rows.plans.values()],
            "tasks": [
                (r["key"], r["state"], r["take"], r["commit_id"]) for r in rows.tasks.values()
            ],
            "takes": [(key, row["bundle_sha256"]) for key, row in rows.takes.items()],
            "steps": sorted(
                (*key, row["state"], row["request"], row["result"])
                for key, row in rows.steps.items()
                if row["effect"] != "irreversible" and row["kind"] != "decision"
            ),
            "paid": self.effects["pay"],
        }

    def _go(self, engine: SimEngine, probe: Callable[[str, str], None]) -> None:
        if not engine.read(lambda tx: tx.all("goal.list")):
            goal = GoalSpec(text="g", repository="/r", base_commit="c0", base_tree="t0")
            engine.call(submit, goal, PLAN)
        for _, fence, _ in engine.read(holders):
            engine.call(expire, fence, reason="died")
        while True:
            granted = engine.call(claim, "me", lease_s=5.0)
            if granted is not None:
                self._attempt(engine, granted, probe)
            elif not self._answer(engine):
                return

    def _attempt(
        self, engine: SimEngine, granted: Claim, probe: Callable[[str, str], None]
    ) -> None:
        fence, key = granted.fence, granted.spec.key
        if not granted.bundle_sha256:
            engine.call(
                brief, fence, f"{key} {fence.take}".encode(), base_commit="c0", base_tree="t0"
            )
        journal = LiveJournal(engine, fence, granted.steps, base_tree="t0", probe=probe)
        try:
            for name, effect in SCRIPTS[key]:
                done(journal.step(self._effectful(name, effect)))
            done(journal.flush())
        except Undecided:
            engine.call(settle, fence, Outcome(kind="waiting", reason="undecided"))
            return
        if key == "a" and fence.take == 1:
            engine.call(settle, fence, Outcome(kind="failed", failure="logic", reason="checks"))
            return
        passed = CheckResult(command="true", verdict="pass")
        tip = engine.read(lambda tx: tx.one("goal.get", id=fence.goal))["tip_commit"]
        outcome = Outcome(kind="passed", checks=(passed,), commit=f"c-{key}", parent=tip)
        engine.call(settle, fence, outcome)

    def _effectful(self, name: str, effect: Any) -> Effectful:
        async def perform() -> Performed:
            self.effects[name] += 1
            return Performed(result=b'"did"', usage=Usage(tokens_in=1))

        return Effectful(
            key=name,
            kind="tool",
            effect=effect,
            request=f'"{name}"'.encode(),
            perform=perform,
            answered=lambda word: b'"did"',
        )

    def _answer(self, engine: SimEngine) -> bool:
        """The person looks whether the payment happened, and says so."""
        rows = self.observer.rows
        waiting = [key for key, row in rows.tasks.items() if row["state"] == "waiting"]
        for task in waiting:
            key = next(key for key, row in rows.steps.items() if row["state"] == "unknown")
            word = "it happened" if self.effects["pay"] else "redo"
            engine.call(signal, task, f"{key[2]}/answer#{key[3]}", word)
        return bool(waiting)
