"""A desk to work at in tests: the real engine, inline, on a clock the test moves.

Owns shortcuts for what every test of a use case needs first: a goal, a claim, a bundle, a step. It
hides no rule: each shortcut is one call of the engine.
"""

import sqlite3
from collections.abc import Coroutine
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from holdfast.agent.journal import Effectful, LiveJournal, Performed
from holdfast.domain.model import Budget, Claim, GoalSpec, Outcome, PlanSpec, Policy, TaskSpec
from holdfast.domain.ports import Usage
from holdfast.engine import brief, claim, settle, step, submit
from holdfast.engine.journal import Done, Intend, StepName
from simulate.faults import SimClock, SimEngine

T = TypeVar("T")
POLICY = Policy(max_attempts=3, max_takes=2, backoff_ms=100, backoff_ms_max=1000)


def task(key: str = "a", **values: Any) -> TaskSpec:
    return TaskSpec(**{"key": key, "prompt": f"do {key}", "policy": POLICY, **values})


def done(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that only waits for the inline engine."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as end:
            result: T = end.value
            return result


class Desk:
    """One store in a folder. `rows` reads it from outside."""

    def __init__(self, folder: Path) -> None:
        self.clock = SimClock()
        self.path = folder / "holdfast.db"
        self.engine = SimEngine(self.path, self.clock, lambda: None)
        self.call = self.engine.call

    def goal(self, *tasks: TaskSpec, **values: Any) -> int:
        fields: dict[str, Any] = {
            "text": "a goal",
            "repository": "/repo",
            "base_commit": "c0",
            "base_tree": "t0",
            "model": "scripted:x",
        }
        plan = PlanSpec(tasks=tasks or (task(),))
        goal: int = self.call(submit, GoalSpec(**{**fields, **values}), plan)
        return goal

    def claim(self, *, bundle: bytes = b"bundle", goal: int = 0) -> Claim:
        granted: Claim | None = self.call(claim, "me", lease_s=5.0, goal=goal)
        assert granted is not None, "nothing was ready"
        if bundle and not granted.bundle_sha256:
            self.call(brief, granted.fence, bundle, base_commit="c0", base_tree="t0")
        return granted

    def intend(self, granted: Claim, key: str = "s", **values: Any) -> None:
        fields = {"position": 1, "kind": "tool", "effect": "compensable", "request": b'"r"'}
        self.call(step, granted.fence, [Intend(step=StepName(key=key), **{**fields, **values})])

    def done(self, granted: Claim, key: str = "s", result: bytes = b'"did"', **values: Any) -> None:
        digest = sha256(result).hexdigest()
        write = Done(step=StepName(key=key), result=result, result_sha256=digest, **values)
        self.call(step, granted.fence, [write])

    def settle(self, granted: Claim, kind: str = "unverified", **values: Any) -> Any:
        return self.call(settle, granted.fence, Outcome(kind=kind, **values))  # type: ignore[arg-type]

    def work(self, kind: str = "unverified", **values: Any) -> Claim:
        """Claim the next ready task and settle it at once."""
        granted = self.claim()
        self.settle(granted, kind, **values)
        return granted

    def journal(self, granted: Claim) -> LiveJournal:
        return LiveJournal(self.engine, granted.fence, granted.steps, base_tree="t0")

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        reader = sqlite3.connect(self.path)
        try:
            reader.row_factory = sqlite3.Row
            return reader.execute(sql, values).fetchall()
        finally:
            reader.close()

    def state(self, table: str, key: int) -> str:
        return str(self.rows(f"SELECT state FROM {table} WHERE id = ?", key)[0]["state"])

    def execute(self, sql: str, *values: Any) -> None:
        """Reach behind the engine's back, as damage and other programs do."""
        writer = sqlite3.connect(self.path, isolation_level=None)
        writer.execute(sql, values)
        writer.close()

    def close(self) -> None:
        self.engine.close()


def effectful(
    key: str, effect: str = "irreversible", request: bytes = b'"r"', tokens: int = 0, **values: Any
) -> tuple[Effectful, list[str]]:
    """A step that notes each time it is performed."""
    performed: list[str] = []

    async def perform() -> Performed:
        performed.append(key)
        return Performed(result=b'"did"', usage=Usage(tokens_in=tokens))

    made = Effectful(
        key=key,
        kind="tool",
        effect=effect,  # type: ignore[arg-type]
        request=request,
        perform=perform,
        answered=lambda word: f'"{word}"'.encode(),
        **values,
    )
    return made, performed


__all__ = ["POLICY", "Budget", "Desk", "done", "effectful", "task"]
