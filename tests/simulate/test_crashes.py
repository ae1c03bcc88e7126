"""Killed at any statement and at every boundary of every step, a run ends the same."""

import random

import pytest

from simulate.faults import Killed, SimEngine
from simulate.reference import Reference
from simulate.world import workplace

BOUNDARIES = ("before_intend", "after_intend", "after_effect", "after_commit")


@pytest.fixture(scope="module")
def whole() -> tuple[dict[str, object], int]:
    """How the run ends that nobody kills, and how many statements it has."""
    with workplace() as folder:
        run = Reference(folder)
        run.run()
        end = run.end()
        run.close()
    assert end["paid"] == 1
    assert [state for state, _ in end["goals"]] == ["complete"]
    return end, run.statements


def killed_and_resumed(*at: int, after: bool) -> dict[str, object]:
    """Kill the n-th statement of each of several processes in turn, then let one finish."""
    with workplace() as folder:
        run = Reference(folder)
        for statement in at:

            def arm(engine: SimEngine, statement: int = statement) -> None:
                engine.wire.arm("crash", statement, after=after)

            try:
                run.run(arm)
            except Killed:
                continue
            break
        run.run()
        end = run.end()
        run.close()
    return end


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_statement_changes_nothing_in_the_end(
    whole: tuple[dict[str, object], int], after: bool
) -> None:
    end, statements = whole
    assert statements > 100
    for statement in range(1, statements + 1):
        assert killed_and_resumed(statement, after=after) == end, f"statement {statement}"


@pytest.mark.slow
def test_a_kill_during_the_recovery_from_a_kill_changes_nothing_in_the_end(
    whole: tuple[dict[str, object], int],
) -> None:
    end, statements = whole
    chance = random.Random(7)
    for _ in range(80):
        at = (chance.randint(1, statements), chance.randint(1, 40), chance.randint(1, 40))
        after = chance.random() < 0.5
        assert killed_and_resumed(*at, after=after) == end, f"statements {at}, after={after}"


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_kill_at_any_boundary_of_a_step_changes_nothing_in_the_end(
    whole: tuple[dict[str, object], int], boundary: str
) -> None:
    end, _ = whole
    times = 0
    for nth in range(1, 20):
        seen = 0

        def probe(here: str, key: str, nth: int = nth) -> None:
            nonlocal seen
            seen += here == boundary
            if here == boundary and seen == nth:
                raise Killed

        with workplace() as folder:
            run = Reference(folder)
            try:
                run.run(probe=probe)
            except Killed:
                times += 1
            run.run()
            assert run.end() == end, f"{boundary} {nth}"
            run.close()
        if seen < nth:
            break
    assert times >= 6, "the plan has six steps with effects"


def test_a_run_that_forgets_an_effect_is_noticed(whole: tuple[dict[str, object], int]) -> None:
    """The comparison itself is able to fail."""
    end, _ = whole
    with workplace() as folder:
        run = Reference(folder)
        run.effects["pay"] = 1  # someone paid before
        run.run()
        assert run.end() != end
        run.close()
