"""Source files with the expected value or error inline: `;=> value` and `;! code line:column`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.lang import library
from holdfast.lang.api import Limits
from holdfast.lang.cases import encoded, load, run_cases, same
from holdfast.lang.meter import ACTIVE, Meter
from holdfast.lang.pool import SandboxPool
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


# A walled worker can load nothing, so what a program needs must be loaded before the walls go up.
CHILD = """
import json, sys
from holdfast.lang.worker import rehearse
from holdfast.lang.run import run
rehearse()
before, late = set(sys.modules), []
for source in json.load(sys.stdin):
    if source == "a planted late import":
        "".encode("cp037")
    run(source, tools=["echo"])
    if set(sys.modules) - before:
        late.append([source, sorted(set(sys.modules) - before)])
        before = set(sys.modules)
print(json.dumps(late))
"""


def test_no_program_needs_a_module_that_a_walled_worker_has_not_loaded() -> None:
    sources = [source for path in FILES for source, _ in chunks(path)]
    planted = "a planted late import"
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps([*sources, planted]),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [source for source, _ in json.loads(child.stdout)] == [planted], child.stdout


def test_every_example_gives_behind_the_walls_what_it_gives_without_them() -> None:
    examples = [row.example for row in library.ROWS.values() if row.example]
    source = f"[{' '.join(examples)}]"
    with SandboxPool(1) as pool:
        inside, outside = pool.run(source), run(source)
    assert inside.error is None
    assert encoded(inside.value) == encoded(outside.value)


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
