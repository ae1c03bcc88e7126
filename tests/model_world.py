"""A script behind any model adapter, and servers that answer as a test says."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast.adapters.models import resolve
from holdfast.domain.ports import (
    Message,
    Model,
    ModelReply,
    ModelRequest,
    ToolSpec,
)
from holdfast.errors import ModelError
from holdfast.testing import ScriptedServer

T = TypeVar("T")
ADAPTERS = ["ollama", "openai", "anthropic", "scripted"]
ADDRESSES = ["OLLAMA_HOST", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"]
OVER_HTTP = ["ollama", "openai", "anthropic"]
UNICODE = 'Grüße, 世界 — 🦊 e\u0301 \u2028 \x85 \\ " end'
READ = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string", "description": "which"}},
        "required": ["path"],
        "additionalProperties": False,
    },
    effect="pure",
)


def same(text: str) -> str:
    return text


def says(*replies: Mapping[str, Any], **script: Any) -> dict[str, Any]:
    return {"rules": [{"replies": list(replies)}], **script}


def request(*messages: Message, tools: tuple[ToolSpec, ...] = (READ,), **rest: Any) -> ModelRequest:
    opening = (
        Message(role="system", content="You are a test."),
        Message(role="user", content="Make the failing test pass"),
    )
    return ModelRequest(model="scripted", messages=(*opening, *messages), tools=tools, **rest)


class World:
    """A script behind one adapter. For `scripted` there is no server, but the same file."""

    def __init__(self, adapter: str, tmp_path: Path) -> None:
        self.adapter = adapter
        self._tmp_path = tmp_path
        self.server: ScriptedServer | None = None

    def talk(
        self,
        script: Mapping[str, Any],
        with_model: Callable[[Model], Awaitable[T]],
        *,
        redact: Callable[[str], str] = same,
        timeout_s: float = 30.0,
        prices_file: Path | None = None,
        stream: bool = True,
    ) -> T:
        async def run(spec: str, environ: Mapping[str, str]) -> T:
            model = resolve(
                spec,
                environ=environ,
                redact=redact,
                timeout_s=timeout_s,
                prices_file=prices_file,
                stream=stream,
            )
            try:
                return await with_model(model)
            finally:
                await model.aclose()

        if self.adapter == "scripted":
            path = self._tmp_path / "script.json"
            path.write_text(json.dumps(script), encoding="utf-8")
            return asyncio.run(run(f"scripted:{path}", {}))
        with ScriptedServer(script, strict=True) as server:
            self.server = server
            return asyncio.run(run(f"{self.adapter}:scripted", server.environ()))

    def ask(
        self, script: Mapping[str, Any], *requests: ModelRequest, **options: Any
    ) -> list[ModelReply]:
        async def each(model: Model) -> list[ModelReply]:
            await model.probe()
            return [await model.complete(asked) for asked in requests or (request(),)]

        return self.talk(script, each, **options)

    def fails(self, script: Mapping[str, Any], **options: Any) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.ask(script, **options)
        return caught.value


def resolved(adapter: str, environ: Mapping[str, str], name: str = "scripted") -> Model:
    return resolve(f"{adapter}:{name}", environ=environ, redact=same, timeout_s=5)


async def probed(model: Model) -> None:
    try:
        await model.probe()
    finally:
        await model.aclose()


Answer = tuple[int, Mapping[str, str], bytes]


class _Plain(BaseHTTPRequestHandler):
    """Gives every request what its server's `answer` makes of its path and body."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, said = self.server.answer(self.path, body)  # type: ignore[attr-defined]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(said))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@contextmanager
def plain(answer: Callable[[str, bytes], Answer]) -> Iterator[str]:
    """A server that answers by a function of path and body; its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Plain) as server:
        server.answer = answer  # type: ignore[attr-defined]  read by `_Plain`
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def odd_endpoint(status: int, body: bytes, kind: str = "") -> Iterator[dict[str, str]]:
    """A server that answers everything alike; the variables that point every adapter there."""
    headers = {
        "Location": "http://127.0.0.1:9/elsewhere",
        **({"Content-Type": kind} if kind else {}),
    }
    with plain(lambda path, asked: (status, headers, body)) as url:
        yield dict.fromkeys(ADDRESSES, url)
