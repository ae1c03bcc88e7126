"""One model behind pydantic-ai's direct API: what every provider reached that way has in common.

Owns the mapping between our canonical request and theirs, and of their errors onto our table. The
provider's breadth is theirs; none of their objects leaves this module and its three users. It costs
about a second to import, so `resolve` imports it only for a model that needs it. Invariants: the
SDK's own retries are off; a stream that never named a finish reason is no reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import httpx2
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UserError,
)
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
from pydantic_ai.models import Model as WireModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from holdfast.adapters.models import failures, transport
from holdfast.adapters.models.hosts import HOSTS
from holdfast.adapters.models.prices import Price
from holdfast.adapters.models.replies import Draft, seal
from holdfast.domain.ports import FinishReason, Message, ModelReply, ModelRequest, ToolCall
from holdfast.errors import ModelError

EMPTY_TURN = "(no text)"
_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool_calls",
    "content_filter": "content_filter",
}
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_CHARS_MAX = 64


class DirectModel:
    """Completes requests over one of pydantic-ai's models; `complete` of `domain.ports.Model`.

    `settings` are the provider's own, sent with every request. `empty_turns` false is for a
    provider that refuses an empty text.
    """

    context_tokens: int | None = None  # their protocols do not say

    def __init__(
        self,
        name: str,
        wire: WireModel,
        *,
        endpoint: str,
        redact: Callable[[str], str],
        timeout_s: float,
        price: Price | None,
        stream: bool = True,
        settings: ModelSettings | None = None,
        takes_temperature: bool = True,
        empty_turns: bool = True,
    ) -> None:
        self.name = name
        self._wire = wire
        self._endpoint = endpoint
        self._redact = redact
        self._timeout_s = timeout_s
        self._price = price
        self._stream = stream
        self._own = settings or ModelSettings()
        self._takes_temperature = takes_temperature
        self._empty_text = "" if empty_turns else EMPTY_TURN

    async def complete(self, request: ModelRequest) -> ModelReply:
        assert request.model == self.name.partition(":")[2], "one adapter speaks to one model"
        async with transport.deadline(
            self._timeout_s, endpoint=self._endpoint, redact=self._redact
        ):
            try:
                response = await self._ask(request)
            # The block only decodes what the endpoint sent: whatever it raises is about that.
            except Exception as error:
                raise self._failure(error) from error
        if response.finish_reason is None and "finish_reason" not in (
            response.provider_details or {}
        ):
            raise failures.cut("the stream ended before the model was done")
        return seal(_draft(response), request, price=self._price, redact=self._redact)

    async def _ask(self, request: ModelRequest) -> ModelResponse:
        said, own = list(_messages(request.messages, self._empty_text)), self._settings(request)
        given = _parameters(request)
        if not self._stream:
            return await model_request(
                self._wire, said, model_settings=own, model_request_parameters=given
            )
        async with model_request_stream(
            self._wire, said, model_settings=own, model_request_parameters=given
        ) as stream:
            async for _ in stream:
                pass
            return stream.get()

    def _settings(self, request: ModelRequest) -> ModelSettings:
        settings = self._own.copy()
        if request.temperature is not None and self._takes_temperature:
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
            case ModelAPIError() if (answer := _answer(error)) is not None:
                status, headers = answer
                return failures.refused_by_server(status, headers, b"", redact=self._redact)
            case ModelAPIError(in_stream=True):
                body = error.body or {"message": error.message}
                return failures.refused_by_server(500, {}, body, redact=self._redact)
            case ModelAPIError() if "finish_reason" in error.message:
                return failures.cut("the stream ended before the model was done")
            case UnexpectedModelBehavior() if "ended without" in error.message:
                return failures.cut("the stream ended before it said anything")
            case UserError():
                return failures.never_sent(f"{error}", self._redact, allowed=True)
            case _ if "Credential" in type(error).__name__:
                return failures.never_sent(f"{error}", self._redact, allowed=False)
            case _:
                return failures.malformed(f"{type(error).__name__}: {error}", self._redact)


class ListedModel(DirectModel):
    """The same at an endpoint that lists its models, reached by a client of ours."""

    _client: transport.Client
    _list = "models"

    async def probe(self) -> None:
        provider, _, model = self.name.partition(":")
        hint = f"check {HOSTS[provider].address} and the network"
        async with transport.probing(
            self._timeout_s, endpoint=self._endpoint, hint=hint, redact=self._redact
        ):
            await transport.check_listed(
                self._client, self._list, model, self._endpoint, self._redact
            )

    async def aclose(self) -> None:
        await self._client.aclose()


def _answer(error: BaseException) -> tuple[int, dict[str, str]] | None:
    """The status and headers an SDK's error holds, where pydantic-ai did not read them itself."""
    cause = error.__cause__
    for found in (getattr(cause, "response", None), cause):
        status = getattr(found, "status_code", None)
        if isinstance(status, int) and status != 200:
            headers = dict(getattr(found, "headers", None) or {})
            return status, {name.lower(): str(value) for name, value in headers.items()}
    return None


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


def _messages(messages: Sequence[Message], empty_text: str) -> Iterator[ModelMessage]:
    """The conversation as theirs. What stands between two replies is one request of many parts,
    since a provider may want the answers to all calls of a reply in one message.

    Call ids are made distinct over the whole conversation and names usable: some providers refuse
    what others, or the model itself, made up.
    """
    used: set[str] = set()
    named: dict[str, str] = {}
    for replied, group in groupby(messages, lambda message: message.role == "assistant"):
        if not replied:
            yield WireRequest(parts=[_request_part(message, named) for message in group])
            continue
        for message in group:
            named = {call.id: _wire_id(call.id, used) for call in message.calls}
            yield _assistant(message, named, empty_text)


def _request_part(message: Message, named: dict[str, str]) -> ModelRequestPart:
    match message.role:
        case "system":
            return SystemPromptPart(content=message.content)
        case "user":
            return UserPromptPart(content=message.content)
        case "tool":
            return ToolReturnPart(
                tool_name=_wire_name(message.tool),
                content=message.content,
                tool_call_id=named.get(message.call_id, message.call_id),
            )
        case "assistant":
            raise AssertionError("an assistant message is no request")


def _assistant(message: Message, named: dict[str, str], empty_text: str) -> ModelResponse:
    calls = [
        ToolCallPart(
            tool_name=_wire_name(call.name), args=call.arguments, tool_call_id=named[call.id]
        )
        for call in message.calls
    ]
    # Without calls even an empty text is said: a turn left out would shift all later ones.
    said = message.content or ("" if calls else empty_text)
    text = [TextPart(content=said)] if message.content or not calls else []
    return ModelResponse(parts=[*text, *calls])


def _wire_id(name: str, used: set[str]) -> str:
    base = _NOT_IN_A_NAME.sub("_", name) or "call"
    found, copies = base, 1
    while found in used:
        copies += 1
        found = f"{base}-{copies}"
    used.add(found)
    return found


def _wire_name(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name)[:_NAME_CHARS_MAX] or "unreadable"


def _draft(response: ModelResponse) -> Draft:
    usage = response.usage
    # No request is empty: zero is what servers say that do not count.
    counted = usage.unmeasured_requests == 0 and usage.input_tokens > 0
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
        tokens_written=usage.cache_write_tokens,
        tokens_reasoning=usage.details.get(
            "reasoning_tokens",
            usage.details.get("thoughts_tokens", 0),  # Gemini's word for it
        ),
    )
