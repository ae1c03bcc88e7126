"""A chain of models: when an attempt moves to the next one, and how the move is recorded.

Owns the rule and the record; the loop asks. A chain is written `A,B`. A move is a decision step of
its turn, so a resumed or replayed attempt follows it without asking the model that failed; it holds
for the rest of the take, since going back would cost the failure again in every turn. The last
model's failure is the attempt's own, as without a chain, so moves are bounded by the chain.
"""

from __future__ import annotations

from holdfast.errors import ModelError
from holdfast.frozen import frozen

# What another model may well do although this one cannot: it is spent, not for this key, or has its
# own idea of what may be said. Final for this model, whoever asks again.
_ELSEWHERE = frozenset(
    {"quota_exhausted", "not_allowed", "unknown_model", "bad_endpoint", "content_filter"}
)


@frozen
class Move:
    """From one model of the chain to the next, and why."""

    source: str
    target: str
    code: str
    reason: str


def chain(models: str) -> tuple[str, ...]:
    """The models of a chain in order, each once; one model is a chain of one."""
    return tuple(dict.fromkeys(part.strip() for part in models.split(",") if part.strip()))


def next_model(models: tuple[str, ...], current: str, error: ModelError) -> Move | None:
    """The move that a failure of `current` means; None when the failure stands.

    A refused or unreadable request would be refused anywhere, so it moves nobody.
    """
    after = models[models.index(current) + 1 :]
    away = error.failure_class in ("transient", "unknown") or error.code in _ELSEWHERE
    if not after or not away:
        return None
    return Move(source=current, target=after[0], code=error.code, reason=error.message)


def asked(name: str, moves: int) -> str:
    """The step of a turn's model call after so many moves within the turn."""
    return f"{name}/model.{moves}" if moves else f"{name}/model"


def moved(name: str, moves: int) -> str:
    """The step of the decision to move, the first of a turn being 0."""
    return f"{name}/move.{moves}"
