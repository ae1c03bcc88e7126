"""Generated programs give what Clojure gives: at least 2,000 a run, compared by value.

The oracle is nbb, or Clojure on the JVM where HOLDFAST_ORACLE is "clojure" (`make lisp-clojure`).
HOLDFAST_DIFFERENTIAL sets another number of programs and makes them new ones each time.
"""

import json
import math
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from differential.generate import KINDS, literal, programs
from differential.oracle import Oracle
from holdfast.lang.api import Limits
from holdfast.lang.run import run
from holdfast.lang.values import Keyword, unkey

COUNT = int(os.environ.get("HOLDFAST_DIFFERENTIAL", "2000"))
# A small depth, so that `run` need not raise the recursion limit that Hypothesis looks after.
LIMITS = Limits(wall_s=10, depth=200)


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    running = Oracle.clojure() if os.environ.get("HOLDFAST_ORACLE") == "clojure" else Oracle.nbb()
    yield running
    running.close()


def canonical(value: Any) -> Any:
    """A value in the oracle's form; see oracle.cljs."""
    value = unkey(value)
    match value:
        case None | bool() | int():
            return value
        case float():
            if math.isnan(value):
                return {"$num": "NaN"}
            return value if math.isfinite(value) else {"$num": "Inf" if value > 0 else "-Inf"}
        case str():
            return {"$str": value}
        case Keyword():
            return f":{value.name}"
        case dict():
            pairs = [[canonical(key), canonical(each)] for key, each in value.items()]
            return {"$map": sorted(pairs, key=text)}
        case frozenset():
            return {"$set": sorted(map(canonical, value), key=text)}
        case tuple():
            return [canonical(each) for each in value]
    return {"$other": type(value).__name__}


def theirs(oracle: Oracle, source: str) -> dict[str, Any]:
    """The oracle's answer, its maps and sets in our order."""
    answer = oracle.evaluate(source)
    return {"value": ordered(answer["value"])} if "value" in answer else answer


def ordered(value: Any) -> Any:
    match value:
        case {"$map": pairs}:
            return {"$map": sorted(map(ordered, pairs), key=text)}
        case {"$set": items}:
            return {"$set": sorted(map(ordered, items), key=text)}
        case list():
            return list(map(ordered, value))
    return value


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def ours(source: str) -> dict[str, Any]:
    result = run(source, limits=LIMITS)
    return {"error": str(result.error)} if result.error else {"value": canonical(result.value)}


@settings(
    max_examples=COUNT,
    deadline=None,
    derandomize="HOLDFAST_DIFFERENTIAL" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(source=programs())
def test_a_generated_program_gives_what_clojure_gives(oracle: Oracle, source: str) -> None:
    expected = theirs(oracle, source)
    assert "error" not in expected, f"the generator wrote no Clojure: {source}\n{expected}"
    assert ours(source) == expected, source


@given(data=st.data())
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
def test_every_literal_reads_the_same(oracle: Oracle, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(KINDS).flatmap(lambda kind: literals(kind)))
    assert ours(source) == theirs(oracle, source)


@st.composite
def literals(draw: st.DrawFn, kind: str) -> str:
    return literal(draw, kind)


@pytest.mark.parametrize(
    ("source", "wrong"),
    [("(+ 1 2)", {"value": 4}), ("[1 2]", {"value": [2, 1]}), ('"a"', {"value": ":a"})],
)
def test_a_wrong_answer_would_be_noticed(
    oracle: Oracle, source: str, wrong: dict[str, Any]
) -> None:
    assert oracle.evaluate(source) != wrong
    assert ours(source) == theirs(oracle, source)


def test_the_oracle_reports_what_is_no_program(oracle: Oracle) -> None:
    assert "error" in oracle.evaluate("(undefined-name 1)")
