"""Any graph: an order when there is one, else a real loop; the same order every time."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.graph import find_cycle, order

KEYS = [f"k{index}" for index in range(8)]
graphs = st.dictionaries(
    st.sampled_from(KEYS), st.lists(st.sampled_from(KEYS), max_size=3), min_size=1
).map(lambda graph: {key: [n for n in graph[key] if n in graph and n != key] for key in graph})


@given(graphs, st.dictionaries(st.sampled_from(KEYS), st.integers(-2, 2)))
def test_a_graph_has_an_order_or_a_loop(
    requires: dict[str, list[str]], priority: dict[str, int]
) -> None:
    loop = find_cycle(requires)
    if loop:
        assert loop[0] == loop[-1]
        assert len(loop) > 2
        for one, needed in itertools.pairwise(loop):
            assert needed in requires[one]
        return
    found = order(requires, priority)
    assert sorted(found) == sorted(requires)
    for key, needed in requires.items():
        assert all(found.index(other) < found.index(key) for other in needed)
    assert found == order(requires, priority)


@given(graphs)
def test_the_order_without_requirements_is_the_plans_own(requires: dict[str, list[str]]) -> None:
    free: dict[str, list[str]] = {key: [] for key in requires}
    assert order(free) == list(requires)
