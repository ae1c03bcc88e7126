"""Two runs and a resume at once: one is killed, one is stopped past its lease and goes on.

All on one store and one repository, with a counting tool and a counting model outside of them.
Whatever the moment (a seed chooses who and when), nothing is lost, nothing recorded happens again,
at most what was in flight does, and the one that was stopped is refused.
"""

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from e2e.support import (
    Driver,
    ModelServer,
    broken_invariants,
    calls,
    git,
    make_repo,
    model_server,
    says,
    stopped,
    until,
)

LEASE_S = 3.0
NAMES = ("first", "second", "third", "fourth")
BOUNDARIES_MAX = 24  # about as many as one task has
FILES = {"list.txt": "".join(f"{name}\n\n\n\n" for name in NAMES), ".gitignore": "*.tmp\n"}
SCRIPT = {
    "rules": [
        {
            "when": f"# Task: The {name} part",
            "replies": [
                calls(("run_command", {"command": f"sed -i 's/{name}/{name}!/' list.txt"})),
                calls(("note", {"text": name})),
                says(f"The {name} part is done.", delay_s=0.05),
            ],
        }
        for name in NAMES
    ]
}
PLAN = "".join(
    f"""
[[tasks]]
key = "{name}"
title = "The {name} part"
prompt = "Shout {name}."
checks = ["grep -q {name}! list.txt"]
"""
    for name in NAMES
)
STEPS = 4 * 6  # of each goal: three model calls, two tools and a check a task
EFFECTS = 4 * 5  # those of them that are counted from outside


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    with model_server(SCRIPT, tmp_path_factory.mktemp("model")) as found:
        yield found


class Together:
    """Drivers on one home: `run_a`, `run_b` and `resume`, and one that comes after."""

    def __init__(self, folder: Path, server: ModelServer, stack: ExitStack) -> None:
        plan = folder / "plan.toml"
        plan.write_text(PLAN, encoding="utf-8")
        self.repo, self._server = make_repo(folder / "repo", FILES), server
        self._asked = len(server.asked())
        self.drivers: dict[str, Driver] = {}
        for name in ("run_a", "run_b", "resume", "after"):
            driver = Driver(
                folder / name,
                self.repo,
                SCRIPT,
                plan=str(plan),
                goal=f"Shout, {name}",
                model="ollama:scripted",
                environ=server.environ(),
                settings={"lease_s": LEASE_S},
            )
            answer = folder / name / "answer.json"
            driver.move(folder / "shared", self.repo, answer=answer)
            self.drivers[name] = stack.enter_context(driver)
        self.store = self.drivers["after"].store

    def begin(self, dies: dict[str, dict[str, Any]], **order: str) -> dict[str, int]:
        """The three processes; the others begin when there is a goal to resume."""
        pids = {"run_a": self.drivers["run_a"].begin(die=dies.get("run_a"), **order)}
        until(lambda: self.store.goals() == 1, "the first goal")
        for name, more in (("resume", {"goal": 1}), ("run_b", {})):
            pids[name] = self.drivers[name].begin(die=dies.get(name), **more, **order)
        until(lambda: self.store.goals() == 2, "the second goal")
        return pids

    def attempts(self, outcome: str) -> list[dict[str, Any]]:
        return self.store.rows("SELECT * FROM attempts WHERE outcome = ?", outcome)

    def effects(self) -> Counter[str]:
        """How often each request was made and each tool called, by both goals."""
        happened = Counter(
            f"{call['task']} {call['key']}" for call in self.drivers["after"].called()
        )
        happened.update(call["sha256"] for call in self._server.asked()[self._asked :])
        return happened


def moments() -> list[tuple[str, str, int]]:
    """Who is killed, who is stopped, and the seed of when."""
    pairs = permutations(("run_a", "run_b", "resume"), 2)
    return [(killed, zombie, seed) for seed, (killed, zombie) in enumerate(pairs)]


def live(here: Together, killed: str, zombie: str, at: dict[str, int], **order: str) -> None:
    """The three processes and their fates, then whoever is needed until both goals are complete."""
    first, after = here.drivers, here.drivers["after"]
    pids = here.begin(
        {
            killed: {"at": "boundary", "n": at[killed]},
            zombie: {"at": "boundary", "n": at[zombie], "signal": "stop"},
        },
        **order,
    )
    until(lambda: stopped(pids[zombie]), f"{zombie} stopped itself at {at[zombie]}")
    assert first[killed].finish()["signal"] == signal.SIGKILL, f"it never came to {at[killed]}"
    after.begin(goal=2 if "run_b" in (killed, zombie) else 1, **order)
    until(
        lambda: [row for row in here.attempts("expired") if row["reason"] == "silent"],
        "the lease of the stopped one ran out",
    )
    os.kill(pids[zombie], signal.SIGCONT)
    ends = [first[name].finish() for name in pids if name != killed]
    assert [end["signal"] for end in (*ends, after.finish())] == [0, 0, 0], ends
    for goal in (1, 2):  # whoever was left may have looked while another still worked
        said = after.order(goal=goal, **order)["said"]
        assert (said["state"], said["outcome"]) == ("complete", "passed"), said


def prove(here: Together) -> None:
    """Nothing is lost, nothing recorded happened again, and the zombie wrote nothing."""
    store, expired = here.store, here.attempts("expired")
    assert broken_invariants(store) == []
    assert store.rows("SELECT 1 FROM tasks WHERE state <> 'succeeded'") == []
    assert len(store.done()) == 2 * STEPS
    assert {row["reason"] for row in expired} == {"died", "silent"}
    for row in expired:
        late = [
            step
            for step in store.done().values()
            if (step["task_id"], step["attempt"]) == (row["task_id"], row["number"])
            and step["done_ms"] > row["ended_ms"]
        ]
        assert late == [], "a write of the zombie was accepted"
    shouted = "\n\n\n\n".join(f"{name}!" for name in NAMES)
    for goal in (1, 2):
        assert git(here.repo, "show", f"holdfast/goal-{goal}:list.txt") == shouted
    happened = here.effects()
    assert len(happened) == 2 * EFFECTS, "every model call and every tool call happened"
    again = {name: times - 1 for name, times in happened.items() if times > 1}
    assert sum(again.values()) <= len(expired), f"happened again: {again}"


@pytest.mark.slow
@pytest.mark.parametrize(("killed", "zombie", "seed"), moments())
def test_two_runs_and_a_resume_lose_nothing_when_one_is_killed_and_one_stopped(
    tmp_path: Path, server: ModelServer, killed: str, zombie: str, seed: int
) -> None:
    chance = random.Random(seed)
    at = {name: chance.randint(2, BOUNDARIES_MAX) for name in (killed, zombie)}
    with ExitStack() as stack:
        here = Together(tmp_path, server, stack)
        live(here, killed, zombie, at)
        prove(here)


@pytest.mark.slow
def test_the_proof_would_see_processes_that_do_recorded_steps_again(
    tmp_path: Path, server: ModelServer
) -> None:
    with ExitStack() as stack:
        here = Together(tmp_path, server, stack)
        live(here, "run_a", "run_b", {"run_a": 20, "run_b": 20}, mutant="amnesia")
        with pytest.raises(AssertionError, match="happened again"):
            prove(here)
