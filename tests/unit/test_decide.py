"""The outcome is decided once: a table of examples, and the numbers behind them."""

import pytest

from holdfast.domain.decide import Decision, History, backoff_ms, decide, reserve
from holdfast.domain.model import Budget, Outcome, Policy
from holdfast.domain.ports import Usage
from holdfast.errors import Exhausted

POLICY = Policy(max_attempts=3, max_takes=2, backoff_ms=1000, backoff_ms_max=3000)

# outcome, history → event, reason, strikes, fresh
EXAMPLES = {
    "passed": (Outcome(kind="passed"), History(strikes=2), ("succeed", "passed", 0, False)),
    "unverified": (Outcome(kind="unverified"), History(), ("succeed", "unverified", 0, False)),
    "partial": (
        Outcome(kind="partial", failure="budget", reason="turns"),
        History(),
        ("fail", "exhausted", 0, False),
    ),
    "a wait keeps its strikes": (
        Outcome(kind="waiting", reason="approval"),
        History(strikes=1),
        ("wait", "approval", 1, False),
    ),
    "an interrupt never counts": (
        Outcome(kind="cancelled", failure="cancelled", reason="interrupted"),
        History(strikes=2),
        ("retry", "interrupted", 2, False),
    ),
    "a drain never counts": (
        Outcome(kind="cancelled", reason="drained"),
        History(strikes=2),
        ("retry", "drained", 2, False),
    ),
    "cancelled": (
        Outcome(kind="cancelled", reason="unwanted"),
        History(),
        ("cancel", "unwanted", 0, False),
    ),
    "cancelled without a word": (
        Outcome(kind="cancelled"),
        History(),
        ("cancel", "cancelled", 0, False),
    ),
    "lost once": (Outcome(kind="expired"), History(), ("retry", "lost", 1, False)),
    "lost too often": (
        Outcome(kind="expired"),
        History(strikes=2),
        ("fail", "exhausted", 3, False),
    ),
    "lost after progress": (
        Outcome(kind="expired"),
        History(strikes=2, progressed=True),
        ("retry", "lost", 0, False),
    ),
    "transient": (
        Outcome(kind="failed", failure="transient"),
        History(strikes=1),
        ("retry", "transient", 2, False),
    ),
    "transient too often": (
        Outcome(kind="failed", failure="transient"),
        History(strikes=2),
        ("fail", "exhausted", 3, False),
    ),
    "transient but diverged": (
        Outcome(kind="failed", failure="transient", fresh=True),
        History(),
        ("retry", "transient", 1, True),
    ),
    "logic is rethought": (
        Outcome(kind="failed", failure="logic", reason="checks_failed"),
        History(takes=1, strikes=2),
        ("retry", "checks_failed", 0, True),
    ),
    "logic in the last take": (
        Outcome(kind="failed", failure="logic"),
        History(takes=2),
        ("fail", "logic", 0, False),
    ),
    "policy": (
        Outcome(kind="failed", failure="policy", reason="refused"),
        History(),
        ("fail", "refused", 0, False),
    ),
    "budget": (
        Outcome(kind="failed", failure="budget"),
        History(),
        ("fail", "exhausted", 0, False),
    ),
    "failed as cancelled": (
        Outcome(kind="failed", failure="cancelled"),
        History(),
        ("cancel", "cancelled", 0, False),
    ),
    "unknown": (Outcome(kind="failed"), History(), ("fail", "unknown", 0, False)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_outcome_means_one_event(name: str) -> None:
    outcome, history, wanted = EXAMPLES[name]
    made = decide(outcome, history, POLICY)
    assert (made.event, made.reason, made.strikes, made.fresh) == wanted


def test_only_a_transient_failure_waits_and_a_lost_attempt_does_not() -> None:
    transient = decide(Outcome(kind="failed", failure="transient"), History(seed=7), POLICY)
    assert transient.delay_ms == backoff_ms(POLICY, 7, 1)
    assert decide(Outcome(kind="expired"), History(seed=7), POLICY).delay_ms == 0
    assert decide(Outcome(kind="failed", failure="logic"), History(), POLICY).delay_ms == 0


def test_the_server_is_waited_for_when_it_wishes_longer() -> None:
    wish = Outcome(kind="failed", failure="transient", retry_after_s=12.5)
    assert decide(wish, History(), POLICY).delay_ms == 12_500
    short = Outcome(kind="failed", failure="transient", retry_after_s=0.001)
    assert decide(short, History(seed=7), POLICY).delay_ms == backoff_ms(POLICY, 7, 1)


def test_backoff_is_exact_for_a_seed_and_doubles_up_to_its_cap() -> None:
    policy = Policy(backoff_ms=500, backoff_ms_max=30_000)
    assert [backoff_ms(policy, 7, strikes) for strikes in (0, 1, 2, 3)] == [425, 497, 626, 1774]
    for strikes, base in ((1, 500), (2, 1000), (3, 2000), (7, 30_000), (1000, 30_000)):
        for seed in range(50):
            assert base / 2 <= backoff_ms(policy, seed, strikes) <= base


def test_a_call_is_refused_once_the_budget_is_spent_or_promised() -> None:
    budget = Budget(tokens=100)
    reserve(budget, Usage(tokens_in=60, tokens_out=30), 9, 0)
    with pytest.raises(Exhausted, match="tokens: 100 of 100") as spent:
        reserve(budget, Usage(tokens_in=60, tokens_out=30), 10, 0)
    assert (spent.value.resource, spent.value.limit, spent.value.spent) == ("tokens", 100, 100)
    reserve(Budget(usd=1.0), Usage(cost_nusd=999_999_998), 0, 1)
    with pytest.raises(Exhausted, match="usd: 1 of 1"):
        reserve(Budget(usd=1.0), Usage(cost_nusd=999_999_998), 0, 2)


def test_no_limit_refuses_nothing_and_an_unknown_price_is_no_spending() -> None:
    reserve(Budget(), Usage(tokens_in=10**9, cost_nusd=10**12), 10**9, 10**12)
    reserve(Budget(usd=1.0), Usage(cost_nusd=None), 0, 0)


def test_a_decision_is_a_plain_value() -> None:
    assert Decision(event="fail") == Decision(event="fail", reason="", strikes=0, delay_ms=0)
