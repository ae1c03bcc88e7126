"""SIGKILL everywhere: at every statement, file, child process and boundary of one reference plan.

The plan has files, git, commands and a parallel section: `left` and `right` at the same time in
workspaces of their own, then `join` on what both did. Every death is followed by one resume. In the
end the tree is that of the uninterrupted run, and nothing that was recorded happened again.

Each run of the tests takes a sample by a stride; `make kill-proof` takes every point.
"""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from e2e.goals import Goals, go_on, happened, one_death, prove_whole
from e2e.support import Driver, calls, says, tree

pytestmark = pytest.mark.slow
ALL = bool(os.environ.get("KILL_PROOF_ALL"))
SLOTS = 2
FILES = {"list.txt": "left\n\n\n\n\nright\n", "old.txt": "old\n", ".gitignore": "*.tmp\n"}
SCRIPT = {
    "rules": [
        {
            "when": "# Task: Go left",
            "replies": [
                calls(("write_file", {"path": "left/made.txt", "content": "l\n"})),
                calls(("run_command", {"command": "sed -i s/left/LEFT/ list.txt; rm old.txt"})),
                says("Left is done."),
            ],
        },
        {
            "when": "# Task: Go right",
            "replies": [
                calls(("run_command", {"command": "sed -i s/right/RIGHT/ list.txt; mkdir right"})),
                calls(("write_file", {"path": "right/made.txt", "content": "r\n"})),
                says("Right is done."),
            ],
        },
        {
            "when": "# Task: Join them",
            "replies": [
                calls(
                    ("read_file", {"path": "list.txt"}),
                    ("list_directory", {"path": "."}),
                ),
                calls(("run_command", {"command": "cat */made.txt > both.txt; ln -s both.txt b"})),
                calls(("note", {"text": "joined"})),
                says("Both are there."),
            ],
        },
    ]
}
PLAN = """
[[tasks]]
key = "left"
title = "Go left"
prompt = "Do the left part."
checks = ["grep -q LEFT list.txt"]

[[tasks]]
key = "right"
title = "Go right"
prompt = "Do the right part."
checks = ["grep -q RIGHT list.txt"]

[[tasks]]
key = "join"
title = "Join them"
prompt = "Join both."
requires = ["left", "right"]
checks = ["test $(wc -l < both.txt) = 2", "grep -q LEFT list.txt && grep -q RIGHT list.txt"]
"""
# Kind of place → how many lie between two of the sample, and how many there are at least.
PLACES: dict[str, tuple[dict[str, Any], int, int]] = {
    "before a statement": ({"at": "statement", "side": "before"}, 131, 300),
    "after a statement": ({"at": "statement", "side": "after"}, 127, 300),
    "before a transaction": ({"at": "commit", "side": "before"}, 13, 25),
    "after a transaction": ({"at": "commit", "side": "after"}, 13, 25),
    "before a child process": ({"at": "process"}, 37, 70),
    "before a file changes": ({"at": "file"}, 61, 60),
    "at a boundary of a step": ({"at": "boundary"}, 23, 40),
}


def parallel_goals(folder: Path) -> Goals:
    plan = folder / "plan.toml"
    plan.write_text(PLAN, encoding="utf-8")
    settings = {"slots": SLOTS}
    return Goals(folder, FILES, SCRIPT, plan=str(plan), goal="Join", settings=settings)


@pytest.fixture
def goals(tmp_path: Path) -> Iterator[Goals]:
    made = parallel_goals(tmp_path)
    with made.driver:
        yield made


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Counter[str]]:
    """The final tree of a run nobody kills, and how often each call happens in it."""
    goals = parallel_goals(tmp_path_factory.mktemp("whole"))
    with goals.driver:
        driver = goals.fresh()
        result = driver.order(die=None)["said"]
        spans = driver.store.rows("SELECT started_ms, ended_ms FROM attempts WHERE task_id < 3")
        assert max(row["started_ms"] for row in spans) < min(row["ended_ms"] for row in spans), (
            "left and right did not run at the same time"
        )
        return tree(driver.repo, result["branch"]), happened(driver)


def recorded(driver: Driver) -> set[tuple[str, str]]:
    """The steps that are done, as the ledger names them."""
    return {(str(row["task_id"]), row["key"]) for row in driver.store.done().values()}


def prove_from(
    driver: Driver, die: dict[str, Any], uninterrupted: tuple[str, Counter[str]], **order: Any
) -> bool:
    """Kill, resume, and prove that it ended as if nobody had; False when it ended before."""
    survived = one_death(driver, die)
    done = recorded(driver) if driver.store.goals() else set()
    before = len(driver.called())
    result = survived or go_on(driver, **order)
    later = {(call.get("task"), call["key"]) for call in driver.called()[before:]}
    assert not later & done, f"recorded effects happened again: {later & done}"
    prove_whole(driver, result, uninterrupted, kills=SLOTS)
    return survived is None


@pytest.mark.parametrize("place", PLACES)
def test_a_parallel_plan_killed_anywhere_ends_as_if_nobody_had(
    goals: Goals, uninterrupted: tuple[str, Counter[str]], place: str
) -> None:
    die, stride, places_min = PLACES[place]
    for n in count(1, 1 if ALL else stride):
        if not prove_from(goals.fresh(), {**die, "n": n}, uninterrupted):
            break
    assert n > places_min, f"there are more places {place} than {n}"


def test_the_proof_would_see_an_effect_that_is_repeated(
    goals: Goals, uninterrupted: tuple[str, Counter[str]]
) -> None:
    die = {"at": "step", "boundary": "after_commit", "key": "t002/call:0"}
    with pytest.raises(AssertionError, match="recorded effects happened again"):
        prove_from(goals.fresh(), die, uninterrupted, mutant="amnesia")
