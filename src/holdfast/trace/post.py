"""One HTTP POST with bounded retries: what D1 and OTLP have in common.

Owns the transport through `urllib`. Does not own what is sent, which was redacted when it was
stored. Invariants: secure or to this machine only; credentials of an address and the text of an
answer never reach an error message; whatever is sent can be sent twice.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit

ATTEMPTS_MAX = 3
WAIT_S_MAX = 5.0
ANSWER_BYTES_MAX = 50_000_000
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_HERE = ("127.0.0.1", "localhost", "::1")


class Done(NamedTuple):
    """How many rows or spans arrived, and why the rest did not."""

    sent: int
    error: str = ""


class PostFailed(Exception):
    """The other side did not accept a request; the message says where and how."""


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    wait: Callable[[float], None] = time.sleep,
) -> bytes:
    """The answer's body. Raises `PostFailed` after three attempts, or at once if refused."""
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.hostname}"
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _HERE):
        raise PostFailed(f"{place} is neither https nor this machine")
    request = urllib.request.Request(url, data=body, headers=dict(headers), method="POST")  # noqa: S310  the scheme was checked above
    problem = ""
    for attempt in range(ATTEMPTS_MAX):
        delay_s = 0.5 * 2**attempt
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310  as above
                return bytes(answer.read(ANSWER_BYTES_MAX))
        except urllib.error.HTTPError as error:
            with error:
                problem = f"{place} answered {error.code} {error.reason}"
                if error.code not in _AGAIN:
                    break
                asked = error.headers.get("Retry-After", "")
            delay_s = float(asked) if asked.isdecimal() else delay_s
        except (OSError, HTTPException, ValueError) as error:
            problem = f"{place} did not answer: {type(error).__name__}"
        if attempt + 1 < ATTEMPTS_MAX:
            wait(min(delay_s, WAIT_S_MAX))
    raise PostFailed(problem)
