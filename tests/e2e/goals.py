"""Goals to be killed: fresh ones from one driver, what happened in them, and how they must end."""

import shutil
import signal
from collections import Counter
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from e2e.support import Driver, broken_invariants, make_repo, tree


class Goals:
    """Goals in fresh repositories and stores, made one after the other by one driver."""

    def __init__(
        self, folder: Path, files: Mapping[str, str], script: Mapping[str, Any], **wish: Any
    ) -> None:
        self._folder, self._made = folder, count(1)
        self._template = make_repo(folder / "template", files)
        self.driver = Driver(folder / "driver", self._template, script, **wish)

    def fresh(self) -> Driver:
        folder = self._folder / str(next(self._made))
        shutil.copytree(self._template, folder / "repo")
        self.driver.move(folder, folder / "repo")
        return self.driver


def happened(driver: Driver) -> Counter[str]:
    return Counter(f"{call['tool']} {call.get('arguments')}" for call in driver.called())


def prove_whole(
    driver: Driver, result: dict[str, Any], uninterrupted: tuple[str, Counter[str]], kills: int
) -> None:
    expected, once = uninterrupted
    assert (result["state"], result["outcome"]) == ("complete", "passed"), result["tasks"]
    assert broken_invariants(driver.store) == []
    assert tree(driver.repo, result["branch"]) == expected
    again = happened(driver) - once
    assert sum(again.values()) <= kills, f"more than the one in flight was repeated: {again}"
    assert not once - happened(driver)


def one_death(driver: Driver, die: dict[str, Any], **order: Any) -> dict[str, Any] | None:
    """A process that dies as told; its answer when it ended before it could."""
    answer = driver.order(die=die, **order)
    if driver.store.goals():
        assert broken_invariants(driver.store) == []
    if answer["signal"] == 0:
        said: dict[str, Any] = answer["said"]
        return said
    assert answer["signal"] == signal.SIGKILL
    return None


def go_on(driver: Driver, **order: Any) -> dict[str, Any]:
    """The next process: it resumes the goal, or begins when there is none yet."""
    began = {"goal": 1} if driver.store.goals() else {}
    said: dict[str, Any] = driver.order(**began, **order)["said"]
    return said
