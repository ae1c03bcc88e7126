"""Every invariant has a checker that catches its planted bug, and none checks nothing."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.store.writer import Writer, _Again
from simulate.checkers import CHECKERS, Broken
from simulate.faults import FAULTS
from simulate.moves import REOPENING
from simulate.mutants import MUTANTS, Mutant, settling
from simulate.world import run_seed, workplace

SEEDS_MAX = 120
SEED_WITH_LINKS = 3  # several tasks of its plan wait for another


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.invariant} {mutant.bug}")
def test_a_planted_bug_is_caught_by_its_checker(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.plant(monkeypatch)
    caught: Counter[str] = Counter()
    for seed in (mutant.seed, *range(SEEDS_MAX)):
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


def played(seeds: Iterable[int]) -> tuple[Counter[str], Counter[str]]:
    """What the checkers looked at and what happened in some seeds."""
    facts: Counter[str] = Counter()
    happened: Counter[str] = Counter()
    for seed in seeds:
        with workplace() as folder:
            world = run_seed(seed, folder)
        facts += world.observer.facts
        happened += world.happened
    return facts, happened


def missing(happened: Counter[str]) -> set[str]:
    """The faults and turns that never came."""
    wanted = {*FAULTS, *(move.__name__ for move in REOPENING)}
    turns = {"process died", "zombie stopped", "second bundle refused", "settled again", "refused"}
    return (wanted | turns | {"reopened"}) - set(happened)


def test_no_checker_checks_nothing_and_every_fault_happens() -> None:
    facts, happened = played(range(20))
    assert set(facts) == set(CHECKERS), f"looked at nothing: {set(CHECKERS) - set(facts)}"
    assert missing(happened) == set()


@pytest.mark.parametrize(
    ("part", "silent"),
    [
        ("Wire.arm", {"crash before a statement", "crash after a statement", "disk was full"}),
        ("SimEngine.die_at_boundary", {"crash at a boundary"}),
    ],
)
def test_a_fault_that_is_armed_and_never_fires_is_missed(
    part: str, silent: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"simulate.faults.{part}", lambda *_, **__: None)
    assert silent <= missing(played(range(20))[1])


def log_of(seed: int, *, faults: bool = True) -> list[tuple[object, ...]]:
    with workplace() as folder:
        world = run_seed(seed, folder, faults=faults)
    rows = world.observer.rows.log
    return [(*tuple(row)[:-1], row["body"].replace(str(folder), "")) for row in rows]


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
