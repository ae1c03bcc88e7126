"""How much context a model is given when nobody says: one table by name, unknown is conservative.

The numbers are what models of a family still use well, not the windows they advertise.
"""

from __future__ import annotations

UNKNOWN_TOKENS = 4_000
BY_MODEL: tuple[tuple[str, int], ...] = (
    ("anthropic:claude", 24_000),
    ("openai:gpt-5", 24_000),
    ("openai:gpt-4", 16_000),
    ("openai:o", 24_000),
    ("ollama:", 6_000),
)


def bundle_tokens(model: str, configured: int) -> int:
    """The configured size, or for 0 the model's own: `model` is `provider:name`."""
    if configured:
        return configured
    return next((size for name, size in BY_MODEL if model.startswith(name)), UNKNOWN_TOKENS)
