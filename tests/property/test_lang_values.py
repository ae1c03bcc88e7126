"""Laws of values: printing and reading, the wire, keys, order, and built-ins emitted in place."""

import contextlib
import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.lang import wire
from holdfast.lang.api import Limits
from holdfast.lang.cases import same
from holdfast.lang.meter import ACTIVE, Meter
from holdfast.lang.printer import readable
from holdfast.lang.reader import Source, read
from holdfast.lang.run import run
from holdfast.lang.values import (
    Entry,
    Symbol,
    as_key,
    compare,
    equal,
    keyword,
    make_set,
    order,
    sort_values,
    unkey,
)

names = st.from_regex(r"[a-z][a-z0-9\-_?!]{0,8}", fullmatch=True)
numbers = st.integers() | st.floats(allow_nan=False)
scalars = (
    st.none()
    | st.booleans()
    | numbers
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | names.map(keyword)
)


def vectors(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=4).map(tuple)


def maps(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.lists(st.tuples(items, items), max_size=4)
    return pairs.map(lambda found: {as_key(key): value for key, value in found})


def sets(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=4).map(make_set)


values = st.recursive(
    scalars, lambda items: vectors(items) | maps(items) | sets(items), max_leaves=12
)


@pytest.fixture(autouse=True)
def metered() -> Iterator[None]:
    token = ACTIVE.set(Meter(Limits()))
    yield
    ACTIVE.reset(token)


@settings(deadline=None)
@given(values)
def test_reading_what_was_printed_gives_the_value_back(value: Any) -> None:
    result = run(readable(value))
    assert result.error is None, result.error
    assert same(value, result.value)


@settings(deadline=None)
@given(values)
def test_printing_does_not_depend_on_the_order_in_which_a_value_was_made(value: Any) -> None:
    if isinstance(value, dict):
        other = dict(reversed(list(value.items())))
        assert readable(other) == readable(value)


@settings(deadline=None)
@given(values)
def test_the_wire_loses_nothing(value: Any) -> None:
    data = json.loads(json.dumps(wire.encode(value), allow_nan=False))
    assert same(value, wire.decode(data))


@given(values, values)
def test_equal_keys_are_one_key_and_unequal_values_are_two(one: Any, other: Any) -> None:
    assert unkey(as_key(one)) is one or same(unkey(as_key(one)), one)
    if as_key(one) == as_key(other):
        assert equal(one, other)
        assert hash(as_key(one)) == hash(as_key(other))
    if same(one, other) and one == one:
        assert as_key(one) == as_key(other)


@given(values, values, values)
def test_the_order_of_views_is_total(one: Any, other: Any, third: Any) -> None:
    sign = (order(one, other) > 0) - (order(one, other) < 0)
    assert sign == (order(other, one) < 0) - (order(other, one) > 0)
    if order(one, other) <= 0 and order(other, third) <= 0:
        assert order(one, third) <= 0


@given(st.lists(numbers) | st.lists(st.text(max_size=3)) | st.lists(names.map(keyword)))
def test_sorting_agrees_with_compare_and_is_stable(items: list[Any]) -> None:
    found = sort_values(items)
    assert all(compare(one, other) <= 0 for one, other in pairwise(found))
    assert sorted(map(id, found)) == sorted(map(id, items))


def test_what_python_confuses_stays_apart() -> None:
    assert run("(count #{1 1.0 true})").value == 3
    assert run("(get {true :t 1 :i 1.0 :f} 1.0)").value is keyword("f")
    assert run("(= [1] [true])").value is False
    assert run("(= [1] [1.0])").value is True
    assert run("(frequencies [true 1 false 0])").value == {
        as_key(True): 1, 1: 1, as_key(False): 1, 0: 1,
    }  # fmt: skip
    assert as_key(Entry((1, 2))) == as_key((1, 2))
    assert as_key((True,)) != as_key((1,))
    assert run("(= ##NaN ##NaN)").value is False
    assert run("(get {:a 1} nil)").value is None


def test_values_that_json_lacks_cross_the_wire() -> None:
    for value in (math.inf, -math.inf, math.nan, -0.0, 10**5000, Symbol("a"), Entry((1, 2))):
        found = wire.decode(json.loads(json.dumps(wire.encode(value))))
        assert same(value, found)
        assert type(value) is type(found)
    for source in ('#"a+"', "(java.util.Date. 5)", '(LocalDate/parse "2024-01-02")'):
        value = run(source).value
        found = wire.decode(json.loads(json.dumps(wire.encode(value))))
        assert readable(found) == readable(value)


@pytest.mark.parametrize(
    "data",
    [{"$nope": 1}, {"$set": 1}, {"$map": [[1]]}, {"$num": "x"}, {"$num": [1]}, {"$int": "zz"},
     {"$str": 1}, {"$fn": 1}, {"$fn": "inc", "env": 5}, {"$entry": [1]}, {1: 2}, object()],
)  # fmt: skip
def test_hostile_wire_data_is_refused(data: Any) -> None:
    with pytest.raises(wire.LangError):
        wire.decode(data)


def test_data_nested_without_end_is_refused() -> None:
    data: Any = 1
    for _ in range(2000):
        data = [data]
    with pytest.raises(wire.LangError):
        wire.decode(data)
    with pytest.raises(wire.LangError):
        wire.encode(_nested(2000))


def _nested(depth: int) -> Any:
    value: Any = ()
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.parametrize(
    "text",
    ["(println 1)", "(fn [x] x) (println 1)", "(do (fn [x] x))", "(partial (println 1))", "5"],
)
def test_a_stored_function_is_never_a_program(text: str) -> None:
    result = run("(f 1)", memory={"f": wire.decode({"$fn": text})})
    assert result.error is not None
    assert not result.prints


@given(st.text(max_size=60))
def test_the_reader_answers_or_refuses_with_a_place_and_never_breaks(text: str) -> None:
    with contextlib.suppress(Placed):
        try:
            read(Source(text), Limits())
        except wire.LangError as error:
            if error.line >= 1 and error.column >= 1:
                raise Placed from None
            raise


class Placed(Exception):
    """A refusal that says where."""


operands = st.sampled_from(
    ["0", "1", "-3", "7", "2.5", "-0.0", "nil", "true", '"a"', ":k", "[1]", "9999999999999999999"]
)
operators = st.sampled_from(["+", "-", "*", "<", "<=", ">", ">=", "=", "not=", "mod", "get"])
singles = st.sampled_from(
    ["inc", "dec", "zero?", "pos?", "neg?", "even?", "odd?", "not", "nil?", "some?", "true?",
     "false?", "identity", "first"]
)  # fmt: skip


@settings(deadline=None)
@given(operators, operands, operands)
def test_a_built_in_emitted_in_place_is_the_built_in(op: str, one: str, other: str) -> None:
    forms = [f"({op} {one} {other})", f"(let [a {one} b {other}] ({op} a b))",
             f"(let [a {one}] ({op} a {other}))", f"(let [b {other}] ({op} {one} b))",
             f"(if ({op} {one} {other}) ({op} {one} {other}) ({op} {one} {other}))"]  # fmt: skip
    plain = run(f"(apply {op} [{one} {other}])")
    for source in forms:
        found = run(source)
        assert (found.error is None) == (plain.error is None), (source, found.error, plain.error)
        if plain.error is None:
            assert same(plain.value, found.value), source
        else:
            assert found.error is not None
            assert found.error.code == plain.error.code, source


@settings(deadline=None)
@given(singles, operands)
def test_a_built_in_of_one_argument_emitted_in_place_is_the_built_in(op: str, one: str) -> None:
    plain = run(f"(apply {op} [{one}])")
    for source in (f"({op} {one})", f"(let [a {one}] ({op} a))"):
        found = run(source)
        assert (found.error is None) == (plain.error is None), (source, found.error)
        if plain.error is None:
            assert same(plain.value, found.value), source


@settings(deadline=None)
@given(values)
def test_a_program_gives_the_same_twice(value: Any) -> None:
    source = f"[(pr-str {readable(value)}) (hash-map 1 {readable(value)})]"
    one, other = run(source), run(source)
    assert same(one.value, other.value)
    assert one.usage.fuel == other.usage.fuel
