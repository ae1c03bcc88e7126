"""Requests in, JSON out: bodies with exact fields, one error shape, and who may ask at all.

Owns what every route shares. A request that is not understood is the caller's error and never a
500: malformed JSON, an unknown or missing field and a number out of bounds name their place. A page
of another site that runs in a browser here is turned away: it cannot send JSON without asking, and
its origin is not ours; the same holds for a name that only points to the loopback.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from holdfast.errors import HoldfastError, Refused
from holdfast.web.bodies import Id, Json

T = TypeVar("T")
P = ParamSpec("P")
BODY_BYTES_MAX = 1_000_000
LOOPBACK = ("127.0.0.1", "localhost")

_encode = msgspec.json.Encoder(order="deterministic").encode


class BadRequest(Refused):
    """The request cannot be read; `status` is what HTTP calls it."""

    code = "bad_request"

    def __init__(self, message: str, *, status: int = 400) -> None:
        super().__init__(message)
        self.http_status = status


async def body_of(request: Request, kind: type[T]) -> T:
    """The body as `kind`; an empty one stands for an object without fields."""
    if request.query_params:
        raise BadRequest("this route takes its fields in the body alone")
    content = b""
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > BODY_BYTES_MAX:
                raise BadRequest(f"the body is over {BODY_BYTES_MAX} bytes", status=413)
    except ClientDisconnect as error:  # nobody hears the answer, and it is no bug of ours
        raise BadRequest("the body ended early") from error
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content and media != "application/json":
        raise BadRequest("the body must be application/json", status=415)
    try:
        return msgspec.json.decode(content or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"the body cannot be read: {error}") from error


def query_of(request: Request, kind: type[T]) -> T:
    """The query string as `kind`; numbers are read from their text."""
    sent = request.query_params
    if len(sent.multi_items()) > len(sent):
        raise BadRequest("the query has a field twice")
    try:
        return msgspec.convert(dict(sent), kind, strict=False)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"the query cannot be read: {error}") from error


def id_of(request: Request, name: str) -> int:
    """A number of the path."""
    text = request.path_params[name]
    try:
        number = int(text) if text.isascii() and text.isdecimal() else text
        return int(msgspec.convert(number, Id))
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadRequest(f"{name} {text[:50]!r} is no number of one") from error


async def in_thread(use: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """A use case waits for the disk; the loop does not."""
    return await run_in_threadpool(use, *args, **kwargs)


def answer(value: Mapping[str, Any], status: int = 200) -> Response:
    """JSON with sorted keys; never cached, never taken for anything else."""
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(
        _encode(value), status_code=status, media_type="application/json", headers=headers
    )


def failure(code: str, message: str, hint: str, status: int) -> Response:
    """The one error shape, the same as `--json` prints."""
    body = {"type": "error", "code": code, "message": message, "hint": hint}
    return answer(body, status)


def told(request: Request, error: Exception) -> Response:
    """An error of ours or of the router as JSON; of anything else only that it happened."""
    match error:
        case HoldfastError():
            return failure(error.code, error.message, error.hint, error.http_status)
        case HTTPException():
            found = {404: "no_route", 405: "no_method"}
            code = found.get(error.status_code, "bad_request")
            return failure(code, f"{request.method}: {error.detail}", "", error.status_code)
        case _:
            return failure("bug", "an error of ours; the server's log has it", "", 500)


def endpoint(use: Callable[[Request], Awaitable[Json]]) -> Callable[[Request], Awaitable[Response]]:
    """A use as a handler that answers only who speaks to this machine by a name of its own."""

    async def handle(request: Request) -> Response:
        _refuse_strangers(request)
        return answer(await use(request))

    return handle


def _refuse_strangers(request: Request) -> None:
    host = request.headers.get("host", "")
    name, colon, port = host.rpartition(":")
    if (name if colon and port.isdigit() else host).lower() not in LOOPBACK:
        raise BadRequest(f"this server is not {host[:100]!r}", status=421)
    origin = request.headers.get("origin")
    if origin is not None and origin.lower() != f"http://{host}".lower():
        raise BadRequest(f"pages of {origin[:100]!r} may not ask", status=403)
