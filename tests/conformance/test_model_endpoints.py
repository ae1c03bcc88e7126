"""Probes, windows and servers that speak something else than they should."""

import asyncio
import json
import socket
from collections.abc import Mapping

import pytest

from holdfast.adapters.models import resolve, transport
from holdfast.adapters.models.ollama import CONTEXT_TOKENS_MAX
from holdfast.domain.ports import (
    ModelReply,
)
from holdfast.errors import ModelError, Refused, Unavailable
from holdfast.testing import ScriptedServer
from model_world import (
    ADDRESSES,
    World,
    odd_endpoint,
    probed,
    request,
    resolved,
    same,
    says,
)


def test_a_server_that_only_chats_is_given_the_cap_as_its_window() -> None:
    """`/api/show` is Ollama's own; proxies and test servers often lack it."""

    async def call(environ: Mapping[str, str]) -> int | None:
        model = resolved("ollama", environ)
        try:
            with pytest.raises(ModelError) as caught:
                await model.complete(request())
            assert caught.value.code == "unknown_model"
            return model.context_tokens
        finally:
            await model.aclose()

    with odd_endpoint(404, b'{"error": "not found"}') as environ:
        assert asyncio.run(call(environ)) == 32_768


def test_a_character_cut_into_two_chunks_is_joined_again() -> None:
    """Servers written in JavaScript cut between the two escapes of one character."""
    from holdfast.adapters.models.ollama import ChatStream
    from holdfast.adapters.models.replies import seal

    stream = ChatStream(same)
    for half in ("\\ud83e", "\\udd8a"):
        stream.feed(b'{"message": {"content": "' + half.encode() + b'"}}\n')
    stream.feed(b'{"done": true, "prompt_eval_count": 1, "eval_count": 1}\n')
    assert seal(stream.draft(), request(), price=None, redact=same).text == "🦊"


@pytest.mark.parametrize("said", [-5, 10**9 + 1, 10**30])
def test_a_count_that_no_call_can_have_is_an_estimate(said: int) -> None:
    """The store has whole numbers of eight bytes, and a budget must not be lifted by a sign."""
    from holdfast.adapters.models.replies import Draft, seal

    for counts in ((said, 1), (1, said)):
        draft = Draft(text="hello", tokens_in=counts[0], tokens_out=counts[1], tokens_cached=said)
        usage = seal(draft, request(), price=None, redact=same).usage
        assert (usage.reported, 0 < usage.tokens < 10_000) == (False, True)


def test_a_good_endpoint_passes_the_probe(world: World) -> None:
    assert world.talk(says({"text": "ok"}), lambda model: model.probe()) is None


def test_an_unknown_model_is_refused_with_near_names(remote: World) -> None:
    with ScriptedServer(says(models=["qwen3:8b", "llama3"])) as server:
        model = resolved(remote.adapter, server.environ(), "qwen3:9b")
        with pytest.raises(Refused, match="near names: qwen3:8b") as caught:
            asyncio.run(probed(model))
        assert caught.value.code == "unknown_model"
        if remote.adapter == "ollama":
            assert caught.value.hint == "`ollama pull qwen3:9b` fetches it"


def test_a_wrong_key_is_refused_by_the_probe() -> None:
    with ScriptedServer(says({"text": "ok"}, api_key="right")) as server:
        environ = {**server.environ(), "OPENAI_API_KEY": "wrong"}
        with pytest.raises(Refused, match="answered 401") as caught:
            asyncio.run(probed(resolved("openai", environ)))
        assert caught.value.code == "not_allowed"
        asyncio.run(probed(resolved("openai", server.environ())))


def test_the_window_is_the_models_own_under_the_cap() -> None:
    async def window(length: int) -> int | None:
        with ScriptedServer(says({"text": "ok"}, context_tokens=length)) as server:
            model = resolved("ollama", server.environ())
            assert model.context_tokens is None
            await probed(model)
            return model.context_tokens

    assert asyncio.run(window(8192)) == 8192
    assert asyncio.run(window(2 * CONTEXT_TOKENS_MAX)) == CONTEXT_TOKENS_MAX


def test_an_endpoint_that_speaks_something_else_fails_the_probe(remote: World) -> None:
    with odd_endpoint(200, b"<html>welcome</html>") as environ:
        with pytest.raises(Unavailable, match="malformed") as caught:
            asyncio.run(probed(resolved(remote.adapter, environ)))
        assert caught.value.hint


def test_an_openai_compatible_server_without_a_list_of_models_passes_the_probe() -> None:
    for answer in [(404, b"nothing here"), (200, b'{"data":[]}')]:
        with odd_endpoint(*answer) as environ:
            asyncio.run(probed(resolved("openai", environ)))
    with odd_endpoint(403, b"") as environ, pytest.raises(Refused, match="answered 403"):
        asyncio.run(probed(resolved("openai", environ)))


def test_a_server_that_knows_no_streams_is_understood_and_asked_once() -> None:
    """Small servers answer a request for a stream with one JSON body."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path": "a"}'},
    }
    message = {
        "role": "assistant",
        "content": "Reading.",
        "tool_calls": [call, {**call, "id": "c2"}],
    }
    reply = {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }

    async def ask(environ: Mapping[str, str]) -> ModelReply:
        model = resolved("openai", environ)
        try:
            return await model.complete(request())
        finally:
            await model.aclose()

    with odd_endpoint(200, json.dumps(reply).encode(), "application/json") as environ:
        got = asyncio.run(ask(environ))
    assert (got.text, got.finish_reason) == ("Reading.", "tool_calls")
    assert [(made.id, made.name, made.arguments) for made in got.calls] == [
        ("c1", "read_file", '{"path": "a"}'),
        ("c2", "read_file", '{"path": "a"}'),
    ]
    assert (got.usage.tokens_in, got.usage.tokens_out) == (7, 3)
    for body in (b'{"choices": 3}', b"[1]", b"{", b'{"choices": [{"index": 0}]}'):
        with odd_endpoint(200, body, "application/json") as environ:
            with pytest.raises(ModelError) as caught:
                asyncio.run(ask(environ))
            assert caught.value.failure_class == "transient"


def test_a_proxy_that_lists_no_models_passes_the_probe_of_ollama() -> None:
    with odd_endpoint(404, b'{"error": "not found"}') as environ:
        asyncio.run(probed(resolved("ollama", environ)))


def test_an_endpoint_that_never_answers_ends_the_probe(remote: World) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environ = dict.fromkeys(ADDRESSES, url)
        model = resolve(f"{remote.adapter}:scripted", environ=environ, redact=same, timeout_s=0.2)
        with pytest.raises(Unavailable, match=r"within 0\.2 s"):
            asyncio.run(probed(model))
    assert transport.PROBE_S_MAX < 5
