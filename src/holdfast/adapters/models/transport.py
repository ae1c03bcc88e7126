"""One HTTP client for every model endpoint, and what its failures mean.

Owns the client's limits and the translation of transport errors. It does not retry and does not
follow redirects, which could carry a key to another host. Invariants: no reply larger than
`REPLY_BYTES_MAX` is held; nothing waits longer than its caller's deadline.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from holdfast.adapters.models import failures
from holdfast.errors import ModelError, Refused, Unavailable

REPLY_BYTES_MAX = 32_000_000
CONNECT_S_MAX = 10.0
# A refusal is due within 5 s; loading a library takes 1.5, and twice that at work.
PROBE_S_MAX = 2.0
# Local servers need no key, but the SDKs insist on a text.
NO_KEY = "no-key"
T = TypeVar("T")
Client = httpx2.AsyncClient


class ReplyTooLarge(httpx2.ReadError):
    """The body passed `REPLY_BYTES_MAX`; the rest is not read."""


# The first class that matches wins. `logic`: the same request from here will fail the same way.
_TRANSPORT: tuple[tuple[type[Exception], str], ...] = (
    (httpx2.TimeoutException, "timeout"),
    (httpx2.ConnectError, "unreachable"),
    (httpx2.UnsupportedProtocol, "bad_endpoint"),
    (httpx2.LocalProtocolError, "bad_endpoint"),
    (httpx2.TooManyRedirects, "bad_endpoint"),
    (httpx2.DecodingError, "malformed_reply"),
    (httpx2.HTTPError, "connection_lost"),
)


def open_client(
    base_url: str,
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> httpx2.AsyncClient:
    """A client for one endpoint. Proxies of the environment are used except for this machine."""

    async def bound(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream)

    return httpx2.AsyncClient(
        base_url=base_url,
        # A compressed body could unfold past the limit.
        headers={"Accept-Encoding": "identity", **(headers or {})},
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S_MAX)),
        trust_env=not is_loopback(base_url),
        event_hooks={"response": [bound]},
    )


@asynccontextmanager
async def deadline(
    timeout_s: float, *, endpoint: str, redact: Callable[[str], str]
) -> AsyncIterator[None]:
    """Whatever happens inside ends within `timeout_s` and fails as a `ModelError` only."""
    try:
        async with asyncio.timeout(timeout_s):
            yield
    except TimeoutError as error:
        raise failures.timed_out(timeout_s) from error
    except httpx2.HTTPError as error:
        raise transport_failure(error, endpoint=endpoint, redact=redact) from error


def transport_failure(
    error: BaseException, *, endpoint: str, redact: Callable[[str], str]
) -> ModelError:
    """The `ModelError` for an exception of the HTTP client, also when an SDK wrapped it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, httpx2.HTTPError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ReplyTooLarge):
        return failures.too_large(REPLY_BYTES_MAX)
    # What an SDK of another HTTP library says of itself, where the table knows no class of it.
    otherwise = "unreachable" if getattr(error, "phase", "") == "connect" else "connection_lost"
    code = next((code for kind, code in _TRANSPORT if isinstance(cause, kind)), otherwise)
    said = failures.one_line(str(cause or error) or type(cause or error).__name__, redact)
    return ModelError(
        f"the model endpoint {endpoint} failed ({code.replace('_', ' ')}): {said}",
        failure_class="logic" if code == "bad_endpoint" else "transient",
        hint="is the server running at that address?" if code == "unreachable" else "",
        code=code,
    )


async def fetch_json(
    client: httpx2.AsyncClient,
    method: str,
    path: str,
    kind: type[T],
    *,
    redact: Callable[[str], str],
    body: Any = None,
) -> T:
    """One small JSON answer. Raises `ModelError` for any other answer and httpx2 errors as such."""
    response = await client.request(method, path, json=body)
    if response.status_code != 200:
        raise failures.refused_by_server(
            response.status_code, response.headers, response.content, redact=redact
        )
    try:
        return msgspec.json.decode(response.content, type=kind)
    except msgspec.DecodeError as error:
        raise failures.malformed(f"{path}: {error}", redact) from error


@asynccontextmanager
async def probing(
    timeout_s: float, *, endpoint: str, hint: str, redact: Callable[[str], str]
) -> AsyncIterator[None]:
    """A probe's block: within `PROBE_S_MAX`, its failures become one line a person can act on."""
    limit_s = min(timeout_s, PROBE_S_MAX)
    try:
        async with deadline(limit_s, endpoint=endpoint, redact=redact):
            yield
    except ModelError as error:
        if error.failure_class == "policy":
            raise Refused(error.message, hint=error.hint, code=error.code) from error
        said = f"the model endpoint {endpoint} does not answer within {limit_s:g} s"
        raise Unavailable(
            said if error.code == "timeout" else error.message, hint=hint, code="model_unavailable"
        ) from error


def unknown_model(name: str, known: list[str], *, endpoint: str, hint: str) -> Refused:
    """The refusal of a model the endpoint does not have, with the nearest names it has."""
    near = get_close_matches(name, known, n=3, cutoff=0.4) or sorted(known)[:3]
    seen = f"near names: {', '.join(near)}" if near else "it has no models"
    return Refused(f"{endpoint} has no model {name!r}; {seen}", hint=hint, code="unknown_model")


async def check_listed(
    client: Client, path: str, model: str, endpoint: str, redact: Callable[[str], str]
) -> None:
    """Refuse a model that the endpoint's list does not have; a missing list refuses nothing."""
    try:
        listed = await fetch_json(client, "GET", path, _Models, redact=redact)
    except ModelError as error:
        if error.code == "unknown_model":
            return  # The server answers but has no list; the first call will tell.
        raise
    known = [row.id for row in listed.data]
    if known and model not in known and not listed.has_more:
        hint = "name one of the models the endpoint lists"
        raise unknown_model(model, known, endpoint=endpoint, hint=hint)


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class _Bounded(httpx2.AsyncByteStream):
    """A body that stops at `REPLY_BYTES_MAX`."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for piece in self._inner:
            seen += len(piece)
            if seen > REPLY_BYTES_MAX:
                raise ReplyTooLarge(f"more than {REPLY_BYTES_MAX} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed] = []
    has_more: bool = False
