"""Edits: found exactly, else by lines, else refused; whole or not at all; twice is once."""

import difflib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.tools.edits import Block, apply, blocks_of, blocks_of_diff
from holdfast.adapters.tools.paths import Refusal

TEXT = "def f(x):\n    if x:\n        return 1\n    return 2\n"


def edit(text: str, search: str, replace: str, **more: bool) -> str:
    return apply(text, [Block(search=search, replace=replace)], **more).text


def refused(text: str, *blocks: tuple[str, str]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        apply(text, [Block(search=search, replace=replace) for search, replace in blocks])
    return caught.value


def test_an_exact_place_is_replaced() -> None:
    assert edit(TEXT, "return 1", "return 3") == TEXT.replace("return 1", "return 3")


def test_a_place_found_twice_is_refused_with_its_lines() -> None:
    refusal = refused(TEXT, ("return", "yield"))
    assert refusal.code == "EDIT_AMBIGUOUS"
    assert "lines 3, 4" in refusal.message


def test_white_space_is_tolerated_and_the_files_own_indents_are_kept() -> None:
    edited = edit(TEXT, "if x:\n  return 1", "if x:\n  y = x\n  return y")
    assert edited == "def f(x):\n    if x:\n        y = x\n        return y\n    return 2\n"


def test_lines_found_twice_with_white_space_ignored_are_refused() -> None:
    assert refused("a  b\n\na   b\n", ("a b", "c")).code == "EDIT_AMBIGUOUS"


def test_deleting_tolerated_lines_leaves_no_empty_line() -> None:
    assert edit("a\n  b\nc\n", "b ", "") == "a\nc\n"


def test_a_place_not_found_is_refused_with_the_nearest_lines() -> None:
    refusal = refused(TEXT, ("retrun 1", "return 5"))
    assert refusal.code == "EDIT_NOT_FOUND"
    assert "     3\t        return 1" in refusal.message


def test_a_place_like_nothing_is_refused_with_advice() -> None:
    assert "Read it again" in refused(TEXT, ("zzzzqqqq", "a")).message
    assert "Read it again" in refused("\n\n", ("   ", "a")).message


def test_the_nearest_lines_come_from_the_redacted_text() -> None:
    with pytest.raises(Refusal) as caught:
        apply(TEXT, [Block(search="retrun [redacted", replace="x")], visible="return [redacted:k]")
    assert "[redacted:k]" in caught.value.message
    assert "return 1" not in caught.value.message


def test_one_refused_edit_refuses_all() -> None:
    refusal = refused(TEXT, ("return 1", "return 3"), ("nothing like this", "x"))
    assert refusal.message.startswith("edit 2:")


def test_later_edits_see_the_result_of_earlier_ones() -> None:
    blocks = [Block(search="return 1", replace="a = 1"), Block(search="a = 1", replace="b = 1")]
    assert "b = 1" in apply(TEXT, blocks).text


@pytest.mark.parametrize(
    ("search", "replace"),
    [
        ("return 1", "return 11"),
        ("    return 2\n", "    return 2\n    # end\n"),
        ("return 2", "# before\n    return 2"),
        ("def f(x):", "def g(x):"),
    ],
)
def test_applying_twice_is_applying_once(search: str, replace: str) -> None:
    once = edit(TEXT, search, replace)
    twice = apply(once, [Block(search=search, replace=replace)])
    assert twice.already
    assert twice.text == once != TEXT


def test_a_caller_that_names_the_content_may_repeat_a_line() -> None:
    text = "x\ny\n"
    assert apply(text, [Block(search="x\n", replace="x\ny\n")]).already
    assert edit(text, "x\n", "x\ny\n", trusted=True) == "x\ny\ny\n"


def test_windows_line_endings_are_kept() -> None:
    text = TEXT.replace("\n", "\r\n")
    edited = edit(text, "if x:\n        return 1", "if x:\n        return 9")
    assert edited == text.replace("return 1", "return 9")


def test_mixed_line_endings_are_left_alone() -> None:
    assert edit("a\r\nb\nc", "b", "d") == "a\r\nd\nc"


def test_a_form_feed_ends_no_line() -> None:
    assert edit("a\x0cb\n  c\n", "c ", "d") == "a\x0cb\n  d\n"


def test_empty_and_idle_edits_are_refused() -> None:
    for search, replace in (("", "x"), ("x", "x")):
        with pytest.raises(Refusal) as caught:
            blocks_of([{"search": search, "replace": replace}])
        assert caught.value.code == "INVALID_ARGUMENTS"


# --- unified diffs --------------------------------------------------------------------------------


def diffed(before: str, after: str, context: int = 3) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), "a", "b", n=context
    )
    return "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def test_a_diff_is_applied_where_its_lines_stand_not_where_it_says() -> None:
    diff = diffed(TEXT, TEXT.replace("return 1", "return 5"))
    moved = "# one\n# two\n" + TEXT
    assert apply(moved, blocks_of_diff(diff)).text == moved.replace("return 1", "return 5")


def test_the_line_number_decides_between_equal_places() -> None:
    text = "a\nb\n\na\nb\n"
    diff = "@@ -4,2 +4,2 @@\n a\n-b\n+c\n"
    assert apply(text, blocks_of_diff(diff)).text == "a\nb\n\na\nc\n"


def test_a_hunk_matches_whole_lines_only() -> None:
    assert apply("xa\na\n", blocks_of_diff("@@ -1 +1 @@\n-a\n+b\n")).text == "xa\nb\n"


def test_a_hunk_without_context_goes_by_its_line_and_is_recognised_later() -> None:
    blocks = blocks_of_diff("@@ -1,0 +2,1 @@\n+new\n")
    once = apply("a\nb", blocks)
    assert once.text == "a\nnew\nb"
    assert apply(once.text, blocks).already
    assert apply("a", blocks).text == "a\nnew\n"


@pytest.mark.parametrize(
    ("diff", "said"),
    [
        ("nothing", "no hunk"),
        ("@@ -1 +1 @@\n a\n", "changes nothing"),
        ("@@ -1 +1 @@\n-a\n+b\n*c\n", "line 4"),
        ("--- a\n+++ a\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ c\n@@ -1 +1 @@\n-a\n+b\n", "more than one"),
    ],
)
def test_a_diff_that_is_none_is_refused(diff: str, said: str) -> None:
    with pytest.raises(Refusal, match=said):
        blocks_of_diff(diff)


def test_a_removed_line_that_looks_like_a_header_is_a_line() -> None:
    diff = "@@ -1,2 +1,1 @@\n a\n--- b\n"
    assert apply("a\n-- b\n", blocks_of_diff(diff)).text == "a\n"


def test_an_empty_context_line_may_lack_its_space() -> None:
    diff = "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"
    assert apply("a\n\nb\n", blocks_of_diff(diff)).text == "a\n\nc\n"


LINES = st.lists(st.sampled_from(["a", "b", "  c", "d e", ""]), max_size=8)


@settings(max_examples=150)
@given(LINES, LINES, st.booleans())
def test_a_whole_context_diff_of_any_two_texts_leads_from_one_to_the_other(
    before: list[str], after: list[str], ends: bool
) -> None:
    old = "".join(f"{line}\n" for line in ["start", *before])
    new = "".join(f"{line}\n" for line in ["start", *after])
    new = new if ends else new.rstrip("\n") + "x"
    if diff := diffed(old, new, context=20):
        assert apply(old, blocks_of_diff(diff), trusted=True).text == new
