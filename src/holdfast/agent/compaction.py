"""Compaction: what is left of a conversation that has outgrown its budget, and how it is recorded.

Owns the rule; the loop asks once a turn. Tool results give way first, the oldest before newer ones,
then old turns; what the take began with and the last round, which nobody has read yet, are never
touched. It is cut well below
the budget, so that the next turns only append and a provider's prompt cache keeps what it has read.

The shortened texts are a decision step of their turn: a resumed or replayed attempt puts them back
without shortening anything again, so neither new code nor another counter changes a request that
was sent. A conversation below its budget is not looked at, and its requests are what they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from holdfast.context.pack import share
from holdfast.context.shorten import head_and_tail
from holdfast.context.tokens import count_tokens
from holdfast.domain.ports import Message, ToolCall
from holdfast.frozen import frozen

FLOOR_TOKENS = 40
TARGET = 0.5  # of the budget: what a compaction leaves

_encode = msgspec.json.Encoder(order="deterministic").encode


@frozen
class Compaction:
    """What became shorter. Keys of `short` are a message's number, or `number/call/argument`.

    `before` and `after` are tokens of the whole conversation.
    """

    before: int
    after: int
    short: Mapping[str, str]


@frozen
class _Part:
    key: str
    kind: Literal["turn", "result"]
    text: str


def compact(
    messages: Sequence[Message], origins: Sequence[str], *, budget_tokens: int
) -> Compaction | None:
    """The compaction of a conversation that is over its budget; None when nothing gives way.

    `messages` are the whole ones, so that a text that was shortened before is not cut twice.
    """
    before = sum(size(message) for message in messages)
    begin = min(2, len(messages))
    said = [number for number, message in enumerate(messages) if message.role == "assistant"]
    end = max(begin, said[-1]) if said else begin
    old = [part for at in range(begin, end) for part in _parts(at, messages[at], origins[at])]
    served = [part for kind in ("turn", "result") for part in reversed(old) if part.kind == kind]
    costs = [count_tokens(part.text) for part in served]
    room = max(0, round(budget_tokens * TARGET) - before + sum(costs))
    short = {}
    after = before
    for part, cost, grant in zip(served, costs, share(costs, FLOOR_TOKENS, room), strict=True):
        text = part.text if cost <= grant else _shortened(part.text, grant)
        if count_tokens(text) < cost:
            short[part.key] = text
            after -= cost - count_tokens(text)
    return Compaction(before=before, after=after, short=short) if short else None


def applied(messages: Sequence[Message], compaction: Compaction) -> list[Message]:
    """The conversation as it is shown from then on; `messages` are the whole ones.

    Raises `ValueError` or `LookupError` for a compaction of another conversation.
    """
    shown = list(messages)
    for key, text in compaction.short.items():
        number, _, place = key.partition("/")
        message = shown[int(number)]
        if not place:
            shown[int(number)] = replace(message, content=text)
            continue
        index, _, name = place.partition("/")
        calls = list(message.calls)
        calls[int(index)] = _with_argument(calls[int(index)], name, text)
        shown[int(number)] = replace(message, calls=tuple(calls))
    return shown


def size(message: Message) -> int:
    """What a message takes of a conversation, in tokens."""
    texts = [message.content, *[call.arguments for call in message.calls]]
    return sum(map(count_tokens, texts))


def _parts(number: int, message: Message, origin: str) -> Iterator[_Part]:
    kind: Literal["turn", "result"] = "result" if "/call:" in origin else "turn"
    if message.content:
        yield _Part(key=str(number), kind=kind, text=message.content)
    for index, call in enumerate(message.calls):
        for name, text in _texts(call).items():
            yield _Part(key=f"{number}/{index}/{name}", kind="turn", text=text)


def _texts(call: ToolCall) -> dict[str, str]:
    """The arguments of a call that are texts; none when it holds no object."""
    try:
        return {
            name: value
            for name, value in msgspec.json.decode(call.arguments, type=dict).items()
            if isinstance(value, str)
        }
    except msgspec.MsgspecError:
        return {}


def _with_argument(call: ToolCall, name: str, text: str) -> ToolCall:
    arguments = {**msgspec.json.decode(call.arguments, type=dict), name: text}
    return replace(call, arguments=_encode(arguments).decode())


def _shortened(text: str, grant: int) -> str:
    left = head_and_tail(text, lambda part: count_tokens(part) <= grant)
    return left or f"[… {len(text.splitlines())} lines left out …]"
