"""Behind a socket of 127.0.0.1: the routes under `/api/v1` and, unversioned, beside it.

Owns the server's life: the socket is open before anybody is told its address, and what runs is
given back before the loop ends. It listens on the loopback and nowhere else.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route, Router

from holdfast.errors import HoldfastError, Refused
from holdfast.web.wire import told

HOST = "127.0.0.1"
VERSIONED = "/api/v1"
GRACE_S = 5


def application(routes: Sequence[Route], closing: Callable[[], Awaitable[None]]) -> Starlette:
    """The routes as an ASGI application; `closing` is awaited when it ends."""

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await closing()

    # A slash too many is no route: a redirect would be composed of whatever name was asked for.
    versioned = Mount(VERSIONED, app=Router(routes, redirect_slashes=False))
    app = Starlette(
        routes=[versioned, *routes],
        exception_handlers={HoldfastError: told, HTTPException: told, Exception: told},
        lifespan=life,
    )
    app.router.redirect_slashes = False
    return app


async def serve(app: Starlette, port: int, ready: Callable[[str], None]) -> None:
    """Serve until a signal ends it; `ready` is told the address. Port 0 takes a free one."""
    listening = _listen(port)
    with listening:
        ready(f"http://{HOST}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        await uvicorn.Server(config).serve(sockets=[listening])


def _listen(port: int) -> socket.socket:
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(128)
    except (OSError, OverflowError) as error:
        listening.close()
        raise Refused(
            f"cannot listen on port {port}: {error}", hint="--port 0 takes any"
        ) from error
    return listening
