"""`decide` is total, and nothing it decides is refused by the lifecycle of a running task."""

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.decide import History, decide
from holdfast.domain.lifecycle import events
from holdfast.domain.model import Outcome, OutcomeKind, Policy
from holdfast.errors import FailureClass

outcomes = st.builds(
    Outcome,
    kind=st.sampled_from(get_args(OutcomeKind)),
    failure=st.none() | st.sampled_from(get_args(FailureClass)),
    reason=st.sampled_from(("", "interrupted", "drained", "turns")),
    retry_after_s=st.none() | st.floats(0, 3600),
    fresh=st.booleans(),
)
histories = st.builds(
    History,
    strikes=st.integers(0, 10),
    takes=st.integers(1, 5),
    progressed=st.booleans(),
    seed=st.integers(0, 2**32),
)


@given(outcomes, histories, st.integers(1, 5), st.integers(1, 4))
def test_every_outcome_in_every_history_means_a_legal_event(
    outcome: Any, history: History, attempts: int, takes: int
) -> None:
    made = decide(outcome, history, Policy(max_attempts=attempts, max_takes=takes))
    assert made.event in events("task", "running")
    assert made.delay_ms >= 0
    assert made == decide(outcome, history, Policy(max_attempts=attempts, max_takes=takes))
    if made.event == "retry":
        counted = outcome.reason not in ("interrupted", "drained")
        assert made.strikes < attempts or not counted
        if outcome.failure == "logic" and outcome.kind == "failed":
            assert history.takes < takes


@given(outcomes, st.integers(1, 5))
def test_attempts_without_progress_come_to_an_end(outcome: Any, attempts: int) -> None:
    policy, history = Policy(max_attempts=attempts, max_takes=2), History()
    for _ in range(attempts + 2):
        made = decide(outcome, history, policy)
        if made.event != "retry" or outcome.reason in ("interrupted", "drained"):
            return
        takes = history.takes + made.fresh
        history = History(strikes=made.strikes, takes=takes)
    raise AssertionError(f"{outcome} is retried for ever")
