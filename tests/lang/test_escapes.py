"""Attacks from inside the language: each is stopped by the wall that its row names.

Rows are data in `escapes/`. `wall` is one name or several joined by "-or-" where the machine's
speed decides: `reader` and `analyser` (nothing ran), `types` (a built-in refused its argument),
`inert` (it means nothing here: `value` is what it gives), `wire` (the value cannot leave), `time`
(the meter's or the parent's clock), `clock` (the parent's alone), `channel`, or the name of the
limit that fired. `source` is a text, or pieces with how often each is repeated.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.lang import wire
from holdfast.lang.api import Limits, Result
from holdfast.lang.pool import SandboxPool
from holdfast.lang.recorder import Recorder

FOLDER = Path(__file__).parent / "escapes"
TOPICS = ("python_objects", "reader", "strings_and_data", "bombs")
ROWS = [row for topic in TOPICS for row in json.loads((FOLDER / f"{topic}.json").read_text())]
BEFORE = '(println "ran") '
RUNTIME = {"type_error", "arity_error", "arithmetic_error", "not_callable"}
INPUTS = {"code": "(tool/secret {})"}


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    with SandboxPool(2) as shared:
        yield shared


def source_of(row: dict[str, Any]) -> str:
    source = row["source"]
    if source == "names":
        return " ".join(f":k{number}" for number in range(12_000))
    if isinstance(source, list):
        return "".join(piece * count for piece, count in source)
    return str(source)


def attack(pool: SandboxPool, row: dict[str, Any], source: str) -> Result:
    limits = Limits(
        wall_s=row.get("wall_s", 10.0),
        loop_iterations=row.get("loops", 1_000),
        memory_bytes=64_000_000,
    )
    host = Recorder({}, {"echo": lambda args: args})
    return pool.run(source, host=host, limits=limits, tools=["echo"], context=INPUTS)


def walls_of(result: Result) -> set[str]:
    """Every name by which a row may call what stopped a program; empty if nothing did."""
    error = result.error
    if error is None:
        return {"inert"}
    if not result.prints and error.line and error.code not in RUNTIME:
        return {"reader" if error.code == "parse_error" else "analyser"}
    found = {str(error.details.get("limit", "")), str(error.details.get("wall", ""))}
    found |= set(re.findall(r"\((\w+)\)$", error.message))
    if error.code == "parse_error":
        found.add("reader")
    if error.code in RUNTIME:
        found.add("wire" if "cannot be sent" in error.message else "types")
    if error.code == "timeout" and found & {"wall_s", "clock"}:
        found.add("time")
    if "range" in error.message:
        found.add("range")
    return found - {""}


def stopped(row: dict[str, Any], result: Result) -> bool:
    walls = set(row["wall"].split("-or-")) & walls_of(result)
    if walls == {"inert"} and "value" in row:
        return bool(wire.encode(result.value) == row["value"])
    return bool(walls)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_an_attack_is_stopped_by_the_wall_it_names(pool: SandboxPool, row: dict[str, Any]) -> None:
    result = attack(pool, row, BEFORE + source_of(row))
    assert stopped(row, result), (result.value, result.error, walls_of(result))


def test_there_are_enough_attacks_and_none_is_there_twice() -> None:
    assert len(ROWS) >= 150
    assert len({row["name"] for row in ROWS}) == len(ROWS)
    assert len({source_of(row) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    "row",
    [
        {"wall": "analyser", "source": "(+ 1 2)"},
        {"wall": "inert", "source": "(+ 1 2)", "value": 4},
        {"wall": "fuel", "source": "(inc nil)"},
        {"wall": "reader", "source": "(undefined 1)"},
        {"wall": "types", "source": "("},
    ],
)
def test_an_attack_that_gets_past_its_wall_would_be_noticed(
    pool: SandboxPool, row: dict[str, Any]
) -> None:
    assert not stopped(row, attack(pool, row, BEFORE + row["source"]))
