"""SIGKILL around the steps: at every transaction and before every child process of a whole goal.

The journal's boundaries are proved elsewhere; here die claim, brief, settle, the commit of a task,
the merge into the goal's branch and the undo, wherever a process of Holdfast can be caught. Each
run takes every fourth transaction and every eleventh child process; `make kill-proof` takes all.
"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from e2e.goals import Goals, go_on, happened, one_death, prove_whole
from e2e.support import Driver, broken_invariants, tree
from e2e.three_tasks import FILES, GOAL, SCRIPT, write_plan

pytestmark = pytest.mark.slow
ALL = bool(os.environ.get("KILL_PROOF_ALL"))
STRIDE = {"commit": 1, "process": 1} if ALL else {"commit": 4, "process": 11}


def at_commit(n: int, side: str) -> dict[str, Any]:
    return {"at": "commit", "n": n, "side": side}


def at_process(n: int) -> dict[str, Any]:
    return {"at": "process", "n": n}


def three_goals(folder: Path) -> Goals:
    return Goals(folder, FILES, SCRIPT, plan=str(write_plan(folder)), goal=GOAL)


@pytest.fixture
def goals(tmp_path: Path) -> Iterator[Goals]:
    made = three_goals(tmp_path)
    with made.driver:
        yield made


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Counter[str]]:
    """The final tree of a run nobody kills, and how often each call happens in it."""
    goals = three_goals(tmp_path_factory.mktemp("whole"))
    with goals.driver:
        driver = goals.fresh()
        result = driver.order(die=None)["said"]
        return tree(driver.repo, result["branch"]), happened(driver)


def undone(driver: Driver) -> dict[str, Any]:
    said: dict[str, Any] = driver.order(verb="undo", goal=1)["said"]
    return said


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_process_may_die_at_any_of_its_transactions(
    goals: Goals, uninterrupted: tuple[str, Counter[str]], side: str
) -> None:
    for n in count(1, STRIDE["commit"]):
        driver = goals.fresh()
        survived = one_death(driver, at_commit(n, side))
        prove_whole(driver, survived or go_on(driver), uninterrupted, kills=1)
        if survived:
            break
    assert n > 15, "a goal of three tasks has more transactions than that"


def test_a_process_may_die_before_any_child_process_it_starts(
    goals: Goals, uninterrupted: tuple[str, Counter[str]]
) -> None:
    for n in count(1, STRIDE["process"]):
        driver = goals.fresh()
        survived = one_death(driver, at_process(n))
        prove_whole(driver, survived or go_on(driver), uninterrupted, kills=1)
        if survived:
            break
    assert n > 60, "a goal of three tasks starts git more often than that"


DEATHS = {
    "before a transaction": lambda n: at_commit(n, "before"),
    "after a transaction": lambda n: at_commit(n, "after"),
    "before a child process": at_process,
}


@pytest.mark.parametrize("moment", DEATHS)
def test_an_interrupt_may_come_anywhere(
    goals: Goals, uninterrupted: tuple[str, Counter[str]], moment: str
) -> None:
    """Ctrl-C while it briefs, works, commits, settles or shows: no attempt stays open."""
    for n in count(1, max(1, STRIDE[DEATHS[moment](1)["at"]] // 2)):
        driver = goals.fresh()
        answer = driver.order(die={**DEATHS[moment](n), "signal": "interrupt"})
        assert answer["signal"] == 0
        if driver.store.goals():
            assert broken_invariants(driver.store) == []
            opened = driver.store.rows("SELECT 1 FROM attempts WHERE state = 'open'")
            assert opened == [], f"interrupted at {n}, it left an attempt open"
        prove_whole(driver, go_on(driver), uninterrupted, kills=1)
        if answer["said"].get("outcome") == "passed" and not driver.store.rows(
            "SELECT 1 FROM log WHERE body LIKE '%interrupted%'"
        ):
            break
    assert n > 15


@pytest.mark.parametrize("death", DEATHS)
def test_an_undo_may_die_anywhere(goals: Goals, death: str) -> None:
    driver = goals.fresh()
    base, branch = tree(driver.repo, "main"), driver.order(die=None)["said"]["branch"]
    assert tree(driver.repo, branch) != base
    finished = shutil.copytree(driver.repo.parent, driver.folder / "finished", symlinks=True)
    for n in count(1, STRIDE[DEATHS[death](1)["at"]]):
        shutil.rmtree(driver.repo.parent)
        shutil.copytree(finished, driver.repo.parent, symlinks=True)
        survived = one_death(driver, DEATHS[death](n), verb="undo", goal=1)
        said = survived or undone(driver)
        if said.get("error") == "already_undone":  # it died when all was done
            assert driver.store.one("SELECT undone_ms FROM goals") is not None
        else:
            assert said["tree_equal"], said
        assert tree(driver.repo, branch) == base
        assert broken_invariants(driver.store) == []
        if survived:
            break
    assert n > 5
