"""What the simulated tasks want to do: a plan and a script for each task, all from one seed.

A script is the same in every attempt and take of its task, as a program is. How a take ends is part
of the script too; what interrupts it is not.
"""

import json
import random
from dataclasses import dataclass, replace
from typing import Any, Literal

from holdfast.adapters import plan_file
from holdfast.agent.planner import read_plan
from holdfast.domain.model import Budget, GoalSpec, Planning, PlanSpec, Policy, TaskSpec
from holdfast.domain.ports import Effect

RESERVE_TOKENS = 50
TASKS_MAX, ROUNDS = 5, 2
LINES = ("a", "a", "b", "")  # half of the tasks change the same line
# What every model, tool, check, file and person of the world says aloud, and no row may hold (I9).
SECRET = b"simulated-credential-0815"
Ending = Literal["answer", "transient", "partial", "policy", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class Act:
    """One step of a script. `tokens` is what it spends, at most what is reserved for it."""

    key: str
    effect: Effect
    tokens: int = 0

    @property
    def kind(self) -> str:
        return "model" if self.tokens else "tool"


@dataclass(frozen=True, kw_only=True)
class Script:
    """`verdicts[take - 1]` are what the checks of that take say; `asks` waits for a person once.

    `line` is what the task changes of the repository; empty is nothing.
    """

    acts: tuple[Act, ...]
    endings: tuple[Ending, ...]
    verdicts: tuple[tuple[str, ...], ...]
    asks: bool
    line: str = ""

    def ending(self, attempt: int) -> Ending:
        return self.endings[min(attempt, len(self.endings)) - 1]

    def checks(self, take: int) -> tuple[str, ...]:
        return self.verdicts[min(take, len(self.verdicts)) - 1]


def make_plan(seed: str) -> PlanSpec:
    """A person's plan, or a task that asks a model for one, which a person may want to see."""
    chance = random.Random(f"plan {seed}")
    policy = Policy(max_attempts=3, max_takes=2, backoff_ms=100, backoff_ms_max=1000)
    if chance.random() < 0.6:
        tasks = [TaskSpec(**row, policy=policy) for row in _graph(chance)]
        return PlanSpec(tasks=tuple(tasks), source="person")
    policy = replace(policy, max_attempts=6)
    rules = Planning(tasks_min=1, tasks_max=TASKS_MAX, rounds=ROUNDS, review=chance.random() < 0.5)
    checks = chance.choice(((), ("true",), ("true",)))
    asks = TaskSpec(
        key="planning", prompt="plan it", kind="plan", checks=checks, planning=rules, policy=policy
    )
    return PlanSpec(tasks=(asks,), source="planning")


def proposed(seed: str, planning: TaskSpec) -> tuple[TaskSpec, ...]:
    """What the model proposes, read as the planner reads it, with the goal's own checks after."""
    rows = [{**row, "checks": ["true"]} for row in _graph(random.Random(f"proposed {seed}"))]
    tasks = read_plan(json.dumps({"tasks": rows}), planning).tasks
    if not planning.checks:
        return tasks
    return (*tasks, plan_file.goal_checks(tasks, planning.checks, planning.policy, rounds=ROUNDS))


def _graph(chance: random.Random) -> list[dict[str, Any]]:
    """One to five tasks; a later one may require earlier ones."""
    rows: list[dict[str, Any]] = []
    for index in range(chance.randint(1, TASKS_MAX)):
        earlier = [row["key"] for row in rows]
        wanted = chance.sample(earlier, min(len(earlier), chance.choice((0, 0, 1, 2))))
        rows.append(
            {
                "key": f"k{index}",
                "prompt": "do it",
                "requires": tuple(sorted(wanted)),
                "priority": chance.choice(("normal", "normal", "high")),
            }
        )
    return rows


def make_goal(seed: str) -> GoalSpec:
    chance = random.Random(f"goal {seed}")
    return GoalSpec(
        text="a goal",
        repository="/nowhere",
        base_commit="c0",
        base_tree="t0",
        model="scripted:x",
        seed=chance.randrange(1000),
        budget=Budget(tokens=chance.choice((0, 0, 0, 0, 0, RESERVE_TOKENS, 120, 300))),
    )


def make_script(seed: str, key: str) -> Script:
    chance = random.Random(f"script {seed} {key}")
    acts = []
    for index in range(chance.randint(1, 5)):
        effect: Effect = chance.choice(
            ("idempotent", "idempotent", "compensable", "pure", "irreversible")
        )
        tokens = chance.randint(1, RESERVE_TOKENS) if effect == "idempotent" else 0
        acts.append(Act(key=f"s{index}", effect=effect, tokens=tokens))
    endings: list[Ending] = [
        chance.choice((*("answer",) * 15, "transient", "partial", "interrupted")) for _ in range(3)
    ]
    verdicts = [
        chance.choice((*(("pass",), ("pass", "pass"), ()) * 3, ("fail",), ("pass", "absent")))
        for _ in range(2)
    ]
    if chance.random() < 0.1:
        endings[0] = "policy"
    return Script(
        acts=tuple(acts),
        endings=(*endings, chance.choice(("answer", "answer", "answer", "transient"))),
        verdicts=tuple(verdicts),
        asks=chance.random() < 0.2,
        line=chance.choice(LINES),
    )


def make_undo(seed: str, key: str) -> Script:
    """What walks a task back: a few steps that may be repeated, and then it is undone."""
    chance = random.Random(f"undo {seed} {key}")
    acts = tuple(Act(key=f"undo:{n:04}", effect="idempotent") for n in range(chance.randint(1, 3)))
    return Script(acts=acts, endings=("answer",), verdicts=((),), asks=False)
