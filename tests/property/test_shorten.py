"""First words: what is left of an endless line fits, says what it lacks and breaks no character."""

import re
from collections.abc import Callable
from itertools import accumulate

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.context.bundle import Candidate, fit
from holdfast.context.shorten import first_words
from holdfast.context.tokens import count_tokens

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
FLAG, THUMB, SCOT = "\U0001f1eb\U0001f1ee", "\U0001f44d\U0001f3fd", "\U0001f3f4\U000e0067\U000e007f"
SEEN_AS_ONE = ["e\u0301", FAMILY, FLAG, THUMB, SCOT, "\u1100\u1161\u11a8", "数", "z", " \u0301"]
LINES = st.lists(st.sampled_from([*SEEN_AS_ONE, "word ", "\r\n", "x" * 90]), max_size=80)


def told(cut: str) -> tuple[str, int]:
    """The words shown, and how many characters the mark says are not."""
    found = re.fullmatch(r"(.*\S)\n\[… (\d+) more characters left out\]", cut, re.DOTALL)
    assert found is not None, cut
    return found[1], int(found[2])


def shorter_than(room: int) -> Callable[[str], bool]:
    return lambda short: len(short) <= room


@given(LINES, st.integers(0, 200))
@example(["\r\n"] * 500 + ["word "], 30)
def test_first_words_fit_and_the_mark_counts_what_is_not_there(parts: list[str], room: int) -> None:
    text = "".join(parts)
    cut = first_words(text, lambda short: count_tokens(short) <= room)
    if cut:
        shown, left_out = told(cut)
        assert count_tokens(cut) <= room
        assert text.startswith(shown)
        assert len(shown) + left_out == len(text)


def halved(cut: str, parts: list[str]) -> bool:
    return bool(cut) and len(told(cut)[0]) not in set(accumulate(map(len, parts)))


@given(st.lists(st.sampled_from(SEEN_AS_ONE), max_size=80), st.integers(36, 120))
def test_what_is_seen_as_one_character_is_not_cut_in_two(parts: list[str], room: int) -> None:
    assert not halved(first_words("".join(parts), shorter_than(room)), parts)


def test_the_check_for_characters_catches_one_that_is_cut() -> None:
    assert halved("e\n[… 2 more characters left out]", ["e\u0301", "z"])
    assert not halved("e\u0301\n[… 1 more characters left out]", ["e\u0301", "z"])


def test_words_are_kept_whole_where_one_ends_near_and_a_longer_one_is_cut() -> None:
    def kept(text: str, room: int = 70) -> str:
        return told(first_words(text, shorter_than(room)))[0]

    assert kept("several words in one endless line, " * 20) == "several words in one endless line,"
    assert kept("several-words-in-one " * 20) == "several-words-in-one"
    assert kept("key: " + "x" * 500, 100).startswith("key: xxxx"), "no blank within reach"
    assert kept("x" * 500).startswith("xxxx"), "no blank at all"


@given(LINES, st.integers(40, 300))
def test_a_plain_dependency_of_one_endless_line_is_cut_and_not_left_out(
    parts: list[str], budget: int
) -> None:
    line = "The answer: " + "".join(parts).replace("\r\n", " ") + " and so on" * 400
    output = Candidate(source="Task a", kind="requires", reason="requires: a", text=line)
    text, (item,) = fit("# Task", [output], budget_tokens=budget)
    assert count_tokens(text) <= budget
    assert item.fate == "cut"
    assert text.startswith("# Task\n\n## Task a (requires: a)\n\nThe answer:")
    assert re.search(r"\n\[… \d+ more characters left out\]$", text)


def test_half_a_name_is_never_shown() -> None:
    names = Candidate(source="Files", kind="tree", reason="names", text="src/" + "long_name" * 90)
    _, (item,) = fit("# Task", [names], budget_tokens=60)
    assert item.fate == "out"
