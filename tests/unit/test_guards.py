"""What ends an attempt that does not end itself: each guard at its limit and one below."""

from holdfast.agent.guards import Guards
from holdfast.domain.model import Policy


def rounds(guards: Guards, *seen: tuple[str, list[str]]) -> Guards:
    for calls, observations in seen:
        guards.round(calls, observations)
    return guards


def test_the_same_calls_over_and_over_are_repetition() -> None:
    policy = Policy(repeat_limit=3, stall_limit=99)
    guards = rounds(Guards(policy), ("a", ["1"]), ("a", ["2"]))
    assert guards.before(3) is None
    guards.round("a", ["3"])
    stop = guards.before(4)
    assert stop is not None
    assert (stop.reason, stop.detail) == ("repetition", "3 identical rounds")


def test_another_call_between_breaks_a_repetition() -> None:
    policy = Policy(repeat_limit=2, stall_limit=99)
    assert rounds(Guards(policy), ("a", ["1"]), ("b", ["2"]), ("a", ["3"])).before(4) is None


def test_rounds_that_see_nothing_new_are_a_stall() -> None:
    policy = Policy(repeat_limit=99, stall_limit=2)
    guards = rounds(Guards(policy), ("a", ["x", "y"]), ("b", ["x"]))
    assert guards.before(3) is None
    guards.round("c", ["y", "x"])
    stop = guards.before(4)
    assert stop is not None
    assert (stop.reason, stop.detail) == ("stall", "2 rounds saw nothing new")
    guards.round("d", ["new"])
    assert guards.before(5) is None


def test_turns_end_after_the_last_one_allowed() -> None:
    guards = Guards(Policy(max_turns=2))
    assert guards.before(2) is None
    stop = guards.before(3)
    assert stop is not None
    assert (stop.reason, stop.detail) == ("turns", "2 turns are used up")
    assert Guards(Policy(max_turns=3)).before(3) is None
