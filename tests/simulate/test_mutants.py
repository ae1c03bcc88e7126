"""Every invariant has a checker that catches its planted bug, and none checks nothing."""

from collections import Counter
from typing import Any

import pytest

from holdfast.store.writer import Writer, _Again
from simulate.checkers import CHECKERS, Broken
from simulate.mutants import MUTANTS, Mutant, settling
from simulate.world import CHAOS, run_seed, workplace

SEEDS_MAX = 60
SEED_WITH_LINKS = 4  # several tasks of its plan wait for another


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


def log_of(seed: int, *, faults: bool = True) -> list[tuple[object, ...]]:
    with workplace() as folder:
        world = run_seed(seed, folder, faults=faults)
    return [tuple(row) for row in world.observer.rows.log]


def test_the_same_seed_is_the_same_run() -> None:
    first = log_of(3)
    assert log_of(3) == first
    assert len(first) > 20


def run_twice(patch: pytest.MonkeyPatch) -> None:
    """Every job is run, rolled back and run again, as when another one of its batch raises."""
    once = Writer._run_all

    def and_again(self: Writer, batch: Any) -> None:
        once(self, batch)
        raise _Again

    patch.setattr(Writer, "_run_all", and_again)


def test_every_use_case_may_be_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(6)
    once = [log_of(seed, faults=False) for seed in seeds]
    run_twice(monkeypatch)
    assert [log_of(seed, faults=False) for seed in seeds] == once
    for seed in seeds:
        log_of(seed)  # with faults another run, in which every invariant holds too


def test_a_use_case_that_remembers_its_first_run_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The comparison above is able to fail: this unblock believes what was rolled back."""
    unblock, believed = settling.unblock, set()

    def unblock_once(tx: Any, task: Any) -> None:
        if task["id"] not in believed:
            if not tx.all("task.unmet", id=task["id"]):
                believed.add(task["id"])
            unblock(tx, task)

    once = log_of(SEED_WITH_LINKS, faults=False)
    monkeypatch.setattr(settling, "unblock", unblock_once)
    assert log_of(SEED_WITH_LINKS, faults=False) == once, "harmless while nothing is rolled back"
    believed.clear()
    run_twice(monkeypatch)
    with pytest.raises(Broken):
        log_of(SEED_WITH_LINKS, faults=False)
