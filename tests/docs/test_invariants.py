"""The tables of invariants and faults in ARCHITECTURE.md say what the simulator does."""

import re
from pathlib import Path

from simulate.checkers import CHECKERS, at_rest
from simulate.faults import FAULTS
from simulate.mutants import MUTANTS

PAGE = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
INVARIANTS = [f"I{number}" for number in range(1, 15)]
# Design §6, word for word as far as the table names them, and decision 14.
DESIGNED = {
    "crash at the n-th statement",
    "crash at the n-th port boundary",
    "crash anywhere else",
    "lost reply",
    "duplicate settle",
    "late settle",
    "clock jump",
    "slow model",
    "malformed model",
    "full disk",
    "kill during compensation",
    "crash between a reply and its commit",
}


def table(first: str) -> list[list[str]]:
    """The cells of the rows of the table whose first header cell is this."""
    _, _, rest = PAGE.partition(f"| {first} |" if first else "| | What always holds |")
    rows = rest.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_every_invariant_has_its_checker_and_its_planted_bugs() -> None:
    rows = table("")
    assert [row[0] for row in rows] == INVARIANTS
    checkers = {**CHECKERS, "I12": at_rest}
    assert set(checkers) == set(INVARIANTS)
    for name, _, checker, bugs in rows:
        assert checker == f"`{checkers[name].__name__}`"
        assert bugs.split("; ") == [each.bug for each in MUTANTS if each.invariant == name]
        assert bugs, f"{name} has no planted bug"


def test_every_fault_of_the_design_is_there_and_is_counted() -> None:
    rows = table("Fault")
    assert {row[0] for row in rows} == DESIGNED == set(FAULTS.values())
    assert {name for row in rows for name in row[1].split("; ")} == set(FAULTS)


def test_the_invariants_are_all_that_the_checkers_name() -> None:
    text = (Path(__file__).parents[1] / "simulate/checkers.py").read_text(encoding="utf-8")
    assert set(re.findall(r'"""(I\d+)\b', text)) >= set(INVARIANTS)
