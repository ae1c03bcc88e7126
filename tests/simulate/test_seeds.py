"""Three hundred seeds of the simulated world, every invariant checked after every transaction.

`make simulate SEEDS=7` plays one seed again, `SEEDS=0-1999` plays more. A seed that fails is added
to `seeds.txt`; whoever mends it commits the line, and it is played before the others ever after.
"""

import os
from pathlib import Path

import pytest

from simulate.checkers import Broken
from simulate.mutants import MUTANTS
from simulate.world import explain, run_seed, workplace

KEPT = Path(__file__).with_name("seeds.txt")
WANTED = "0-299"


def kept(path: Path = KEPT) -> list[int]:
    """The seeds that once failed: the first word of each line that is no comment."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [int(line.split()[0]) for line in lines if line.strip() and line[0] != "#"]


def keep(seed: int, error: Broken, path: Path = KEPT) -> None:
    """Add a seed to those that are played first; once is enough."""
    if seed not in kept(path):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{seed} {sorted(error.invariants)[0]}\n")


def seeds() -> list[int]:
    """What to play: the wanted ones alone when someone asks, else those that failed come first."""
    first, _, last = os.environ.get("SEEDS", WANTED).partition("-")
    wanted = range(int(first), int(last or first) + 1)
    return list(wanted) if "SEEDS" in os.environ else list(dict.fromkeys([*kept(), *wanted]))


@pytest.mark.parametrize("seed", seeds())
def test_every_invariant_holds_whatever_goes_wrong(seed: int) -> None:
    try:
        with workplace() as folder:
            run_seed(seed, folder)
    except Broken as error:
        keep(seed, error)
        pytest.fail(explain(seed, error), pytrace=False)


def test_a_seed_that_fails_is_kept_once_and_says_how_to_play_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "seeds.txt"
    assert kept(path) == []
    path.write_text("# seeds that failed once\n", encoding="utf-8")
    mutant = next(mutant for mutant in MUTANTS if mutant.invariant == "I1")
    mutant.plant(monkeypatch)
    for _ in range(2):
        with workplace() as folder, pytest.raises(Broken) as caught:
            run_seed(mutant.seed, folder)
        keep(mutant.seed, caught.value, path)
    assert kept(path) == [mutant.seed]
    assert path.read_text(encoding="utf-8").endswith(f"\n{mutant.seed} I1\n")
    assert f"make simulate SEEDS={mutant.seed}" in explain(mutant.seed, caught.value)
