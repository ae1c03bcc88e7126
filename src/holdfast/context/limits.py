"""How much context a model is given when nobody says: one table by name, unknown is conservative.

The numbers are what models of a family still use well, not the windows they advertise.
"""

from __future__ import annotations

UNKNOWN_TOKENS = (4_000, 24_000)
# The start of a model's name → tokens of a bundle, tokens of a whole conversation.
BY_MODEL: tuple[tuple[str, tuple[int, int]], ...] = (
    ("anthropic:claude", (24_000, 120_000)),
    ("openai:gpt-5", (24_000, 160_000)),
    ("openai:gpt-4", (16_000, 80_000)),
    ("openai:o", (24_000, 120_000)),
    ("ollama:", (6_000, 24_000)),
)


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
