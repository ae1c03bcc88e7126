"""How much context a model is given when nobody says, and of which kind: unknown is conservative.

The numbers are what models of a family still use well, not the windows they advertise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from holdfast.config import Settings
from holdfast.context.bundle import ORDERS
from holdfast.context.tokens import counter
from holdfast.domain.model import ContextOptions
from holdfast.errors import Refused

MODES: tuple[Literal["plain", "curated"], ...] = ("plain", "curated")
SUMMARIES: tuple[Literal["extract", "model"], ...] = ("extract", "model")
UNKNOWN_TOKENS = (4_000, 24_000)
# The start of a model's name → tokens of a bundle, tokens of a whole conversation.
BY_MODEL: tuple[tuple[str, tuple[int, int]], ...] = (
    ("anthropic:claude", (24_000, 120_000)),
    ("openai:gpt-5", (24_000, 160_000)),
    ("openai:gpt-4", (16_000, 80_000)),
    ("openai:o", (24_000, 120_000)),
    ("ollama:", (6_000, 24_000)),
)


def resolved(options: ContextOptions, settings: Settings, model: str) -> ContextOptions:
    """Options of which none is left to the settings; refuses what is not known."""
    mode, order = options.mode or settings.context, settings.context_order
    summary = options.summary or settings.context_summary
    if mode not in MODES or order not in ORDERS or summary not in SUMMARIES:
        raise Refused(
            f"context {mode!r} with order {order!r} and summary {summary!r} is not known",
            hint=f"context: {', '.join(MODES)}; context_order: {', '.join(ORDERS)};"
            f" context_summary: {', '.join(SUMMARIES)}",
        )
    counter(settings.token_counter)
    size = options.tokens or bundle_tokens(model, settings.bundle_tokens)
    if size < 1:
        raise Refused(f"bundle_tokens is {size}; 0 means by the model")
    return replace(options, mode=mode, summary=summary, tokens=size)


def bundle_tokens(model: str, configured: int) -> int:
    """The configured size, or for 0 the model's own: `model` is `provider:name`."""
    return configured or _of(model)[0]


def conversation_tokens(model: str, configured: int) -> int:
    """What a conversation may grow to before it is compacted, in the same way."""
    return configured or _of(model)[1]


def _of(model: str) -> tuple[int, int]:
    """Of a chain, `A,B`, the smallest: what A was given, B must be able to read."""
    found = [
        next((sizes for name, sizes in BY_MODEL if one.strip().startswith(name)), UNKNOWN_TOKENS)
        for one in model.rstrip(", ").split(",")
    ]
    return min(bundle for bundle, _ in found), min(whole for _, whole in found)
