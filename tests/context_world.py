"""A store with a goal and tasks, and their ends, for the tests of links, retrieval and bundles."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.adapters.clock import SystemClock
from holdfast.domain.model import CheckResult, GoalSpec, Outcome, PlanSpec, TaskSpec
from holdfast.engine import Engine, claim, settle, submit


class World:
    """One engine; `goal` submits tasks, `end` claims the next task and settles it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def goal(self, *tasks: TaskSpec, text: str = "a goal", repository: str = "/nowhere") -> int:
        return self.engine.call(
            submit,
            GoalSpec(
                text=text,
                repository=repository,
                base_commit="",
                base_tree="",
                model="scripted:none",
            ),
            PlanSpec(tasks=tasks),
        )

    def end(self, goal: int, outcome: Outcome) -> int:
        granted = self.engine.call(claim, "w", lease_s=60.0, goal=goal)
        assert granted is not None
        self.engine.call(settle, granted.fence, outcome)
        return granted.fence.task


@contextmanager
def world(folder: Path) -> Iterator[World]:
    engine = Engine(folder / "holdfast.db", SystemClock(), shared=False)
    try:
        yield World(engine)
    finally:
        engine.close()


def task(key: str, *requires: str, refers: Sequence[str] = (), **more: object) -> TaskSpec:
    values = {"prompt": f"do {key}", "requires": requires, "refers": tuple(refers), **more}
    return TaskSpec(key=key, **values)


def passed(answer: str) -> Outcome:
    proof = CheckResult(command="true", verdict="pass")
    return Outcome(kind="passed", answer=answer, checks=(proof,))
