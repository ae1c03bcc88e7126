"""The token counter: offline, monotone, and near enough to a real tokenizer to budget with."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.tokens import count_tokens, estimate_tokens


def test_common_words_are_one_token_and_long_ones_are_cut() -> None:
    assert count_tokens("the quick brown fox") == 4
    assert count_tokens("internationalization") == 3


def test_digits_go_in_threes_symbols_alone_and_blank_runs_together() -> None:
    assert count_tokens("1234567") == 3
    assert count_tokens("a = b[0];") == 7
    assert count_tokens("a\n\n\n    b") == 4
    assert count_tokens("世界") == 2
    assert count_tokens("🦊") == 1
    assert count_tokens("привет") == 2


def test_no_text_is_no_token() -> None:
    assert count_tokens("") == count_tokens(" ") == estimate_tokens() == 0


def test_an_estimate_adds_a_tenth_and_rounds_up() -> None:
    assert estimate_tokens("one two three", "four") == 5
    assert estimate_tokens(*["word"] * 10) == 11


@given(st.text(), st.text())
def test_appending_never_lowers_the_count(text: str, more: str) -> None:
    assert 0 <= count_tokens(text) <= count_tokens(text + more)
