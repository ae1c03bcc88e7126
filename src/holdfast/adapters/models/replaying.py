"""A model that only remembers: `replay:ATTEMPT` plays the recorded replies of an attempt again.

Owns nothing but the order. The number of assistant messages in a request is the number of its
reply, so a repeated request gets the same one, also after a crash. Invariant: no I/O, no money, and
no reply that was not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.domain.ports import ModelReply, ModelRequest
from holdfast.errors import Divergence


class ReplayingModel:
    """See the module and `domain.ports.Model`. Replies are redacted already."""

    context_tokens: int | None = None

    def __init__(self, name: str, replies: Sequence[ModelReply]) -> None:
        self.name = name
        self._replies = tuple(replies)

    async def probe(self) -> None:
        """Always well: there is nothing to reach."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply of this turn. Raises `Divergence` past the last one."""
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn >= len(self._replies):
            raise Divergence(
                f"the run asks for model call {turn + 1}, and {len(self._replies)} were recorded",
                step=f"model call {turn + 1}",
                field="count",
                byte=0,
                hint="this run takes another path than the recorded one did",
            )
        reply = self._replies[turn]
        return replace(reply, usage=replace(reply.usage, cost_nusd=0))

    async def aclose(self) -> None:
        """Nothing to close."""
