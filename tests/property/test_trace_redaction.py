"""Redaction of any text at all: idempotent, total, and no secret survives where it was planted."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.trace.redact import Redactor, mark
from trace_samples import SECRETS

PIECES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(sorted(SECRETS.values())),
    st.sampled_from(
        ["password=", "api_key: ", '"token": "', "--secret ", "://", "@", "Bearer ", " ", "\n", '"']
    ),
    st.sampled_from([mark("openai_key"), mark("name", "password"), "[redacted:", "]"]),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["password", "token", "a"]) | TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(TEXTS, st.booleans())
def test_redacting_twice_equals_redacting_once(text: str, guess: bool) -> None:
    redactor = Redactor({"K": "swordfish", "L": "redacted"}, guess=guess)
    once = redactor.text(text)
    assert redactor.text(once) == once


@given(JSON, st.booleans())
def test_values_of_any_shape_are_redacted_twice_as_once(value: object, guess: bool) -> None:
    redactor = Redactor({"K": "swordfish"}, guess=guess)
    once = redactor.value(value)
    assert repr(redactor.value(once)) == repr(once)


@given(
    st.text(alphabet=st.characters(exclude_categories=["L", "N"]), max_size=10),
    st.sampled_from(sorted(SECRETS)),
    st.text(alphabet=" \n\t.,;)", min_size=1, max_size=10),
)
def test_a_secret_between_non_letters_never_survives(before: str, reason: str, after: str) -> None:
    if reason in ("url_password", "telegram_token") or before.endswith(("-", "_", "+", "/", "=")):
        return
    out = Redactor(guess=False).text(before + SECRETS[reason] + after)
    assert SECRETS[reason] not in out
