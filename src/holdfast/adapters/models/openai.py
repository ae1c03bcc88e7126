"""OpenAI-compatible endpoints: the client and the probe; the rest is `direct`'s.

Invariant: a server that answers a request for a stream with one whole reply is understood and never
asked again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Unpack

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

from holdfast.adapters.models import transport
from holdfast.adapters.models.direct import ListedModel
from holdfast.adapters.models.hosts import Endpoint
from holdfast.adapters.models.prices import Given


class OpenAICompatibleModel(ListedModel):
    """One model at one OpenAI-compatible endpoint; see `domain.ports.Model`."""

    def __init__(self, model: str, *, at: Endpoint, **given: Unpack[Given]) -> None:
        key = at.key or transport.NO_KEY
        headers = {"Authorization": f"Bearer {key}"}
        self._client = transport.open_client(at.url, timeout_s=given["timeout_s"], headers=headers)
        if given["stream"]:
            self._client.event_hooks["response"].append(_stream_whole_replies)
        sdk = AsyncOpenAI(base_url=at.url, api_key=key, http_client=self._client, max_retries=0)
        chat = OpenAIChatModel(
            model,
            provider=OpenAIProvider(openai_client=sdk),
            profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
        )
        super().__init__(
            f"openai:{model}",
            chat,
            endpoint=at.url,
            **given,
            # Reasoning models refuse a temperature.
            takes_temperature=not chat.profile.get("openai_supports_reasoning"),
        )


async def _stream_whole_replies(response: httpx2.Response) -> None:
    """Small servers and gateways know no streams and send one JSON body: hand it on as a stream."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
    asked_to_chat = response.request.url.path.endswith("/chat/completions")
    if asked_to_chat and response.status_code == 200 and kind == "application/json":
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _WholeReply(response.stream)


class _WholeReply(httpx2.AsyncByteStream):
    """A whole `chat.completion` as the one event of a stream; any other body as it is."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = b"".join([piece async for piece in self._inner])
        try:
            chunk = _as_chunk(json.loads(body))
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
            yield body
            return
        yield b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"

    async def aclose(self) -> None:
        await self._inner.aclose()


def _as_chunk(reply: dict[str, Any]) -> dict[str, Any]:
    choices = []
    for choice in reply["choices"]:
        message = dict(choice["message"])
        calls = message.get("tool_calls") or []
        message["tool_calls"] = [{**call, "index": place} for place, call in enumerate(calls)]
        rest = {name: value for name, value in choice.items() if name != "message"}
        choices.append({**rest, "delta": message})
    return {**reply, "object": "chat.completion.chunk", "choices": choices}
