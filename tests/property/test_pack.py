"""Packing: within the room, whole where all fits, and worth nearly as much as the best there is."""

import math
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.bundle import Candidate, Rules, fit
from holdfast.context.pack import EXTRACT_WORTH, MMR_RELEVANCE, Rival, knapsack, share

FLOOR = 20
ROOMS = st.integers(0, 300)
RIVALS = st.lists(
    st.builds(
        Rival,
        wish=st.integers(0, 120),
        worth=st.floats(0.05, 1.0),
        terms=st.frozensets(st.sampled_from("abcdef"), max_size=4),
    ),
    max_size=6,
)


def strangers(rivals: list[Rival]) -> list[Rival]:
    """The same texts without a word in common."""
    return [
        Rival(wish=rival.wish, worth=rival.worth, terms=frozenset({str(number)}))
        for number, rival in enumerate(rivals)
    ]


def worth(rivals: list[Rival], grants: tuple[int, ...] | list[int]) -> float:
    """What texts without a word in common are worth: all, or what an extract of the floor tells."""
    return sum(
        rival.worth * (1.0 if grant >= rival.wish else EXTRACT_WORTH)
        for rival, grant in zip(rivals, grants, strict=True)
        if rival.wish and grant >= min(FLOOR, rival.wish)
    )


def best(rivals: list[Rival], room: int) -> float:
    """The most that fits, by trying all: nothing, an extract or the whole of each."""
    sizes = [{0, min(FLOOR, rival.wish), rival.wish} for rival in rivals]
    return max(worth(rivals, grants) for grants in product(*sizes) if sum(grants) <= room)


@given(RIVALS, ROOMS)
def test_grants_keep_to_room_and_wish_and_give_all_where_all_fits(
    rivals: list[Rival], room: int
) -> None:
    wishes = [rival.wish for rival in rivals]
    for granted in (knapsack(rivals, FLOOR, room), share(wishes, FLOOR, room)):
        assert sum(granted) == min(room, sum(wishes)), "nothing is wasted"
        assert all(0 <= grant <= wish for grant, wish in zip(granted, wishes, strict=True))


@given(RIVALS, ROOMS)
def test_what_is_packed_is_worth_what_the_rule_promises(rivals: list[Rival], room: int) -> None:
    apart = strangers(rivals)
    promised = (1 - 1 / math.sqrt(math.e)) * best(apart, room)
    assert worth(apart, knapsack(apart, FLOOR, room)) >= promised - 1e-9


def test_a_text_that_wishes_nothing_is_never_the_one_that_is_shown_alone() -> None:
    nothing, long, short = (
        Rival(wish=wish, worth=worth, terms=frozenset(str(wish)))
        for wish, worth in ((0, 1.0), (2, 1.0), (1, 0.5))
    )
    assert knapsack([nothing, long, short], FLOOR, 1) == [0, 0, 1]


def test_the_promise_is_broken_by_sharing_in_turn_and_by_a_rule_without_the_single_best() -> None:
    many = [Rival(wish=20, worth=0.01, terms=frozenset(str(n))) for n in range(4)]
    rivals = [*many, Rival(wish=80, worth=1.0, terms=frozenset("z"))]
    in_turn = share([rival.wish for rival in rivals], FLOOR, 80)
    promised = (1 - 1 / math.sqrt(math.e)) * best(rivals, 80)
    assert worth(rivals, in_turn) < promised <= worth(rivals, knapsack(rivals, FLOOR, 80))
    small, large = (
        Rival(wish=1, worth=0.02, terms=frozenset("a")),
        Rival(wish=19, worth=0.2, terms=frozenset("b")),
    )
    assert knapsack([small, large], FLOOR, 19) == [0, 19]


def test_a_text_that_repeats_what_is_shown_gives_way_to_one_that_does_not() -> None:
    told, again, other = frozenset("abc"), frozenset("abcd"), frozenset("xyz")
    rivals = [
        Rival(wish=30, worth=1.0, terms=told),
        Rival(wish=30, worth=0.9, terms=again),
        Rival(wish=30, worth=0.6, terms=other),
    ]
    assert knapsack(rivals, FLOOR, 60) == [30, 0, 30]
    assert MMR_RELEVANCE < 1, "the weight that decides it"


def test_what_was_found_competes_for_its_tier_by_what_a_token_tells() -> None:
    def found(name: str, text: str, value: float, rank: int) -> Candidate:
        return Candidate(
            source=name, kind="retrieved", reason="found", text=text, worth=value, rank=rank
        )

    long = found("long", "\n".join(f"a line number {n} about little" for n in range(200)), 0.5, 0)
    told = ("reader.py closes its socket twice", "a lock of the pool is never freed")
    short = [found(f"s{n}", text, 0.45, n + 1) for n, text in enumerate(told)]
    _, items = fit("# Task", [long, *short], budget_tokens=200, rules=Rules(fenced=True))
    assert {item.source: item.fate for item in items} == {
        "long": "summary",
        "s0": "whole",
        "s1": "whole",
    }
