"""A conversation as the journal sees it: canonical messages, and requests stored as what is new.

The request of a turn is the whole conversation; storing it whole each time would grow with the
square of the turns. A turn's canonical request therefore holds the messages since the turn before,
the first turn's also the seed and the tools, and the name of the model wherever it is another one
than before. After a compaction it names the step that holds what became shorter, once. Equal deltas
over equal steps mean equal requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.agent.compaction import size
from holdfast.domain.ports import Message, ModelReply, ModelRequest, ToolCall, ToolSpec

encode = msgspec.json.Encoder(order="deterministic").encode


class Conversation:
    """Messages so far, each with the step it came from (`bundle` for what the take began with).

    `model` is the `provider:model` that is asked now. `messages` are shown to it; `whole` are the
    same before any was shortened. `tokens` is the size of what is shown, `least` of what the last
    shortening left.
    """

    def __init__(
        self, *, model: str, seed: int, tools: Sequence[ToolSpec], system: str, user: str
    ) -> None:
        self.model, self.seed, self.tools = model, seed, tuple(tools)
        self.messages: list[Message] = []
        self.whole: list[Message] = []
        self.origins: list[str] = []
        self._sent = 0
        self._told = ""
        self.tokens = self.least = 0
        self._short, self._told_short = "", ""
        self._before = (0, "", "")
        self._add(Message(role="system", content=system), "bundle")
        self._add(Message(role="user", content=user), "bundle")

    def request(self) -> ModelRequest:
        """What the model is asked now."""
        return ModelRequest(
            model=self.model.partition(":")[2] or self.model,
            messages=tuple(self.messages),
            tools=self.tools,
            seed=self.seed,
        )

    def take_back(self) -> None:
        """The last request got no answer: what it said is new to whoever is asked next."""
        self._sent, self._told, self._told_short = self._before

    def move(self, model: str) -> None:
        """Ask another model from now on."""
        self.model = model

    def shorten(self, shown: Sequence[Message], step: str) -> None:
        """Show other messages from now on, as the decision of `step` has them."""
        assert len(shown) == len(self.messages), "a compaction shortens, it drops nothing"
        self.messages, self._short = list(shown), step
        self.tokens = self.least = sum(map(size, shown))

    def over(self, budget_tokens: int) -> bool:
        """Whether it has outgrown a budget, 0 being none, and shortening it can help.

        What could not be made to fit is over it again only when it has grown by a tenth: shortening
        costs the whole conversation, so trying in every turn would cost its square.
        """
        return budget_tokens > 0 and self.tokens > max(budget_tokens, self.least * 1.1)

    def delta(self) -> bytes:
        """The canonical request of this turn; moves the mark, so call it once a turn."""
        body: dict[str, Any] = {
            "after": self._sent,
            "messages": [_plain(message) for message in self.messages[self._sent :]],
        }
        if self._sent == 0:
            body |= {"seed": self.seed, "tools": self.tools}
        if self.model != self._told:
            body["model"] = self.model.partition(":")[2] or self.model
        if self._short != self._told_short:
            body["shortened"] = self._short
        self._before = (self._sent, self._told, self._told_short)
        self._sent, self._told, self._told_short = len(self.messages), self.model, self._short
        return encode(body)

    def assistant(self, reply: ModelReply, calls: Sequence[ToolCall], origin: str) -> None:
        """A reply as the next requests show it; calls written into the text stand there already
        when no tools are offered."""
        kept = tuple(calls) if self.tools else ()
        self._add(Message(role="assistant", content=reply.text, calls=kept), origin)

    def observe(self, seen: Sequence[tuple[ToolCall, str, str]]) -> None:
        """What the calls of a reply gave, in the order of the calls: (call, text, origin) of each.

        Without offered tools a model knows no tool messages: it reads one text of the user.
        """
        if self.tools:
            for call, text, origin in seen:
                self._add(
                    Message(role="tool", content=text, call_id=call.id, tool=call.name), origin
                )
            return
        told = [f"{call.name} answered:\n{text}" for call, text, _ in seen]
        self._add(Message(role="user", content="\n\n".join(told)), seen[0][2])

    def user(self, content: str, origin: str) -> None:
        self._add(Message(role="user", content=content), origin)

    def _add(self, message: Message, origin: str) -> None:
        self.messages.append(message)
        self.whole.append(message)
        self.tokens += size(message)
        self.origins.append(origin)


def _plain(message: Message) -> dict[str, Any]:
    """A message without its empty fields, so that a step's row stays small."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        body["calls"] = message.calls
    if message.call_id:
        body["call_id"] = message.call_id
    if message.tool:
        body["tool"] = message.tool
    return body


def first_difference(recorded: bytes, now: bytes) -> tuple[str, int]:
    """Where two canonical JSON texts part: the field's path and the first differing byte in it.

    Strings are compared as UTF-8; for anything else the byte counts within the field's own JSON.
    """
    try:
        return _walk(msgspec.json.decode(recorded), msgspec.json.decode(now), "")
    except msgspec.DecodeError:
        return "", _byte(recorded, now)


def _walk(left: Any, right: Any, path: str) -> tuple[str, int]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}):
            if key not in left or key not in right:
                return _join(path, key), 0
            if left[key] != right[key]:
                return _walk(left[key], right[key], _join(path, key))
    if isinstance(left, list) and isinstance(right, list):
        for index, (one, other) in enumerate(zip(left, right, strict=False)):
            if one != other:
                return _walk(one, other, f"{path}[{index}]")
        return f"{path}[{min(len(left), len(right))}]", 0
    if isinstance(left, str) and isinstance(right, str):
        return path, _byte(left.encode(), right.encode())
    return path, _byte(encode(left), encode(right))


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _byte(left: bytes, right: bytes) -> int:
    for index, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return index
    return min(len(left), len(right))
