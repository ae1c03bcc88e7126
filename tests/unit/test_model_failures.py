"""The table of failures: every status has one row, and the server's words outweigh its status."""

import pytest

from holdfast.adapters.models import failures
from holdfast.adapters.models.failures import TABLE, classify, refused_by_server, retry_after_s

DATE = "Sat, 21 Nov 2026 07:00:00 GMT"


def same(text: str) -> str:
    return text


@pytest.mark.parametrize("status", [*range(200, 600), 0, 999])
def test_every_status_has_a_row_and_4xx_is_transient_only_where_waiting_helps(status: int) -> None:
    row = classify(status, "")
    if 300 <= status < 400:
        assert (row.failure_class, row.code) == ("logic", "bad_endpoint")
    elif 400 <= status < 500:
        waiting = row.failure_class == "transient"
        assert waiting is (status in {408, 409, 425, 429})
    elif status >= 500 and status < 600:
        gateway = {502, 503, 504, 520, 521, 522, 523, 524, 529}
        assert row.failure_class == ("transient" if status in gateway else "unknown")
    else:
        assert (row.failure_class, row.code) == ("unknown", "unexpected_status")


def test_no_row_is_unreachable() -> None:
    reached = {classify(status, "") for status in range(100, 700)}
    reached |= {classify(400, word) for row in TABLE for word in row.says}
    assert reached == set(TABLE)


def test_words_count_only_in_a_json_error() -> None:
    page = b"<html>context_length_exceeded</html>"
    assert refused_by_server(503, {}, page, redact=same).code == "overloaded"
    body = b'{"error":{"message":"no","code":"context_length_exceeded"}}'
    assert refused_by_server(503, {}, body, redact=same).code == "context_too_long"


def test_a_500_is_transient_only_when_the_server_says_so() -> None:
    assert refused_by_server(500, {}, b"", redact=same).failure_class == "unknown"
    told = {"x-should-retry": "true"}
    assert refused_by_server(500, told, b"", redact=same).failure_class == "transient"
    assert refused_by_server(400, told, b"", redact=same).failure_class == "logic"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "999999999"}, 86_400.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 07:00:30 GMT", "date": DATE}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 06:00:00 GMT", "date": DATE}, 0.0),
        ({"retry-after": "Sat, 21 Nov 2026 07:00:30 GMT"}, None),
        ({"retry-after": "Sat, 21 Nov 2026 07:00:30 -0000", "date": DATE}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"error":"model is busy"}', "model is busy"),
        (b'{"error":{"message":"too\\n  long"}}', "too long"),
        (b'{"error":{"code":"x","type":"y"}}', "x y"),
        (b'{"message":"bare"}', "bare"),
        ({"message": "parsed by the SDK"}, "parsed by the SDK"),
        (b"plain text", "plain text"),
        (b"[1]", "[1]"),
        (b"", "server_error"),
        (b"[" * 100_000, None),
    ],
)
def test_a_person_is_shown_the_message_on_one_bounded_line(
    body: bytes | object, shown: str | None
) -> None:
    error = refused_by_server(500, {}, body, redact=same)
    assert "\n" not in error.message
    assert len(error.message) < failures.MESSAGE_CHARS_MAX + 50
    if shown is not None:
        assert error.message == f"the model server answered 500: {shown}"


def test_a_secret_is_redacted_before_the_message_is_cut() -> None:
    secret = "s" * (failures.MESSAGE_CHARS_MAX * 2)
    error = failures.malformed(secret, lambda text: text.replace(secret, "[gone]"))
    assert error.message.endswith(": [gone]")
