"""The table of built-ins and the page made of it: examples run, every row is complete."""

from pathlib import Path

import pytest

from holdfast.lang import library
from holdfast.lang.cases import same
from holdfast.lang.forms import FORMS, HANDLERS
from holdfast.lang.manual import manual
from holdfast.lang.run import run

ROWS = [row for row in library.ROWS.values() if row.group != "hidden"]
ACTING = {"return", "fail"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_documented_and_its_example_gives_its_value(row: library.Row) -> None:
    assert row.doc.endswith(".")
    assert row.usage.startswith(f"({row.name}")
    assert row.cost.partition(" ")[0] in ("1", "n", "f", "host")
    if row.name in ACTING:
        return
    result, wanted = run(row.example), run(row.value)
    assert result.error is None, result.error
    assert same(wanted.value, result.value), (row.example, result.value)


def test_the_page_is_what_the_tables_say() -> None:
    page = Path(__file__).parents[2] / "docs" / "lisp.md"
    assert page.read_text(encoding="utf-8") == manual(), "run: make docs"


def test_every_form_and_every_built_in_is_on_the_page() -> None:
    text = manual()
    for name in FORMS:
        assert f"({name}" in text or f"`{name}`" in text or name == "var", name
    for row in ROWS:
        assert f"`{row.usage}`".replace("|", "\\|") in text


def test_no_form_hides_a_built_in_and_no_name_is_both_offered_and_refused() -> None:
    assert not set(HANDLERS) & set(library.ROWS)
    assert not set(library.NOT_OFFERED) & set(library.ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_too_few_arguments_are_refused_before_anything_runs(row: library.Row) -> None:
    if row.low == 0:
        return
    result = run(f"(println 1) ({row.name} {' '.join(['1'] * (row.low - 1))})")
    assert result.error is not None
    assert result.error.code == "arity_error"
    assert not result.prints
    if row.high is not None:
        result = run(f"({row.name} {' '.join(['1'] * (row.high + 1))})")
        assert result.error is not None
        assert result.error.code == "arity_error"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_built_in_called_as_a_value_with_too_few_arguments_is_an_arity_error(
    row: library.Row,
) -> None:
    if row.low == 0 or row.helper:
        return
    result = run(f"(let [f {row.name}] (apply f [{' '.join(['1'] * (row.low - 1))}]))")
    assert result.error is not None
    assert result.error.code == "arity_error", result.error
    assert result.error.message.startswith(f"{row.fn.lisp_name} "), result.error
