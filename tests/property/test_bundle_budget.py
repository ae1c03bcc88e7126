"""A bundle is within its budget for any input, whatever the input, and the same every time."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.bundle import TIERS, Candidate, fit
from holdfast.context.tokens import count_tokens

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
def test_a_bundle_never_exceeds_its_budget_except_by_its_head(
    head: str, found: list[Candidate], budget: int
) -> None:
    text, items = fit(head, found, budget_tokens=budget)
    assert text.startswith(head)
    assert count_tokens(text) <= max(budget, count_tokens(head))
    assert sum(item.tokens for item in items) <= max(0, budget - count_tokens(head))
    assert len(items) == len(found)
    for item in items:
        assert (item.tokens == 0) == (item.fate == "out")
    assert fit(head, list(reversed(found)), budget_tokens=budget) == (text, items)
