"""From what an endpoint said to the `ModelReply` the engine journals: one last step for all.

Owns well-formedness, redaction, derived call ids, usage estimates and cost. Adapters decode their
wire format into a `Draft` and `seal` it; no other code makes a `ModelReply`. Invariants: a sealed
reply holds no byte that `redact` would change, encodes as UTF-8, and has usage even when the
provider sent none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from holdfast.adapters.models import failures
from holdfast.adapters.models.prices import Price, cost_nusd
from holdfast.context.tokens import estimate_tokens
from holdfast.domain.ports import FinishReason, ModelReply, ModelRequest, ToolCall, Usage
from holdfast.frozen import frozen

TOKENS_MAX = 10**9  # of one call: a thousand times the largest window there is


@frozen
class Draft:
    """A decoded reply before it is sealed. A count is None when the provider did not send it.

    An empty call id means that the provider sent none.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int = 0
    tokens_written: int = 0
    tokens_reasoning: int = 0


def seal(
    draft: Draft, request: ModelRequest, *, price: Price | None, redact: Callable[[str], str]
) -> ModelReply:
    """The reply as every later reader sees it, live and replayed.

    Raises `ModelError` for a reply that announces calls and holds nothing at all: an SDK that drops
    a garbled call leaves this behind.
    """
    if draft.finish_reason == "tool_calls" and not (draft.calls or draft.text):
        raise failures.malformed("it announces tool calls and has none", redact)

    def clean(text: str) -> str:
        return redact(well_formed(text))

    calls = tuple(
        ToolCall(
            id=clean(call.id) or f"call_{position}",
            name=clean(call.name),
            arguments=_redact_arguments(well_formed(call.arguments), redact),
        )
        for position, call in enumerate(draft.calls)
    )
    called = bool(calls) and draft.finish_reason in ("stop", "unknown")
    return ModelReply(
        text=clean(draft.text),
        thinking=clean(draft.thinking),
        calls=calls,
        usage=_usage(draft, request, price),
        finish_reason="tool_calls" if called else draft.finish_reason,
        model=clean(draft.model) or request.model,
    )


def canonical_json(value: Any) -> str:
    """One spelling per value: sorted keys, no blanks, characters unescaped."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined and lone halves replaced, so that it encodes as UTF-8.

    JSON lets a model escape half a character, and streams cut pairs across chunks.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def request_texts(request: ModelRequest) -> list[str]:
    """Everything of a request that a provider counts as input, for an estimate."""
    return [
        *(message.content for message in request.messages),
        *(call.name + call.arguments for message in request.messages for call in message.calls),
        *(
            f"{tool.name} {tool.description} {canonical_json(dict(tool.parameters))}"
            for tool in request.tools
        ),
    ]


def _redact_arguments(text: str, redact: Callable[[str], str]) -> str:
    """Redact the raw text, and what it means: an escape must not carry a secret past the port."""
    text = redact(text)
    try:
        value = json.loads(text)
        redacted = _redact_leaves(value, redact)
        return text if redacted == value else well_formed(canonical_json(redacted))
    except (ValueError, RecursionError):
        return text


def _redact_leaves(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redact_leaves(item, redact) for item in value]
    if isinstance(value, dict):
        return {redact(key): _redact_leaves(item, redact) for key, item in value.items()}
    return value


def _counted(tokens: int | None) -> int | None:
    """A count as a server sent it; None when no call can have had so many, or fewer than none."""
    return tokens if tokens is not None and 0 <= tokens <= TOKENS_MAX else None


def _usage(draft: Draft, request: ModelRequest, price: Price | None) -> Usage:
    tokens_in, tokens_out = _counted(draft.tokens_in), _counted(draft.tokens_out)
    reported = tokens_in is not None and tokens_out is not None
    if tokens_in is None:
        tokens_in = estimate_tokens(*request_texts(request))
    if tokens_out is None:
        said = (call.name + call.arguments for call in draft.calls)
        tokens_out = estimate_tokens(draft.text, draft.thinking, *said)
    cached = min(max(0, draft.tokens_cached), tokens_in)
    usage = Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=cached,
        tokens_written=min(max(0, draft.tokens_written), tokens_in - cached),
        tokens_reasoning=min(max(0, draft.tokens_reasoning), tokens_out),
        cost_nusd=None,
        reported=reported,
    )
    return usage if price is None else replace(usage, cost_nusd=cost_nusd(price, usage))
