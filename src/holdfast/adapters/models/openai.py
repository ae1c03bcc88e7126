"""OpenAI-compatible endpoints, through the direct API of pydantic-ai.

Owns the mapping between our canonical request and theirs, and of their errors onto our table. The
provider's breadth is theirs; none of their objects leaves this module. Importing it costs about a
second, so `resolve` imports it only for a model that needs it. Invariants: the SDK's own retries
are off; a stream that never named a finish reason is no reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
from openai import APIStatusError, AsyncOpenAI
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as WireRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from holdfast.adapters.models import failures, transport
from holdfast.adapters.models.prices import Price
from holdfast.adapters.models.replies import Draft, seal
from holdfast.domain.ports import FinishReason, Message, ModelReply, ModelRequest, ToolCall
from holdfast.errors import ModelError, Refused

PUBLIC_HOST = "api.openai.com"
PUBLIC_URL = f"https://{PUBLIC_HOST}/v1"
# Local servers need no key, but the SDK insists on a text.
NO_KEY = "no-key"
_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool_calls",
    "content_filter": "content_filter",
}


class OpenAICompatibleModel:
    """One model at one OpenAI-compatible endpoint; see `domain.ports.Model`."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str,
        redact: Callable[[str], str],
        timeout_s: float,
        price: Price | None,
        reply_bytes_max: int = transport.REPLY_BYTES_MAX,
    ) -> None:
        self._model = model
        self._endpoint = transport.checked_url(base_url or PUBLIC_URL, variable="OPENAI_BASE_URL")
        api_key = api_key.strip()
        if not (api_key.isascii() and api_key.isprintable()):
            raise Refused("OPENAI_API_KEY holds characters no key has", code="missing_key")
        if urlsplit(self._endpoint).hostname == PUBLIC_HOST and not api_key:
            raise Refused(
                f"openai:{model} needs a key, and OPENAI_API_KEY is not set",
                hint="set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own",
                code="missing_key",
            )
        self._redact = redact
        self._timeout_s = timeout_s
        self._price = price
        self._client = transport.open_client(
            self._endpoint,
            timeout_s=timeout_s,
            headers={"Authorization": f"Bearer {api_key or NO_KEY}"},
            reply_bytes_max=reply_bytes_max,
        )
        sdk = AsyncOpenAI(
            base_url=self._endpoint,
            api_key=api_key or NO_KEY,
            http_client=self._client,
            max_retries=0,
        )
        self._chat = OpenAIChatModel(
            model,
            provider=OpenAIProvider(openai_client=sdk),
            profile=OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True),
        )
        self._reasons = bool(self._chat.profile.get("openai_supports_reasoning"))

    @property
    def name(self) -> str:
        return f"openai:{self._model}"

    @property
    def context_tokens(self) -> int | None:
        """None: the protocol does not say."""
        return None

    async def probe(self) -> None:
        hint = "check OPENAI_BASE_URL and the network"
        async with transport.probing(
            self._timeout_s, endpoint=self._endpoint, hint=hint, redact=self._redact
        ):
            try:
                listed = await transport.fetch_json(
                    self._client, "GET", "models", _Models, redact=self._redact
                )
            except ModelError as error:
                if error.code == "unknown_model":
                    return  # The server answers but has no list; the first call will tell.
                raise
            known = [row.id for row in listed.data]
            if known and self._model not in known:
                raise transport.unknown_model(
                    self._model,
                    known,
                    endpoint=self._endpoint,
                    hint="name one of the models the endpoint lists",
                )

    async def complete(self, request: ModelRequest) -> ModelReply:
        assert request.model == self._model, "one adapter speaks to one model"
        asked = model_request_stream(
            self._chat,
            _messages(request.messages),
            model_settings=self._settings(request),
            model_request_parameters=_parameters(request),
        )
        async with transport.deadline(
            self._timeout_s, endpoint=self._endpoint, redact=self._redact
        ):
            try:
                async with asked as stream:
                    async for _ in stream:
                        pass
                    response = stream.get()
            # The block only decodes what the endpoint sent: whatever it raises is about that.
            except Exception as error:
                raise self._failure(error) from error
        return seal(_draft(response), request, price=self._price, redact=self._redact)

    async def aclose(self) -> None:
        await self._client.aclose()

    def _settings(self, request: ModelRequest) -> ModelSettings:
        settings = ModelSettings()
        # Reasoning models refuse a temperature.
        if request.temperature is not None and not self._reasons:
            settings["temperature"] = request.temperature
        if request.seed is not None:
            settings["seed"] = request.seed
        if request.output_tokens_max is not None:
            settings["max_tokens"] = request.output_tokens_max
        return settings

    def _failure(self, error: Exception) -> ModelError:
        match error:
            case ModelHTTPError():
                return failures.refused_by_server(
                    error.status_code, error.headers or {}, error.body or b"", redact=self._redact
                )
            case ModelConnectionError() | httpx2.HTTPError():
                return transport.transport_failure(
                    error, endpoint=self._endpoint, redact=self._redact
                )
            case ModelAPIError(in_stream=True):
                body = error.body or {"message": error.message}
                return failures.refused_by_server(500, {}, body, redact=self._redact)
            case ModelAPIError(__cause__=APIStatusError() as answer):
                return failures.refused_by_server(
                    answer.status_code, answer.response.headers, b"", redact=self._redact
                )
            case ModelAPIError() if "finish_reason" in error.message:
                return failures.cut("the stream ended before the model was done")
            case _:
                return failures.malformed(f"{type(error).__name__}: {error}", self._redact)


def _parameters(request: ModelRequest) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.parameters),
                # The schema goes out as it is; the caller checks arguments against it.
                strict=False,
            )
            for tool in request.tools
        ]
    )


def _messages(messages: Sequence[Message]) -> list[ModelMessage]:
    """Each message as one of theirs, in order, nothing merged."""
    return [
        _assistant(message)
        if message.role == "assistant"
        else WireRequest(parts=[_request_part(message)])
        for message in messages
    ]


def _request_part(message: Message) -> ModelRequestPart:
    match message.role:
        case "system":
            return SystemPromptPart(content=message.content)
        case "user":
            return UserPromptPart(content=message.content)
        case "tool":
            return ToolReturnPart(
                tool_name=message.tool, content=message.content, tool_call_id=message.call_id
            )
        case "assistant":
            raise AssertionError("an assistant message is no request")


def _assistant(message: Message) -> ModelResponse:
    calls = [
        ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.id)
        for call in message.calls
    ]
    # Without calls even an empty text is said: a turn left out would shift all later ones.
    text = [TextPart(content=message.content)] if message.content or not calls else []
    return ModelResponse(parts=[*text, *calls])


def _draft(response: ModelResponse) -> Draft:
    usage = response.usage
    counted = usage.unmeasured_requests == 0
    details: dict[str, Any] = response.provider_details or {}
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    return Draft(
        text="".join(texts) or str(details.get("refusal") or ""),
        thinking="".join(p.content for p in response.parts if isinstance(p, ThinkingPart)),
        calls=tuple(
            ToolCall(
                # pydantic-ai makes up a random id where the provider sent none; ours is derived.
                id="" if part.tool_call_id.startswith("pyd_ai_") else part.tool_call_id,
                name=part.tool_name,
                arguments=part.args if isinstance(part.args, str) else part.args_as_json_str(),
            )
            for part in calls
        ),
        finish_reason=_FINISH.get(response.finish_reason or "", "unknown"),
        model=response.model_name or "",
        tokens_in=usage.input_tokens if counted else None,
        tokens_out=usage.output_tokens if counted else None,
        tokens_cached=usage.cache_read_tokens,
    )


class _Listed(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Listed] = []
