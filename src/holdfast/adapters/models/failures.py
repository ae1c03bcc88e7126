"""What a model server's refusal means: one literal table from answers to failure classes.

Owns the table and the reading of error bodies and `Retry-After`. It does not send, wait or retry:
the engine does, and journals it. Invariants: every answer maps to exactly one row; nothing of the
answer reaches a message before it is redacted and cut to `MESSAGE_CHARS_MAX`.

The rule for 5xx: a failure is transient only when the request cannot be its cause. A gateway or an
overloaded server (502, 503, 504, 52x, 529) never let the request run. A bare 500 may be this very
request crashing the server, so it is `unknown`, unless the server says `x-should-retry: true`
(decision 14).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from holdfast.errors import FailureClass, ModelError

MESSAGE_CHARS_MAX = 500
RETRY_AFTER_S_MAX = 86_400.0
_NO_CREDIT = "the provider account has no credit left; waiting will not help"
_NOT_ALLOWED = "check the provider's key and what it may use"


@dataclass(frozen=True)
class Row:
    """An answer matches when its status is in `statuses` (empty: any) and one word occurs in it.

    `says` are looked for, in lower case, in the code, type and message of a JSON error body only: a
    gateway's HTML page is nobody's error code. Empty `says` asks for no word.
    """

    failure_class: FailureClass
    code: str
    hint: str = ""
    statuses: Collection[int] = ()
    says: tuple[str, ...] = ()


# The first row that matches wins.
TABLE: tuple[Row, ...] = (
    Row(
        "policy",
        "content_filter",
        "the provider's content filter refused; reword the goal or use another model",
        says=("content_filter", "content_policy_violation", "content management policy"),
    ),
    Row(
        "policy",
        "quota_exhausted",
        _NO_CREDIT,
        says=("insufficient_quota", "billing_hard_limit", "credit_balance", "spend_limit_exceeded"),
    ),
    Row(
        "logic",
        "context_too_long",
        "lower bundle_tokens or use a model with a larger window",
        says=(
            "context_length_exceeded",
            "maximum context length",
            "context window",
            "prompt is too long",
            "exceeds the available context size",
            "reduce the length of the messages",
        ),
    ),
    Row("policy", "not_allowed", _NOT_ALLOWED, statuses=(401, 403, 407, 451)),
    Row("policy", "quota_exhausted", _NO_CREDIT, statuses=(402,)),
    Row(
        "logic",
        "unknown_model",
        "check the model's name and the endpoint's address",
        statuses=(404,),
    ),
    Row("transient", "timeout", statuses=(408, 504, 524)),
    Row("transient", "rate_limited", statuses=(429,)),
    Row("transient", "conflict", statuses=(409, 425)),
    Row("transient", "overloaded", statuses=(502, 503, 520, 521, 522, 523, 529)),
    Row(
        "logic",
        "bad_endpoint",
        "redirects are not followed, they could carry a key away; name the final address",
        statuses=range(300, 400),
    ),
    Row("logic", "bad_request", statuses=range(400, 500)),
    Row(
        "unknown",
        "server_error",
        "this request may be the cause, so it is not asked again; --model A,B goes on with B",
        statuses=range(500, 600),
    ),
    Row("unknown", "unexpected_status"),
)


def refused_by_server(
    status: int, headers: Mapping[str, str], body: bytes | object, *, redact: Callable[[str], str]
) -> ModelError:
    """The error for an HTTP answer that is no reply, or an error object inside a stream.

    `headers` have lower-case names. `body` is the raw bytes or what the SDK made of them. An error
    inside a 200 stream passes status 500: the status the server would have sent had it known.
    """
    known, shown = _read_error(body)
    row = classify(status, known)
    failure_class = row.failure_class
    if row.code == "server_error" and headers.get("x-should-retry", "").lower() == "true":
        failure_class = "transient"
    return ModelError(
        f"the model server answered {status}: {one_line(shown, redact) or row.code}",
        failure_class=failure_class,
        retry_after_s=retry_after_s(headers),
        hint=row.hint,
        code=row.code,
    )


def classify(status: int, said: str) -> Row:
    """The first row of `TABLE` for a status and the words of a JSON error."""
    words = said.lower()
    for row in TABLE:
        fits = not row.statuses or status in row.statuses
        if fits and (not row.says or any(word in words for word in row.says)):
            return row
    raise AssertionError("the last row matches everything")


def malformed(what: str, redact: Callable[[str], str]) -> ModelError:
    """A reply that cannot be read. Transient, because models and proxies garble at random."""
    return ModelError(
        f"the model's reply is malformed: {one_line(what, redact)}",
        failure_class="transient",
        code="malformed_reply",
    )


def never_sent(what: str, redact: Callable[[str], str], *, allowed: bool) -> ModelError:
    """A request that its own SDK refused: it makes none of it, or (`allowed` false) may not."""
    return ModelError(
        f"the request was not sent: {one_line(what, redact)}",
        failure_class="logic" if allowed else "policy",
        hint="" if allowed else _NOT_ALLOWED,
        code="bad_request" if allowed else "not_allowed",
    )


def cut(what: str = "") -> ModelError:
    """A reply whose end never came."""
    return ModelError(
        f"the model's reply was cut off{': ' + what if what else ''}",
        failure_class="transient",
        code="connection_lost",
    )


def timed_out(timeout_s: float) -> ModelError:
    return ModelError(
        f"the model did not finish its reply within {timeout_s:g} s",
        failure_class="transient",
        code="timeout",
    )


def too_large(bytes_max: int) -> ModelError:
    """Not transient: the same request would most likely be answered at the same length."""
    return ModelError(
        f"the model's reply is larger than {bytes_max} bytes",
        failure_class="logic",
        code="reply_too_large",
        hint="set a limit on output tokens",
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait (`retry-after-ms`, or RFC 9110 `Retry-After` in both forms).

    A date is measured against the answer's own `Date`, so that a wrong clock here changes nothing.
    Unreadable or negative wishes are None; a wish beyond a day is cut to a day.
    """
    wish = _number(headers.get("retry-after-ms"), 0.001)
    if wish is None:
        wish = _number(headers.get("retry-after"), 1.0)
    if wish is None:
        try:
            until = parsedate_to_datetime(headers["retry-after"])
            wish = max(0.0, (until - parsedate_to_datetime(headers["date"])).total_seconds())
        except (KeyError, ValueError, TypeError):
            return None
    return min(wish, RETRY_AFTER_S_MAX)


def one_line(text: str, redact: Callable[[str], str]) -> str:
    flat = " ".join(redact(text).split())
    return flat if len(flat) <= MESSAGE_CHARS_MAX else flat[: MESSAGE_CHARS_MAX - 1] + "…"


def _number(text: str | None, unit: float) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value * unit if 0 <= value < float("inf") else None


def _read_error(body: bytes | object) -> tuple[str, str]:
    """(the words that may be matched, what a person is shown) of an error body in any dialect."""
    raw = body.decode("utf-8", "replace") if isinstance(body, bytes) else ""
    value: Any = body
    if isinstance(body, bytes):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return "", raw
    if isinstance(value, dict):
        value = {str(key).lower(): item for key, item in value.items()}
        value = value.get("error", value)
    if isinstance(value, dict):
        value = {str(key).lower(): item for key, item in value.items()}  # AWS begins with capitals
        message = str(value.get("message") or "")
        words = [str(value.get(key) or "") for key in ("code", "type")]
        return " ".join([*words, message]), message or " ".join(words).strip()
    return (value, value) if isinstance(value, str) else ("", raw)
