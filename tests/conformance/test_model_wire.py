"""What a request looks like when it leaves, word for word, in each dialect."""

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.models.replies import canonical_json
from holdfast.domain.ports import (
    Message,
    ModelRequest,
    ToolCall,
)
from holdfast.testing import ScriptedServer
from model_world import (
    READ,
    UNICODE,
    World,
    request,
    resolved,
    says,
)


def test_every_option_of_a_request_is_one_the_official_client_knows(world: World) -> None:
    asked = request(temperature=0.5, seed=7, output_tokens_max=99)
    [reply] = world.ask(says({"text": "ok"}), asked)
    assert reply.text == "ok"


@pytest.mark.parametrize("name", ["gpt-5", "gpt-4o"])
def test_a_reasoning_model_is_not_sent_a_temperature(name: str) -> None:
    async def call(environ: Mapping[str, str]) -> None:
        model = resolved("openai", environ, name)
        asked = ModelRequest(model=name, messages=request().messages, temperature=0.1)
        try:
            await model.complete(asked)
        finally:
            await model.aclose()

    with ScriptedServer(says({"text": "ok"}, models=[name]), strict=True) as server:
        asyncio.run(call(server.environ()))
        expected = {"model": name, "stream": True, "stream_options": {"include_usage": True}}
        expected["messages"] = [
            {"role": "system", "content": "You are a test."},
            {"role": "user", "content": "Make the failing test pass"},
        ]
        if name == "gpt-4o":
            expected["temperature"] = 0.1
        assert server.calls[0].sha256 == sha256(canonical_json(expected).encode()).hexdigest()


def test_a_whole_conversation_goes_out_word_for_word(remote: World) -> None:
    arguments = '{ "path": "<a>" }'
    output = ' {"not": "parsed"}\n\n'
    conversation = (
        Message(
            role="assistant",
            content=" Let me look.\n",
            calls=(ToolCall(id="call_0", name="read_file", arguments=arguments),),
        ),
        Message(role="tool", content=output, call_id="call_0", tool="read_file"),
        Message(role="assistant", content=""),
        Message(role="user", content="Go on"),
    )
    function = {"name": "read_file", "description": "Read a file.", "parameters": READ.parameters}
    tools = [{"type": "function", "function": function}]
    opening = [
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": "Make the failing test pass"},
    ]
    ending = [{"role": "assistant", "content": ""}, {"role": "user", "content": "Go on"}]
    if remote.adapter == "ollama":
        called: dict[str, Any] = {"function": {"name": "read_file", "arguments": {"path": "<a>"}}}
        answer = {"role": "tool", "content": output, "tool_name": "read_file"}
        expected: dict[str, Any] = {"options": {"num_ctx": 32_768, "seed": 3, "num_predict": 50}}
    else:
        raw = {"name": "read_file", "arguments": '{"path":"<a>"}'}  # blanks do not matter
        called = {"id": "call_0", "type": "function", "function": raw}
        answer = {"role": "tool", "content": output, "tool_call_id": "call_0"}
        expected = {
            "stream_options": {"include_usage": True},
            "tool_choice": "auto",
            "seed": 3,
            "max_completion_tokens": 50,
        }
    if remote.adapter == "anthropic":
        assert _sent(remote, request(*conversation, seed=3, output_tokens_max=50)) == _digest(
            ANTHROPIC_CONVERSATION
        )
        return
    asked = {"role": "assistant", "content": " Let me look.\n", "tool_calls": [called]}
    expected |= {
        "model": "scripted",
        "stream": True,
        "tools": tools,
        "messages": [*opening, asked, answer, *ending],
    }
    sent = _sent(remote, request(*conversation, seed=3, output_tokens_max=50))
    assert sent == _digest(expected)


def _sent(remote: World, asked: ModelRequest) -> str:
    """The digest of the body that a request became."""
    remote.ask(says({"text": "1"}, {"text": "2"}, {"text": "3"}), asked)
    assert remote.server is not None
    assert remote.server.calls[0].status == 200
    return remote.server.calls[0].sha256


def _digest(body: Mapping[str, Any]) -> str:
    return sha256(canonical_json(body).encode()).hexdigest()


CACHED = {"cache_control": {"type": "ephemeral", "ttl": "5m"}}


ANTHROPIC_CONVERSATION = {
    "model": "scripted",
    "stream": True,
    "max_tokens": 50,
    "tool_choice": {"type": "auto"},
    "system": [{"type": "text", "text": "You are a test.", **CACHED}],
    "tools": [
        {
            "name": "read_file",
            "description": "Read a file.",
            "input_schema": READ.parameters,
            **CACHED,
        }
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Make the failing test pass"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": " Let me look.\n"},
                {
                    "type": "tool_use",
                    "id": "call_0",
                    "name": "read_file",
                    "input": {"path": "<a>"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_0",
                    "content": [{"type": "text", "text": ' {"not": "parsed"}\n\n'}],
                    "is_error": False,
                }
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "(no text)"}]},
        {"role": "user", "content": [{"type": "text", "text": "Go on", **CACHED}]},
    ],
}


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_ids_that_repeat_and_names_no_provider_takes_are_mended_on_the_wire(
    adapter: str, tmp_path: Path
) -> None:
    """The server refuses answers that do not pair up, and for Anthropic ids used twice."""
    odd = tuple(
        ToolCall(id=f"functions.read:{at}", name="functions.read", arguments="{}") for at in (0, 1)
    )
    turn = (
        Message(role="assistant", content="", calls=odd),
        *(Message(role="tool", content="x", call_id=call.id, tool=call.name) for call in odd),
    )
    replies = [{"text": str(at)} for at in range(3)]
    [reply] = World(adapter, tmp_path).ask(says(*replies), request(*turn, *turn))
    assert reply.text == "2"


@pytest.mark.parametrize("stream", [True, False])
def test_the_official_anthropic_client_reads_the_server(stream: bool) -> None:
    """Strictly validated: what the adapter is tested against is what the client knows."""
    from anthropic import Anthropic

    turn = {
        "text": UNICODE,
        "thinking": "hm",
        "calls": [{"name": "read_file", "arguments": {"path": "a"}}],
    }
    with ScriptedServer(says(turn), strict=True) as server:
        client = Anthropic(
            base_url=server.url, api_key="k", max_retries=0, _strict_response_validation=True
        )
        asked: dict[str, Any] = {
            "model": "scripted",
            "max_tokens": 10,
            "messages": [{"role": "user", "content": "hi"}],
        }
        with client:
            if stream:
                with client.messages.stream(**asked) as events:
                    message = events.get_final_message()
            else:
                message = client.messages.create(**asked)
            assert client.models.list().data[0].id == "scripted"
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert (message.content[1].text, message.content[2].input) == (UNICODE, {"path": "a"})
    assert message.stop_reason == "tool_use"
