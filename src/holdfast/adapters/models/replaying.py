"""A model that only remembers: the recorded replies of a run, in order, for `holdfast replay`.

Owns nothing but the order. Comparing the requests with the recorded ones is the journal's work.
Invariant: no I/O, and no reply that was not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.ports import ModelReply, ModelRequest
from holdfast.errors import Divergence


class ReplayingModel:
    """Gives each recorded reply once; see `domain.ports.Model`. Replies are redacted already."""

    def __init__(
        self, name: str, replies: Sequence[ModelReply], *, context_tokens: int | None = None
    ) -> None:
        self._name = name
        self._replies = tuple(replies)
        self._context_tokens = context_tokens
        self._given = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def context_tokens(self) -> int | None:
        return self._context_tokens

    async def probe(self) -> None:
        """Always well: there is nothing to reach."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next recorded reply. Raises `Divergence` when there is none left."""
        if self._given == len(self._replies):
            raise Divergence(
                f"the run asks for model call {self._given + 1}, and {self._given} were recorded",
                step=f"model call {self._given + 1}",
                field="count",
                byte=0,
                hint="the code takes another path than the recorded run did",
            )
        self._given += 1
        return self._replies[self._given - 1]

    async def aclose(self) -> None:
        """Nothing to close."""
