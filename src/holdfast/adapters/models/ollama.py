"""Ollama's own API: `/api/chat` streamed, `/api/show` for the window, `/api/tags` for the names.

Owns the wire types, the decoding of the stream and the choice of `num_ctx`. The OpenAI route of
Ollama has no `num_ctx` and truncates silently, hence this adapter. Invariants: the decoded reply
does not depend on where the stream was cut into pieces; every chat names `options.num_ctx`; a
stream without a `done` line is no reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from holdfast.adapters.models import failures, transport
from holdfast.adapters.models.hosts import checked_url
from holdfast.adapters.models.prices import Price
from holdfast.adapters.models.replies import Draft, canonical_json, request_texts, seal
from holdfast.context.tokens import count_tokens
from holdfast.domain.ports import FinishReason, Message, ModelReply, ModelRequest, ToolCall
from holdfast.errors import ModelError

PORT = 11434
CONTEXT_TOKENS_MAX = 32_768
_FINISH: dict[str, FinishReason] = {"stop": "stop", "length": "length"}


def base_url(host: str) -> str:
    """The address that `OLLAMA_HOST` means: scheme and port are optional, as for Ollama's client.

    A bare host gets port 11434, a host with a scheme that scheme's port, an address that listens
    everywhere means this machine. Raises `Refused` when it is no address.
    """
    scheme, found, rest = host.strip().partition("://")
    if not found:
        scheme, rest = "http", host.strip()
    if rest.startswith((":", "/")) or not rest:
        rest = f"127.0.0.1{rest}"
    parts = urlsplit(checked_url(f"{scheme}://{rest}", variable="OLLAMA_HOST"))
    port = parts.port or (PORT if not found else 443 if scheme == "https" else 80)
    name = parts.hostname or ""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(name, name)  # noqa: S104  recognised, not bound
    name = f"[{name}]" if ":" in name else name
    return f"{scheme}://{name}:{port}{parts.path.rstrip('/')}"


class OllamaModel:
    """One model at one Ollama server; see `domain.ports.Model`."""

    def __init__(
        self,
        model: str,
        *,
        host: str,
        redact: Callable[[str], str],
        timeout_s: float,
        price: Price | None,
        stream: bool = True,
    ) -> None:
        self.name = f"ollama:{model}"
        # `num_ctx` of every chat; None until the server was asked, by a probe or a first call.
        self.context_tokens: int | None = None
        self._model = model
        self._endpoint = base_url(host)
        self._redact = redact
        self._timeout_s = timeout_s
        self._price = price
        self._stream = stream
        self._client = transport.open_client(self._endpoint, timeout_s=timeout_s)

    async def probe(self) -> None:
        hint = "start it with `ollama serve`, or set OLLAMA_HOST"
        async with transport.probing(
            self._timeout_s, endpoint=self._endpoint, hint=hint, redact=self._redact
        ):
            known = await self._known()
            if known is not None and not {self._model, f"{self._model}:latest"} & set(known):
                raise transport.unknown_model(
                    self._model,
                    known,
                    endpoint=self._endpoint,
                    hint=f"`ollama pull {self._model}` fetches it",
                )
            await self._window()

    async def _known(self) -> list[str] | None:
        """The names of `/api/tags`; None where the server has no such list (proxies often speak
        `/api/chat` only), since what it does not say refuses nothing."""
        try:
            tags = await transport.fetch_json(
                self._client, "GET", "/api/tags", _Tags, redact=self._redact
            )
        except ModelError as error:
            if error.code != "unknown_model":
                raise
            return None
        return [row.name for row in tags.models]

    async def complete(self, request: ModelRequest) -> ModelReply:
        assert request.model == self._model, "one adapter speaks to one model"
        stream = ChatStream(self._redact)
        async with transport.deadline(
            self._timeout_s, endpoint=self._endpoint, redact=self._redact
        ):
            window = await self._window()
            self._check_size(request, window)
            body = chat_body(request, num_ctx=window, stream=self._stream)
            async with self._client.stream("POST", "/api/chat", json=body) as response:
                if response.status_code != 200:
                    raise failures.refused_by_server(
                        response.status_code,
                        response.headers,
                        await response.aread(),
                        redact=self._redact,
                    )
                async for piece in response.aiter_bytes():
                    stream.feed(piece)
        return seal(stream.draft(), request, price=self._price, redact=self._redact)

    async def aclose(self) -> None:
        await self._client.aclose()

    def _check_size(self, request: ModelRequest, window: int) -> None:
        """Ollama drops the oldest messages of a conversation that is too long, without a word."""
        tokens = sum(map(count_tokens, request_texts(request)))
        if tokens > window:
            raise ModelError(
                f"the request is about {tokens} tokens, and {self.name} has a window of {window}",
                failure_class="logic",
                hint="lower bundle_tokens or use a model with a larger window",
                code="context_too_long",
            )

    async def _window(self) -> int:
        """The model's trained context length under our cap; asked once.

        A server that cannot say (proxies often speak `/api/chat` only) is given the cap.
        """
        if self.context_tokens is None:
            try:
                asked = {"model": self._model}
                shown = await transport.fetch_json(
                    self._client, "POST", "/api/show", _Shown, redact=self._redact, body=asked
                )
            except ModelError as error:
                if error.code != "unknown_model":
                    raise
                shown = _Shown()  # a model that does not exist is refused by the chat itself
            lengths = [
                value
                for key, value in shown.model_info.items()
                if key.endswith(".context_length") and isinstance(value, int) and value > 0
            ]
            self.context_tokens = min([*lengths, CONTEXT_TOKENS_MAX])
        return self.context_tokens


def chat_body(request: ModelRequest, *, num_ctx: int, stream: bool = True) -> dict[str, Any]:
    """The body of `/api/chat` for a canonical request."""
    options: dict[str, Any] = {"num_ctx": num_ctx}
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.seed is not None:
        options["seed"] = request.seed
    if request.output_tokens_max is not None:
        options["num_predict"] = request.output_tokens_max
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [_message(message) for message in request.messages],
        "stream": stream,
        "options": options,
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    return body


class ChatStream:
    """Decodes a chat reply fed in pieces of any size; a pure function of the bytes."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._rest = bytearray()
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[ToolCall] = []
        self._last: _Chunk | None = None

    def feed(self, piece: bytes) -> None:
        """Take the next bytes. Raises `ModelError` on a line that is no chunk or an error line."""
        # Split on line feeds only: a JSON string may hold other line separators as they are.
        seen = len(self._rest)
        self._rest += piece
        if self._rest.find(b"\n", seen) < 0:
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            self._take(line)

    def draft(self) -> Draft:
        """The whole reply. Raises `ModelError` when the stream ended before the model was done."""
        self._take(bytes(self._rest))
        if self._last is None:
            raise failures.cut("the stream ended before the model was done")
        return Draft(
            text="".join(self._text),
            thinking="".join(self._thinking),
            calls=tuple(self._calls),
            finish_reason=_FINISH.get(self._last.done_reason or "stop", "unknown"),
            model=self._last.model,
            # Zero is what servers say that do not count: no request is empty.
            tokens_in=self._last.prompt_eval_count or None,
            tokens_out=self._last.eval_count or None,
        )

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            chunk = _decoded(line)
        except (ValueError, RecursionError) as error:
            shown = line[:200].decode("utf-8", "replace")
            raise failures.malformed(f"{error} in {shown!r}", self._redact) from error
        if chunk.error is not None:
            raise failures.refused_by_server(500, {}, {"error": chunk.error}, redact=self._redact)
        if (message := chunk.message) is not None:
            self._text.append(message.content or "")
            self._thinking.append(message.thinking or "")
            self._calls += [_call(call.function) for call in message.tool_calls or []]
        if chunk.done:
            self._last = chunk


def _decoded(line: bytes) -> _Chunk:
    """One chunk. Servers written in JavaScript cut a text inside a character, and the halves of it
    come as escapes in two chunks: these only Python's own reader takes."""
    try:
        return msgspec.json.decode(line, type=_Chunk)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(line), _Chunk)


def _message(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        wire["tool_calls"] = [
            {"function": {"name": call.name, "arguments": _arguments(call.arguments)}}
            for call in message.calls
        ]
    if message.tool:
        wire["tool_name"] = message.tool
    return wire


def _arguments(text: str) -> Mapping[str, Any]:
    """Ollama takes an object only; what a model garbled goes back to it under a name that says so.

    The name is the one pydantic-ai uses, so that a conversation reads alike at either endpoint.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"INVALID_JSON": text}


def _call(function: _Function) -> ToolCall:
    raw = function.arguments
    text = raw if isinstance(raw, str) else canonical_json(raw)
    # Ids some versions send are random; a derived one is the same on every run.
    return ToolCall(id="", name=function.name, arguments=text)


class _Function(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | str = {}


class _Call(msgspec.Struct):
    function: _Function


class _ChatMessage(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Chunk(msgspec.Struct):
    message: _ChatMessage | None = None
    done: bool = False
    done_reason: str | None = None
    model: str = ""
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: str | None = None


class _Tag(msgspec.Struct):
    name: str


class _Tags(msgspec.Struct):
    models: list[_Tag] = []


class _Shown(msgspec.Struct):
    model_info: dict[str, Any] = {}
