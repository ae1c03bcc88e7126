"""Task graphs: concrete loops, a stable order, and what keeps a task blocked."""

import pytest

from holdfast.domain.graph import find_cycle, order, unmet, validate
from holdfast.errors import Refused


def test_a_cycle_is_shown_as_one_concrete_loop_with_the_edge_to_remove() -> None:
    requires = {"x": ("a",), "a": ("b",), "b": ("c",), "c": ("a",), "free": ()}
    assert find_cycle(requires) == ["a", "b", "c", "a"]
    with pytest.raises(Refused, match="a → b → c → a") as refused:
        validate(requires)
    assert refused.value.hint == "remove the requirement of 'c' on 'a'"
    assert refused.value.code == "plan_cycle"


def test_a_diamond_is_no_cycle() -> None:
    requires = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
    validate(requires)
    assert find_cycle(requires) == []
    assert order(requires) == ["a", "b", "c", "d"]


def test_a_long_chain_needs_no_deep_stack() -> None:
    requires = {f"k{n}": ((f"k{n - 1}",) if n else ()) for n in range(20_000)}
    assert find_cycle(requires) == []
    assert order(requires)[-1] == "k19999"


@pytest.mark.parametrize(
    ("requires", "code", "words"),
    [
        ({"a": ("a",)}, "plan_cycle", "'a' requires itself"),
        ({"a": ("b",)}, "plan_missing", "'a' requires 'b', which is not in the plan"),
    ],
)
def test_a_requirement_that_cannot_be_is_refused(
    requires: dict[str, tuple[str, ...]], code: str, words: str
) -> None:
    with pytest.raises(Refused, match=words) as refused:
        validate(requires)
    assert refused.value.code == code


def test_ties_are_broken_by_priority_then_by_position() -> None:
    requires = {"a": (), "b": (), "c": ("b", "b"), "d": ()}
    assert order(requires) == ["a", "b", "c", "d"]
    assert order(requires, {"d": 5, "c": 9}) == ["d", "a", "b", "c"]
    with pytest.raises(AssertionError, match="acyclic"):
        order({"a": ("b",), "b": ("a",)})


def test_only_success_or_a_recorded_force_satisfies() -> None:
    state = {"a": "succeeded", "b": "failed", "c": "cancelled"}
    assert unmet(("a", "b", "c", "gone"), state) == ["b", "c", "gone"]
    assert unmet(("a", "b", "c"), state, forced=("b", "c")) == []
