"""Every invariant has a checker that catches its planted bug, and none checks nothing."""

from collections import Counter

import pytest

from simulate.checkers import CHECKERS, Broken
from simulate.mutants import MUTANTS, Mutant
from simulate.world import CHAOS, run_seed, workplace

SEEDS_MAX = 60


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.invariant} {mutant.bug}")
def test_a_planted_bug_is_caught_by_its_checker(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.plant(monkeypatch)
    caught: Counter[str] = Counter()
    for seed in range(SEEDS_MAX):
        with workplace() as folder:
            try:
                run_seed(seed, folder)
            except Broken as error:
                caught.update(error.invariants)
        if caught[mutant.invariant]:
            return
    pytest.fail(f"{mutant.bug}: survived {SEEDS_MAX} seeds, caught by {dict(caught)}")


def test_every_invariant_has_a_mutant() -> None:
    assert {mutant.invariant for mutant in MUTANTS} == {*CHECKERS, "I12"}


def test_no_checker_checks_nothing_and_every_fault_happens() -> None:
    facts: Counter[str] = Counter()
    happened: Counter[str] = Counter()
    for seed in range(20):
        with workplace() as folder:
            world = run_seed(seed, folder)
        facts += world.observer.facts
        happened += world.happened
    assert set(facts) == set(CHECKERS), f"looked at nothing: {set(CHECKERS) - set(facts)}"
    wanted = {move.__name__ for move in CHAOS} | {
        "process died",
        "zombie stopped",
        "second bundle refused",
        "settled again",
        "refused",
    }
    assert wanted <= set(happened), f"never happened: {sorted(wanted - set(happened))}"


def test_the_same_seed_is_the_same_run() -> None:
    logs = []
    for _ in range(2):
        with workplace() as folder:
            world = run_seed(3, folder)
        logs.append([tuple(row) for row in world.observer.rows.log])
    assert logs[0] == logs[1]
    assert len(logs[0]) > 20
