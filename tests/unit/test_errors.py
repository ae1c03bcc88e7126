"""One hierarchy of errors: a stable code, a hint, and whether to try again."""

import pytest

from holdfast import errors
from holdfast.errors import Divergence, Exhausted, HoldfastError, ModelError, Refused

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, HoldfastError)
]


def test_every_error_has_a_code_of_its_own_and_a_status() -> None:
    assert len({kind.code for kind in KINDS}) == len(KINDS)
    assert all(400 <= kind.http_status < 600 for kind in KINDS)


def test_an_error_reads_as_its_message_and_its_hint() -> None:
    assert str(Refused("no")) == "no"
    assert str(Refused("no", hint="ask", code="special")) == "no (ask)"
    assert Refused("no", code="special").code == "special"


def test_errors_carry_what_their_callers_decide_by() -> None:
    exhausted = Exhausted("tokens", limit=10, spent=12.5)
    assert str(exhausted) == "tokens: 12.5 of 10 is spent"
    divergence = Divergence("differs", step="s", field="a.b", byte=3)
    assert (divergence.step, divergence.field, divergence.byte) == ("s", "a.b", 3)


@pytest.mark.parametrize(("kind", "again"), [("transient", True), ("policy", False)])
def test_a_model_error_is_retried_by_its_class(kind: str, again: bool) -> None:
    error = ModelError("x", failure_class=kind, retry_after_s=2.0)  # type: ignore[arg-type]
    assert (error.retryable, error.failure_class, error.retry_after_s) == (again, kind, 2.0)
