"""Source files with the expected value or error inline: `;=> value` and `;! code line:column`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.lang.api import Limits
from holdfast.lang.cases import load, run_cases, same
from holdfast.lang.meter import ACTIVE, Meter
from holdfast.lang.printer import readable
from holdfast.lang.run import run

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.lisp"))


def chunks(path: Path) -> Iterator[tuple[str, str]]:
    """Each program of a file with its expectation line."""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith((";=>", ";!")):
            yield "\n".join(lines), line
            lines = []
        elif not line.startswith(";;") and (line or lines):
            lines.append(line)


def problem(source: str, expectation: str) -> str:
    """What is wrong with one program; empty when it does as expected."""
    result = run(source, tools=["echo"])
    if expectation.startswith(";!"):
        wanted = expectation[2:].split()
        if result.error is None:
            return f"{source}: expected {wanted}, got a value"
        got = [result.error.code, f"{result.error.line}:{result.error.column}"]
        if got[: len(wanted)] != wanted:
            return f"{source}: expected {wanted}, got {result.error}"
        placed = result.error.source_line and "^" in result.error.render()
        return "" if placed or not source.strip() else f"{source}: the error shows no source line"
    if result.error is not None:
        return f"{source}: {result.error}"
    wanted_value = run(expectation[3:]).value
    token = ACTIVE.set(Meter(Limits()))
    try:
        return (
            ""
            if same(wanted_value, result.value)
            else f"{source}: expected {expectation[3:]}, got {readable(result.value)}"
        )
    finally:
        ACTIVE.reset(token)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_program_of_a_file_does_as_written_beside_it(path: Path) -> None:
    found = list(chunks(path))
    assert found
    wrong = [text for text in (problem(*each) for each in found) if text]
    assert not wrong, "\n".join(wrong)


def test_the_checker_sees_a_wrong_value_a_wrong_error_and_a_wrong_place() -> None:
    assert problem("(+ 1 1)", ";=> 3")
    assert problem("(+ 1 1)", ";=> 2.0")
    assert problem("(+ 1 nil)", ";! arity_error")
    assert problem("(+ 1 nil)", ";! type_error 2:1")
    assert problem("(+ 1 1)", ";! type_error")
    assert not problem("(+ 1 1)", ";=> 2")
    assert not problem("(+ 1 nil)", ";! type_error 1:1")


def test_every_sample_case_passes() -> None:
    text = (HERE / "sample_cases.json").read_text(encoding="utf-8")
    report = run_cases(load(text))
    assert not report["failed"], report["failed"]
    assert report["passed"] > 190
    assert report["skipped"] == 0
