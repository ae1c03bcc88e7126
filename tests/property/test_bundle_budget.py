"""A bundle is within its budget for any input, whatever the input, and the same every time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.bundle import TIERS, Candidate, fit
from holdfast.context.tokens import count_tokens
from holdfast.errors import Refused

texts = st.text(alphabet=st.sampled_from("ab z\n#0.é漢\t🙂"), max_size=300)
candidates = st.lists(
    st.builds(
        Candidate,
        source=st.text(alphabet="xyz/", min_size=1, max_size=5),
        kind=st.sampled_from(TIERS),
        reason=st.just("why"),
        text=texts,
    ),
    max_size=8,
)


@given(texts, candidates, st.integers(-5, 300))
def test_a_bundle_never_exceeds_its_budget_and_a_head_that_does_is_refused(
    head: str, found: list[Candidate], budget: int
) -> None:
    if count_tokens(head) > budget:
        with pytest.raises(Refused, match=f"at least {count_tokens(head)}"):
            fit(head, found, budget_tokens=budget)
        return
    text, items = fit(head, found, budget_tokens=budget)
    assert text.startswith(head)
    assert count_tokens(text) <= budget
    assert sum(item.tokens for item in items) <= budget - count_tokens(head)
    assert len(items) == len(found)
    for item in items:
        assert (item.tokens == 0) == (item.fate == "out")
    assert fit(head, list(reversed(found)), budget_tokens=budget) == (text, items)
