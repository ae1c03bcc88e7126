"""What values look like: the limits of printing, and values that no literal makes."""

from dataclasses import replace

import pytest

from holdfast.lang.api import LangError, Limits
from holdfast.lang.meter import ACTIVE, Meter
from holdfast.lang.printer import function_name, readable
from holdfast.lang.run import run
from holdfast.lang.values import Regex, Stored


def shown(source: str) -> str:
    result = run(f"(pr-str {source})")
    assert result.error is None, result.error.render()
    return str(result.value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("inc", "#fn[inc]"),
        ("(fn [x] x)", "#fn[anonymous]"),
        ("(fn named [x] x)", "#fn[named]"),
        ("(do (defn mine [x] x) mine)", "#fn[mine]"),
        ("(comp inc dec)", "#fn[comp]"),
        ("[inc {:f (partial + 1)}]", "[#fn[inc] {:f #fn[partial]}]"),
        ("#{1 1.0 true nil \"a\" :k}", '#{nil true 1 1.0 :k "a"}'),
        ("(quote sym)", "sym"),
        ("(do (def x 1))", "#'x"),
        ("[(reduced 1)]", "[#reduced]"),
        ("#{##NaN 2.5 -3 1}", "#{-3 1 2.5 ##NaN}"),
        ("#{(fn [x] x) inc >}", "#{#fn[>] #fn[inc] #fn[anonymous]}"),
        ("[-0.0 1e7 1e-4 0.001 9999999.0]", "[-0.0 1.0E7 1.0E-4 0.001 9999999.0]"),
    ],
)  # fmt: skip
def test_a_value_shows_as_the_language_writes_it(source: str, text: str) -> None:
    assert shown(source) == text


def test_a_stored_function_and_a_foreign_object_show_no_host() -> None:
    assert readable(Stored("(fn [x] x)", {})) == "#fn[stored]"
    assert function_name(lambda: None) == "anonymous"
    assert readable(lambda: None) == "#fn[anonymous]"


def test_a_regex_shows_so_that_it_can_be_read_again() -> None:
    for source in ('#"a\\"b"', '#"a\\\\\\"b"', '#"\\d+"', '#"[\\"]"'):
        read = run(source).value
        assert isinstance(read, Regex)
        again = run(readable(read)).value
        assert isinstance(again, Regex), source
        assert again.source == read.source


@pytest.mark.parametrize(
    ("limits", "value", "limit"),
    [
        (replace(Limits(), string_chars=50), ("word",) * 100, "string_chars"),
        (replace(Limits(), value_nesting=2), ((((1,),),),), "value_nesting"),
        (replace(Limits(), int_digits=10), 10**20, "int_digits"),
    ],
)
def test_printing_ends_at_a_limit_that_can_be_lifted(
    limits: Limits, value: object, limit: str
) -> None:
    token = ACTIVE.set(Meter(limits))
    try:
        with pytest.raises(LangError) as caught:
            readable(value)
    finally:
        ACTIVE.reset(token)
    assert caught.value.details == {"limit": limit}
    token = ACTIVE.set(Meter(Limits()))
    try:
        assert len(readable(value)) > 5
    finally:
        ACTIVE.reset(token)
