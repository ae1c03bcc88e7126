"""Pack: how many tokens each of several texts gets of a room that is too small for all.

Owns the two ways to share, which bundles and compactions have in common: in turn, for what was
named and has an order, and by worth, for what retrieval found and competes. Pure and deterministic.
Invariants: the grants are never more than the room; none is more than its wish; where all fits,
each gets its wish.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.context.retrieve import MMR_RELEVANCE, similarity
from holdfast.frozen import frozen

EXTRACT_WORTH = 0.6  # of the worth of the whole: what an extract of up to the floor tells


@frozen
class Rival:
    """A text that competes: `worth` is its relevance, 0 to 1; `terms` tell what it repeats."""

    wish: int
    worth: float
    terms: frozenset[str]


def share(wishes: Sequence[int], floor: int, room: int) -> list[int]:
    """What each gets of `room`: all in turn up to `floor` first, then in turn what they wish."""
    granted = [0] * len(wishes)
    for most in ([min(wish, floor) for wish in wishes], wishes):
        for index, wish in enumerate(most):
            extra = max(0, min(wish - granted[index], room))
            granted[index] += extra
            room -= extra
    return granted


def knapsack(rivals: Sequence[Rival], floor: int, room: int) -> list[int]:
    """What each gets of `room` so that what is shown is worth most, repetition discounted.

    Each can be an extract of up to `floor` tokens or whole. The step that adds the most marginal
    relevance a token is taken while it fits; if one text alone is worth more than all of that, it
    is taken instead. That is the cost-scaled greedy rule for a submodular worth under a knapsack
    (Lin and Bilmes 2010, within 1 - 1/sqrt(e) of the best), the margin being MMR's. What no step
    fits is left to the texts in their order, for longer extracts.
    """
    granted, worth = _greedy(rivals, floor, room)
    fitting = [index for index, rival in enumerate(rivals) if 0 < rival.wish <= room]
    alone = max(fitting, key=lambda index: (rivals[index].worth, -index), default=None)
    if alone is not None and rivals[alone].worth * MMR_RELEVANCE > worth:
        granted = [0] * len(rivals)
        granted[alone] = rivals[alone].wish
    left = room - sum(granted)
    for index, rival in enumerate(rivals):
        extra = min(rival.wish - granted[index], left)
        granted[index] += extra
        left -= extra
    return granted


def _greedy(rivals: Sequence[Rival], floor: int, room: int) -> tuple[list[int], float]:
    """The grants of the greedy rule and the worth of what they show."""
    granted, total = [0] * len(rivals), 0.0
    shown: list[frozenset[str]] = []
    while True:
        steps = [
            (gain / cost, -index, gain, cost)
            for index, rival in enumerate(rivals)
            for gain, cost in [_step(rival, granted[index], floor, shown)]
            if 0 < cost <= room and gain > 0
        ]
        if not steps:
            return granted, total
        _, place, gain, cost = max(steps)
        if not granted[-place]:
            shown.append(rivals[-place].terms)
        granted[-place] += cost
        total, room = total + gain, room - cost


def _step(
    rival: Rival, granted: int, floor: int, shown: Sequence[Collection[str]]
) -> tuple[float, int]:
    """What showing more of a text adds to the worth, and what that costs."""
    first = min(rival.wish, floor)
    part = 1.0 if first == rival.wish else EXTRACT_WORTH
    if granted:
        return MMR_RELEVANCE * rival.worth * (1 - part), rival.wish - granted
    near = max((similarity(rival.terms, other) for other in shown), default=0.0)
    return MMR_RELEVANCE * rival.worth * part - (1 - MMR_RELEVANCE) * near, first
