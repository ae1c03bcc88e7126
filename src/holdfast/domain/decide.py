"""The outcome is decided once: `decide` turns how an attempt ended into one event of its task.

Pure and total over every outcome; nothing else in Holdfast turns a result into a state. Backoff
and budget arithmetic live here too, so that retries and refusals can be tested without a clock.
"""

from __future__ import annotations

import random
from typing import Literal, assert_never

from holdfast.domain.model import Budget, Outcome, Policy
from holdfast.domain.ports import Usage
from holdfast.errors import Exhausted
from holdfast.frozen import frozen


@frozen
class History:
    """What came before, as counted by the store.

    `strikes`: attempts in a row that were lost or failed transiently without committing a step.
    `takes`: journals opened so far, this one included. `progressed`: this attempt committed a step.
    `seed` is the goal's; jitter derives from it.
    """

    strikes: int = 0
    takes: int = 1
    progressed: bool = False
    seed: int = 0


@frozen
class Decision:
    """One event of the task's lifecycle and what goes with it.

    `strikes` is the new count. `fresh` closes the take, so the next attempt opens another one.
    """

    event: Literal["succeed", "retry", "wait", "fail", "cancel"]
    reason: str = ""
    strikes: int = 0
    fresh: bool = False
    delay_ms: int = 0


def decide(outcome: Outcome, history: History, policy: Policy) -> Decision:
    """The one event that an ended attempt means for its task."""
    match outcome.kind:
        case "passed" | "unverified":
            return Decision(event="succeed", reason=outcome.kind)
        case "partial":
            return Decision(event="fail", reason="exhausted")
        case "waiting":
            return Decision(event="wait", reason=outcome.reason, strikes=history.strikes)
        case "cancelled":
            if outcome.reason in ("interrupted", "drained"):
                return Decision(event="retry", reason=outcome.reason, strikes=history.strikes)
            return Decision(event="cancel", reason=outcome.reason or "cancelled")
        case "expired":
            return _again("lost", outcome, history, policy)
        case "failed":
            return _route(outcome, history, policy)
        case _:
            assert_never(outcome.kind)


def _route(outcome: Outcome, history: History, policy: Policy) -> Decision:
    """Transient failures are tried again, logic failures rethought, the rest ends the task."""
    match outcome.failure:
        case "transient":
            return _again("transient", outcome, history, policy)
        case "logic":
            if history.takes < policy.max_takes:
                return Decision(event="retry", reason=outcome.reason or "logic", fresh=True)
            return Decision(event="fail", reason=outcome.reason or "logic")
        case "budget":
            return Decision(event="fail", reason="exhausted")
        case "cancelled":
            return Decision(event="cancel", reason=outcome.reason or "cancelled")
        case "policy" | "unknown" | None:
            return Decision(event="fail", reason=outcome.reason or outcome.failure or "unknown")
        case _:
            assert_never(outcome.failure)


def _again(why: str, outcome: Outcome, history: History, policy: Policy) -> Decision:
    strikes = 0 if history.progressed else history.strikes + 1
    if strikes >= policy.max_attempts:
        return Decision(event="fail", reason="exhausted", strikes=strikes)
    delay = 0 if why == "lost" else backoff_ms(policy, history.seed, strikes)
    wished = round((outcome.retry_after_s or 0.0) * 1000)
    return Decision(
        event="retry", reason=why, strikes=strikes, delay_ms=max(delay, wished), fresh=outcome.fresh
    )


def backoff_ms(policy: Policy, seed: int, strikes: int) -> int:
    """Exponential with jitter from a seed (Brooker, AWS Architecture Blog, 2015).

    The n-th delay is uniform in [base/2, base] with base = backoff_ms · 2ⁿ⁻¹, capped.
    """
    base = min(policy.backoff_ms_max, policy.backoff_ms << min(max(strikes - 1, 0), 30))
    chance = random.Random(f"{seed}:{strikes}")  # noqa: S311  jitter, not a secret
    return round(base * (0.5 + chance.random() / 2))


def reserve(budget: Budget, spent: Usage, reserved_tokens: int, reserved_nusd: int) -> None:
    """Refuse a call that the budget can no longer pay for; raises `Exhausted`.

    The call itself may overshoot by what it was not reserved for: spent ≤ budget + one call (I7).
    """
    if budget.tokens and spent.tokens + reserved_tokens >= budget.tokens:
        raise Exhausted("tokens", limit=budget.tokens, spent=spent.tokens + reserved_tokens)
    if budget.usd and (spent.cost_nusd or 0) + reserved_nusd >= budget.nusd:
        raise Exhausted(
            "usd", limit=budget.usd, spent=((spent.cost_nusd or 0) + reserved_nusd) / 1e9
        )
