"""What ends an attempt that does not end itself: turns, repetition, stall, tokens, wall clock.

Checked in one place, before a turn. Turns, repetition and stall follow from the journal alone, so a
resumed or replayed attempt sees them again by itself; the wall clock and the budget do not, so when
one of them fires the loop records it as a decision of that turn.
"""

from __future__ import annotations

from hashlib import sha256

from holdfast.domain.model import Policy
from holdfast.frozen import frozen


@frozen
class Stop:
    """Why an attempt was ended: one word, and the numbers for a person."""

    reason: str
    detail: str


class Guards:
    """Counts one attempt's rounds; a round is a reply's calls with their observations."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._last = ""
        self._same = 0
        self._seen: set[bytes] = set()
        self._stalled = 0

    def round(self, calls: str, observations: list[str]) -> None:
        """Note what a turn asked for and saw."""
        self._same = self._same + 1 if calls == self._last else 1
        self._last = calls
        digests = {sha256(text.encode()).digest() for text in observations}
        self._stalled = self._stalled + 1 if digests <= self._seen else 0
        self._seen |= digests

    def before(self, turn: int) -> Stop | None:
        """The guard that forbids this turn (counted from 1), if one does."""
        policy = self._policy
        if self._same >= policy.repeat_limit:
            return Stop(reason="repetition", detail=f"{self._same} identical rounds")
        if self._stalled >= policy.stall_limit:
            return Stop(reason="stall", detail=f"{self._stalled} rounds saw nothing new")
        if turn > policy.max_turns:
            return Stop(reason="turns", detail=f"{policy.max_turns} turns are used up")
        return None
