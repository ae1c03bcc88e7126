"""Every hosted provider, each by the official client of its own, over real HTTP on the loopback.

Who speaks OpenAI's dialect meets our strict server, others the independent one; those that neither
speaks (Bedrock, Google Cloud by key, Mistral, xAI over gRPC) meet a few lines of their own here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from struct import pack
from typing import Any
from zlib import crc32

import msgspec
import pytest

from e2e.aimock import Aimock, aimock
from holdfast.adapters.models import resolve
from holdfast.adapters.models.hosts import HOSTS
from holdfast.agent.conversation import encode
from holdfast.domain.ports import Message, ModelReply, ModelRequest, ToolSpec
from holdfast.errors import ModelError, Refused
from holdfast.testing import ScriptedServer
from model_world import plain

READ = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
    effect="pure",
)
OPENING = (Message(role="system", content="You are a test."), Message(role="user", content="Go"))
Ask = Callable[..., Awaitable[ModelReply]]
OWN = ["openai", "anthropic"]
# Provider to the path at which it is served.
CHAT = dict.fromkeys(
    [
        *("alibaba", "azure", "cerebras", "crusoe", "deepseek", "fireworks", "github-copilot"),
        *("heroku", "litellm", "moonshotai", "nebius", "openrouter", "ovhcloud", "sambanova"),
        *("snowflake", "together", "vercel", "vllm", "zai"),
    ],
    "/v1",
)
PEER = {
    **dict.fromkeys(["azure-responses", "bedrock-mantle", "cohere"], ""),
    **dict.fromkeys(["google", "groq"], ""),
    **dict.fromkeys(["huggingface", "meta", "openai-responses"], "/v1"),
}
ALONE = ["bedrock", "google-cloud", "mistral", "xai"]
NAMES = {
    "bedrock": "anthropic.claude-3-5-sonnet-20241022-v2:0",
    "bedrock-mantle": "openai.gpt-oss-120b",
    "openrouter": "openai/gpt-4o",
}
MODEL = "gpt-4o"


def environ(provider: str, url: str) -> dict[str, str]:
    host = HOSTS[provider]
    given = {host.keys[-1]: "test-key", host.address: url, "AWS_REGION": "us-east-1"}
    if provider == "bedrock":
        given["AWS_SECRET_ACCESS_KEY"] = "test-secret"
    if provider == "google-cloud":
        return {"GOOGLE_API_KEY": "test-key", host.address: url}
    if provider == "azure-responses":
        given["OPENAI_API_VERSION"] = "2025-04-01-preview"
    return given


@asynccontextmanager
async def opened(provider: str, url: str, *, stream: bool = True) -> AsyncIterator[Ask]:
    name = NAMES.get(provider, MODEL)
    given = environ(provider, url)
    spec = f"{provider}:{name}"
    model = resolve(spec, environ=given, redact=str, timeout_s=30.0, stream=stream)

    async def ask(*turns: Message) -> ModelReply:
        messages = (*OPENING, *turns)
        reply = await model.complete(
            ModelRequest(model=name, messages=messages, tools=(READ,), seed=3)
        )
        assert msgspec.json.decode(encode(reply), type=ModelReply) == reply, "what is stored is it"
        return reply

    try:
        await model.probe()
        yield ask
    finally:
        await model.aclose()


async def talk(ask: Ask) -> tuple[ModelReply, ModelReply]:
    """A turn that calls a tool, and the turn that was told its result."""
    first = await ask()
    told = [
        Message(role="tool", content="bytes", call_id=call.id, tool=call.name)
        for call in first.calls
    ]
    said = Message(role="assistant", content=first.text, calls=first.calls)
    return first, await ask(said, *told)


async def converse(
    provider: str, url: str, *, stream: bool = True
) -> tuple[ModelReply, ModelReply]:
    async with opened(provider, url, stream=stream) as ask:
        return await talk(ask)


def holds(first: ModelReply, second: ModelReply) -> None:
    [call] = first.calls
    assert (call.name, json.loads(call.arguments)) == ("read_file", {"path": "a.py"})
    assert call.id
    assert (first.finish_reason, first.text) == ("tool_calls", "Let me look.")
    assert (second.text, second.calls, second.finish_reason) == ("Done 🦊", (), "stop")


def test_every_provider_of_the_table_is_proven_here() -> None:
    assert {*CHAT, *PEER, *ALONE, *OWN} == {*HOSTS}


@pytest.mark.parametrize(
    ("provider", "stream"),
    # A whole reply of OpenRouter names who made it, which is no part of OpenAI's dialect.
    [(name, way) for name in CHAT for way in (True, False) if way or name != "openrouter"],
)
def test_who_speaks_openais_dialect_talks_with_our_strict_server(
    provider: str, stream: bool
) -> None:
    call = {"name": "read_file", "arguments": {"path": "a.py"}}
    usage = {"in": 1000, "out": 10, "cached": 600, "reasoning": 7}
    first = {"text": "Let me look.", "thinking": "Hm.", "calls": [call], "usage": usage}
    script = {"rules": [{"replies": [first, {"text": "Done 🦊"}]}]}
    script["models"] = [NAMES.get(provider, MODEL)]
    with ScriptedServer(script, strict=True) as server:
        url = server.url + CHAT[provider]
        replies = asyncio.run(converse(provider, url, stream=stream))
        assert [made.status for made in server.calls] == [200, 200]
    holds(*replies)
    counted = replies[0].usage
    assert (counted.tokens_in, counted.tokens_out) == (1000, 10)
    # pydantic-ai reads no cached tokens of Cerebras.
    assert counted.tokens_cached == (0 if provider == "cerebras" else 600)
    assert counted.tokens_reasoning == 7
    assert counted.reported
    assert replies[0].thinking == "Hm."


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    call = {"name": "read_file", "arguments": '{"path":"a.py"}'}
    fixtures = [
        {
            "match": {"hasToolResult": False},
            "response": {"content": "Let me look.", "toolCalls": [call]},
        },
        {"match": {"hasToolResult": True}, "response": {"content": "Done 🦊"}},
    ]
    with aimock(fixtures, tmp_path_factory.mktemp("peer")) as found:
        yield found


# The peer ends a turn of Gemini's with a word of its own.
@pytest.mark.filterwarnings("ignore:FUNCTION_CALL is not a valid:UserWarning")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("provider", PEER)
def test_who_has_a_dialect_of_its_own_talks_with_the_independent_server(
    peer: Aimock, provider: str, stream: bool
) -> None:
    holds(*asyncio.run(converse(provider, peer.url + PEER[provider], stream=stream)))


def events(*frames: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
    lines = [f"data: {json.dumps(frame)}\n\n" for frame in frames]
    return 200, {"Content-Type": "text/event-stream"}, "".join(lines).encode()


def test_mistral_sends_whole_calls_and_thinks_in_parts() -> None:
    def answer(path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        assert path.startswith("/v1/chat/completions")
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}

        def frame(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return {**head, "choices": [choice], **more}

        if "tool_call_id" in body.decode():
            return events(
                frame({"content": "Done 🦊"}), frame({"content": ""}, "stop", usage=usage)
            )
        thought = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]
        function = {"name": "read_file", "arguments": '{"path":"a.py"}'}
        return events(
            frame({"role": "assistant", "content": thought}),
            frame({"content": "Let me look."}),
            frame({"tool_calls": [{"id": "abcdefghi", "function": function}]}),
            frame({"content": ""}, "tool_calls", usage=usage),
        )

    with plain(answer) as url:
        first, second = asyncio.run(converse("mistral", url))
    holds(first, second)
    assert first.thinking == "Hm."
    assert (first.usage.tokens_in, first.usage.tokens_out) == (9, 4)


def test_google_cloud_is_reached_by_key_and_keeps_what_it_counts() -> None:
    counts = {"promptTokenCount": 1000, "cachedContentTokenCount": 600, "totalTokenCount": 1017}
    counts |= {"candidatesTokenCount": 10, "thoughtsTokenCount": 7}

    def answer(path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        assert f"/publishers/google/models/{MODEL}:streamGenerateContent" in path
        parts: list[dict[str, Any]] = [{"text": "Done 🦊"}]
        if b"functionResponse" not in body:
            call = {"functionCall": {"name": "read_file", "args": {"path": "a.py"}}}
            parts = [{"text": "Hm.", "thought": True}, {"text": "Let me look."}, call]
        one = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        return events({"candidates": [one], "usageMetadata": counts, "modelVersion": MODEL})

    with plain(answer) as url:
        first, second = asyncio.run(converse("google-cloud", url))
    holds(first, second)
    assert first.thinking == "Hm."
    assert first.calls[0].id == "call_0"  # the protocol has no ids; ours is derived
    counted = first.usage
    assert (counted.tokens_in, counted.tokens_out) == (1000, 17)
    assert (counted.tokens_cached, counted.tokens_reasoning) == (600, 7)


def aws_event(kind: str, payload: Mapping[str, Any]) -> bytes:
    """One message of AWS's event stream: lengths, their checksum, headers, payload, checksum."""

    def header(name: str, value: str) -> bytes:
        return (
            bytes([len(name)]) + name.encode() + b"\x07" + pack(">H", len(value)) + value.encode()
        )

    headers = header(":event-type", kind) + header(":message-type", "event")
    headers += header(":content-type", "application/json")
    body = json.dumps(payload).encode()
    prelude = pack(">II", 16 + len(headers) + len(body), len(headers))
    whole = prelude + pack(">I", crc32(prelude)) + headers + body
    return whole + pack(">I", crc32(whole))


def test_bedrock_streams_in_frames_and_marks_its_prefix_as_cached() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        assert path.endswith("/converse-stream")
        bodies.append(json.loads(body))
        tokens = {"inputTokens": 300, "outputTokens": 10, "totalTokens": 1010}
        tokens |= {"cacheReadInputTokens": 600, "cacheWriteInputTokens": 100}
        use = {"toolUse": {"toolUseId": "t1", "name": "read_file"}}
        thought = {"reasoningContent": {"text": "Hm."}}
        called = [
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": thought}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Let me look."}}),
            ("contentBlockStop", {"contentBlockIndex": 1}),
            ("contentBlockStart", {"contentBlockIndex": 2, "start": use}),
            (
                "contentBlockDelta",
                {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"path":"a.py"}'}}},
            ),
            ("contentBlockStop", {"contentBlockIndex": 2}),
            ("messageStop", {"stopReason": "tool_use"}),
        ]
        done = [
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Done 🦊"}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": "end_turn"}),
        ]
        frames: list[tuple[str, dict[str, Any]]] = [
            ("messageStart", {"role": "assistant"}),
            *(done if len(bodies) > 1 else called),
            ("metadata", {"usage": tokens, "metrics": {"latencyMs": 1}}),
        ]
        kind = {"Content-Type": "application/vnd.amazon.eventstream"}
        return 200, kind, b"".join(aws_event(*frame) for frame in frames)

    with plain(answer) as url:
        first, second = asyncio.run(converse("bedrock", url))
    holds(first, second)
    assert first.thinking == "Hm."
    counted = first.usage
    assert (counted.tokens_in, counted.tokens_cached, counted.tokens_written) == (1000, 600, 100)
    mark = {"cachePoint": {"type": "default"}}
    for body in bodies:
        assert body["system"][-1] == body["toolConfig"]["tools"][-1] == mark
        assert body["messages"][-1]["content"][-1] == mark
    assert bodies[0]["messages"][0]["content"][0] == bodies[1]["messages"][0]["content"][0]


@asynccontextmanager
async def grpc_server(answers: Any) -> AsyncIterator[str]:
    from grpc import aio
    from xai_sdk.proto import chat_pb2_grpc

    class Chat(chat_pb2_grpc.ChatServicer):  # type: ignore[misc]  generated, untyped
        async def GetCompletionChunk(self, request: Any, context: Any) -> AsyncIterator[Any]:
            async for chunk in answers(request, context):
                yield chunk

    server = aio.server(ThreadPoolExecutor(1))
    chat_pb2_grpc.add_ChatServicer_to_server(Chat(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await server.stop(None)


def test_xai_is_spoken_to_over_grpc_and_never_retries_by_itself() -> None:
    from grpc import StatusCode
    from xai_sdk.proto import chat_pb2, sample_pb2, usage_pb2

    asked: list[str] = []

    async def answers(request: Any, context: Any) -> AsyncIterator[Any]:
        asked.append(dict(context.invocation_metadata())["authorization"])
        if len(asked) > 2:
            await context.abort(StatusCode.UNAVAILABLE, "the runner is busy")
        role = chat_pb2.MessageRole.ROLE_ASSISTANT
        counts = usage_pb2.SamplingUsage(
            prompt_tokens=1000,
            completion_tokens=3,
            reasoning_tokens=7,
            cached_prompt_text_tokens=600,
            total_tokens=1010,
        )
        kind = chat_pb2.ToolCallType.TOOL_CALL_TYPE_CLIENT_SIDE_TOOL
        deltas: list[tuple[dict[str, Any], int]] = [({"content": "Done 🦊"}, 0)]
        end = sample_pb2.FinishReason.REASON_STOP
        if len(asked) == 1:
            function = {"name": "read_file", "arguments": '{"path":"a.py"}'}
            deltas = [
                ({"reasoning_content": "Hm."}, 0),
                ({"content": "Let me look."}, 0),
                ({"tool_calls": [{"id": "c1", "type": kind, "function": function}]}, 0),
            ]
            end = sample_pb2.FinishReason.REASON_TOOL_CALLS
        for delta, index in [*deltas, ({}, 0)]:
            last = not delta
            out = {"index": index, "delta": {**delta, "role": role}}
            yield chat_pb2.GetChatCompletionChunk(
                id="c",
                model=MODEL,
                outputs=[{**out, "finish_reason": end} if last else out],
                usage=counts if last else None,
            )

    async def both() -> tuple[ModelReply, ModelReply]:
        async with grpc_server(answers) as url, opened("xai", url) as ask:
            replies = await talk(ask)
            with pytest.raises(ModelError) as caught:
                await ask()
            assert (caught.value.failure_class, caught.value.code) == ("transient", "overloaded")
            assert asked == ["Bearer test-key"] * 3
            return replies

    first, second = asyncio.run(both())
    holds(first, second)
    assert first.thinking == "Hm."
    assert first.usage.tokens_in == 1000
    assert (first.usage.tokens_cached, first.usage.tokens_reasoning) == (600, 7)
    assert first.usage.tokens_out == 10


ANSWERS = {
    401: ("policy", "not_allowed"),
    429: ("transient", "rate_limited"),
    500: ("unknown", "server_error"),
    503: ("transient", "overloaded"),
}


@pytest.mark.parametrize("provider", ["bedrock", "deepseek", "google-cloud", "mistral", *PEER])
def test_a_refusal_means_the_same_from_every_client_and_is_asked_for_once(provider: str) -> None:
    seen: list[bytes] = []
    status = 0

    def answer(path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        seen.append(body)
        said = {"message": "scripted failure", "type": None, "code": None}
        said = {"error": said, "message": "scripted failure"}
        return (
            status,
            {"Retry-After": "7", "Content-Type": "application/json"},
            json.dumps(said).encode(),
        )

    async def refused(url: str) -> None:
        nonlocal status
        async with opened(provider, url) as ask:
            for status, meaning in ANSWERS.items():
                with pytest.raises(ModelError) as caught:
                    await ask()
                assert (caught.value.failure_class, caught.value.code) == meaning
                assert "scripted failure" in caught.value.message
                assert status != 429 or caught.value.retry_after_s == 7.0
        assert len(seen) == len(ANSWERS)

    async def gone(url: str) -> None:
        async with opened(provider, url) as ask:
            with pytest.raises(ModelError) as caught:
                await ask()
            assert (caught.value.failure_class, caught.value.code) == ("transient", "unreachable")

    with plain(answer) as url:
        asyncio.run(refused(url))
    asyncio.run(gone(url))


def test_what_only_the_sdk_knows_to_be_wrong_is_refused_before_anything_is_asked() -> None:
    for spec, given in (
        ("openrouter:gpt-4o", {"OPENROUTER_API_KEY": "k"}),
        ("bedrock-mantle:claude", {"AWS_BEARER_TOKEN_BEDROCK": "k", "AWS_REGION": "r"}),
        ("snowflake:claude", {"SNOWFLAKE_TOKEN": "k"}),
        ("azure:gpt", {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "http://x"}),
    ):
        with pytest.raises(Refused) as caught:
            resolve(spec, environ=given, redact=str, timeout_s=1)
        assert caught.value.code == "unusable_model"
        assert spec in caught.value.message


def test_bedrock_wants_a_region_and_sends_a_bearer_token_over_https_only() -> None:
    token = {"AWS_BEARER_TOKEN_BEDROCK": "k"}
    with pytest.raises(Refused, match="AWS_REGION is not set"):
        resolve("bedrock:amazon.nova", environ=token, redact=str, timeout_s=1)
    with pytest.raises(Refused, match="AWS_SECRET_ACCESS_KEY is not set"):
        resolve("bedrock:x", environ={"AWS_ACCESS_KEY_ID": "k"}, redact=str, timeout_s=1)
    token |= {"AWS_DEFAULT_REGION": "eu-central-1"}
    model = resolve("bedrock:amazon.nova", environ=token, redact=str, timeout_s=1)
    assert model.name == "bedrock:amazon.nova"
    asyncio.run(model.aclose())
    with pytest.raises(Refused, match="over https only"):
        resolve(
            "bedrock:amazon.nova",
            environ={**token, "BEDROCK_BASE_URL": "http://127.0.0.1:1"},
            redact=str,
            timeout_s=1,
        )


def test_a_project_without_credentials_is_policy_and_never_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    given = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_BASE_URL": "http://127.0.0.1:9"}

    async def call() -> None:
        model = resolve("google-cloud:gemini", environ=given, redact=str, timeout_s=30)
        try:
            await model.complete(ModelRequest(model="gemini", messages=OPENING))
        finally:
            await model.aclose()

    with pytest.raises(ModelError, match="was not sent") as caught:
        asyncio.run(call())
    assert (caught.value.failure_class, caught.value.code) == ("policy", "not_allowed")
