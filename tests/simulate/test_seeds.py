"""A hundred seeds of the simulated world, every invariant checked after every transaction.

`make simulate SEEDS=7` plays one seed again, `SEEDS=0-999` plays more.
"""

import os

import pytest

from simulate.checkers import Broken
from simulate.world import explain, run_seed, workplace


def seeds() -> list[int]:
    first, _, last = os.environ.get("SEEDS", "0-99").partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.mark.parametrize("seed", seeds())
def test_every_invariant_holds_whatever_goes_wrong(seed: int) -> None:
    try:
        with workplace() as folder:
            run_seed(seed, folder)
    except Broken as error:
        pytest.fail(explain(seed, error), pytrace=False)
