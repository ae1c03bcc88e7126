"""A hundred seeds of the simulated world, every invariant checked after every transaction.

`make simulate SEEDS=7` plays one seed again, `SEEDS=0-999` plays more.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulate.checkers import CHECKERS, Broken
from simulate.world import CHAOS, explain, run_seed

SHARED_MEMORY = Path("/dev/shm")


def seeds() -> list[int]:
    first, _, last = os.environ.get("SEEDS", "0-99").partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A place in memory where the machine has one: what is simulated here is no disk."""
    place = Path(tempfile.mkdtemp(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))
    yield place
    shutil.rmtree(place)


@pytest.mark.parametrize("seed", seeds())
def test_every_invariant_holds_whatever_goes_wrong(seed: int, folder: Path) -> None:
    try:
        run_seed(seed, folder)
    except Broken as error:
        pytest.fail(explain(seed, error), pytrace=False)
