"""Thirty seconds of fuzzing the reader and the analyser; HOLDFAST_FUZZ_S gives it more."""

import os
import random

import pytest

from holdfast.lang.api import LangError, Limits, Tool
from holdfast.lang.compiler import analyse
from lang.fuzz import hunt, judge, shrink

SECONDS = float(os.environ.get("HOLDFAST_FUZZ_S", "30"))


def front(source: str) -> None:
    analyse(source, limits=Limits(), tools={"echo": Tool(name="echo")})


@pytest.mark.slow
def test_any_text_is_a_program_or_an_error_with_a_place() -> None:
    seed = int(os.environ.get("HOLDFAST_FUZZ_SEED") or random.randrange(2**32))
    tried, finding = hunt(front, SECONDS, seed)
    assert finding is None, finding
    assert tried > 10 * SECONDS


def test_the_fuzzer_finds_a_front_that_breaks_and_shrinks_to_the_cause() -> None:
    def broken(source: str) -> None:
        if "#{" in source and "&" in source:
            raise RecursionError

    _, finding = hunt(broken, 30, seed=1)
    assert finding is not None
    assert sorted(finding.source) == sorted("#{&")
    assert finding.complaint.startswith("RecursionError")


def test_the_fuzzer_finds_an_error_outside_of_its_text() -> None:
    def broken(source: str) -> None:
        raise LangError("parse_error", "somewhere", line=1, column=len(source) + 2)

    assert "outside" in judge(broken, "(+ 1")
    assert shrink(broken, "(+ 1") == ""
    assert judge(front, "(+ 1") == ""
