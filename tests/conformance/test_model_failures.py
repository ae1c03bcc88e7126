"""What goes wrong between us and a model means the same from every adapter, and is asked once."""

import asyncio
import json
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.adapters.models import transport
from holdfast.domain.ports import (
    Message,
    Model,
)
from holdfast.errors import ModelError, Unavailable
from holdfast.testing import ScriptedServer
from model_world import (
    ADDRESSES,
    World,
    odd_endpoint,
    request,
    resolved,
    says,
)


def test_a_reply_cut_off_in_the_middle_is_transient(world: World) -> None:
    error = world.fails(says({"text": "a long reply " * 50, "cut_after_bytes": 400}))
    assert (error.failure_class, error.code) == ("transient", "connection_lost")


def test_a_reply_cut_off_before_its_first_byte_is_transient(world: World) -> None:
    error = world.fails(says({"text": "never", "cut_after_bytes": 0}))
    assert (error.failure_class, error.code) == ("transient", "connection_lost")


@pytest.mark.parametrize(
    "body", ["<html>busy</html>", '{"half": ', "[1, 2]", "data: {nope\n\n", ""]
)
def test_a_malformed_body_is_transient(world: World, body: str) -> None:
    error = world.fails(says({"malformed": body}))
    assert error.failure_class == "transient"
    assert error.code in ("malformed_reply", "connection_lost")


@pytest.mark.parametrize(
    ("status", "failure_class", "code"),
    [
        (400, "logic", "bad_request"),
        (401, "policy", "not_allowed"),
        (402, "policy", "quota_exhausted"),
        (403, "policy", "not_allowed"),
        (404, "logic", "unknown_model"),
        (408, "transient", "timeout"),
        (413, "logic", "bad_request"),
        (422, "logic", "bad_request"),
        (429, "transient", "rate_limited"),
        (500, "unknown", "server_error"),
        (502, "transient", "overloaded"),
        (503, "transient", "overloaded"),
        (504, "transient", "timeout"),
        (529, "transient", "overloaded"),
    ],
)
def test_a_status_means_the_same_at_every_endpoint(
    world: World, status: int, failure_class: str, code: str
) -> None:
    error = world.fails(says({"status": status}))
    assert (error.failure_class, error.code) == (failure_class, code)
    assert error.retryable is (failure_class == "transient")


def test_one_call_is_one_request_even_when_it_fails(remote: World) -> None:
    remote.fails(says({"status": 503}))
    assert remote.server is not None
    assert len(remote.server.calls) == 1


def test_retry_after_in_seconds_is_passed_on(world: World) -> None:
    assert world.fails(says({"status": 429, "retry_after": 7})).retry_after_s == 7.0


def test_retry_after_as_a_date_is_passed_on(remote: World) -> None:
    far = "Fri, 31 Dec 9999 23:59:59 GMT"
    assert remote.fails(says({"status": 429, "retry_after": far})).retry_after_s == 86_400.0
    past = "Thu, 01 Jan 1970 00:00:00 GMT"
    assert remote.fails(says({"status": 429, "retry_after": past})).retry_after_s == 0.0


def test_no_retry_after_is_no_wish(world: World) -> None:
    assert world.fails(says({"status": 429})).retry_after_s is None


def test_a_fault_with_times_gives_way_to_the_normal_reply(world: World) -> None:
    async def three(model: Model) -> list[str]:
        told = []
        for _ in range(3):
            try:
                told.append((await model.complete(request())).text)
            except ModelError as error:
                told.append(error.code)
        return told

    script = says({"text": "fine", "status": 503, "times": 2})
    assert world.talk(script, three) == ["overloaded", "overloaded", "fine"]


def test_a_slow_reply_ends_at_the_limit(world: World) -> None:
    error = world.fails(says({"text": "late", "delay_s": 30}), timeout_s=0.3)
    assert (error.failure_class, error.code) == ("transient", "timeout")


def test_a_slow_reply_within_the_limit_arrives(world: World) -> None:
    [reply] = world.ask(says({"text": "late", "delay_s": 0.05}), timeout_s=30)
    assert reply.text == "late"


def test_the_end_of_the_script_is_a_failure_that_names_the_rule(world: World) -> None:
    script = {"rules": [{"when": "failing", "replies": []}]}
    error = world.fails(script)
    assert error.failure_class == "unknown"
    assert "script_exhausted: rule 0 (when 'failing')" in error.message


def test_secrets_are_redacted_in_errors_too(world: World) -> None:
    body = json.dumps({"error": {"message": "Incorrect API key provided: sk-secret"}})
    error = world.fails(
        says({"status": 401, "body": body}), redact=lambda text: text.replace("sk-secret", "[…]")
    )
    assert "sk-secret" not in str(error)
    assert "Incorrect API key provided: […]" in error.message


@pytest.mark.parametrize(
    ("message", "code", "failure_class"),
    [
        ("This model's maximum context length is 8192 tokens", "context_too_long", "logic"),
        ("you exceeded your quota: insufficient_quota", "quota_exhausted", "policy"),
        ("blocked by content_filter", "content_filter", "policy"),
    ],
)
def test_what_the_server_says_outweighs_its_status(
    world: World, message: str, code: str, failure_class: str
) -> None:
    body = json.dumps({"error": {"message": message, "type": None, "code": None}})
    error = world.fails(says({"status": 429, "body": body}))
    assert (error.code, error.failure_class) == (code, failure_class)


@pytest.mark.parametrize("adapter", ["openai", "scripted"])
def test_a_call_that_was_announced_and_lost_is_malformed(adapter: str, tmp_path: Path) -> None:
    error = World(adapter, tmp_path).fails(says({"text": "", "finish_reason": "tool_calls"}))
    assert (error.failure_class, error.code) == ("transient", "malformed_reply")


def test_an_error_inside_a_stream_is_not_taken_for_a_reply(remote: World) -> None:
    line = json.dumps({"error": "the runner stopped"})
    body = {"type": "error", "error": {"type": "api_error", "message": "the runner stopped"}}
    streams = {
        "ollama": line,
        "openai": f"data: {line}\n\n",
        "anthropic": f"event: error\ndata: {json.dumps(body)}\n\n",
    }
    error = remote.fails(says({"malformed": streams[remote.adapter]}))
    assert (error.failure_class, error.code) == ("unknown", "server_error")
    assert "the runner stopped" in error.message


def test_an_error_inside_a_stream_keeps_the_meaning_of_its_code(tmp_path: Path) -> None:
    line = json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})
    error = World("openai", tmp_path).fails(says({"malformed": f"data: {line}\n\n"}))
    assert (error.failure_class, error.code) == ("transient", "rate_limited")


@pytest.mark.parametrize("reply_bytes_max", [2_000, 2_000_000])
def test_a_reply_stops_at_the_size_limit(
    remote: World, reply_bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "REPLY_BYTES_MAX", reply_bytes_max)
    with ScriptedServer(says({"text": "word " * 5_000})) as server:

        async def call() -> str:
            model = resolved(remote.adapter, server.environ())
            try:
                return (await model.complete(request())).text
            finally:
                await model.aclose()

        if reply_bytes_max == 2_000:
            with pytest.raises(ModelError, match="larger than 2000 bytes") as caught:
                asyncio.run(call())
            assert (caught.value.failure_class, caught.value.code) == ("logic", "reply_too_large")
        else:
            assert asyncio.run(call()) == "word " * 5_000


def test_a_conversation_beyond_the_window_is_refused_before_it_is_truncated() -> None:
    long = request(Message(role="user", content="word " * 500))

    async def call(environ: Mapping[str, str]) -> str:
        model = resolved("ollama", environ)
        try:
            return (await model.complete(long)).text
        finally:
            await model.aclose()

    with ScriptedServer(says({"text": "ok"}, context_tokens=256)) as server:
        with pytest.raises(ModelError, match="window of 256") as caught:
            asyncio.run(call(server.environ()))
        assert (caught.value.failure_class, caught.value.code) == ("logic", "context_too_long")
        assert server.calls == ()
    with ScriptedServer(says({"text": "ok"}, context_tokens=1024)) as server:
        assert asyncio.run(call(server.environ())) == "ok"


def test_an_unknown_model_fails_the_call_as_logic(remote: World) -> None:
    with ScriptedServer(says(models=["llama3"])) as server:
        model = resolved(remote.adapter, server.environ())

        async def call() -> None:
            try:
                await model.complete(request())
            finally:
                await model.aclose()

        with pytest.raises(ModelError) as caught:
            asyncio.run(call())
        assert (caught.value.failure_class, caught.value.code) == ("logic", "unknown_model")


def test_a_refused_connection_is_transient_and_fails_the_probe(remote: World) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        environ = dict.fromkeys(ADDRESSES, url)

        async def call() -> None:
            model = resolved(remote.adapter, environ)
            with pytest.raises(ModelError) as caught:
                await model.complete(request())
            assert (caught.value.failure_class, caught.value.code) == ("transient", "unreachable")
            with pytest.raises(Unavailable, match="unreachable") as down:
                await model.probe()
            assert down.value.hint
            await model.aclose()

        asyncio.run(call())


def test_a_redirect_is_not_followed(remote: World) -> None:
    async def call(model: Model) -> None:
        try:
            await model.complete(request())
        finally:
            await model.aclose()

    with odd_endpoint(307, b"") as environ, pytest.raises(ModelError) as caught:
        asyncio.run(call(resolved(remote.adapter, environ)))
    assert (caught.value.failure_class, caught.value.code) == ("logic", "bad_endpoint")


def test_a_stream_that_ends_politely_before_the_model_was_done_is_cut(remote: World) -> None:
    delta = {"index": 0, "delta": {"content": "half"}, "finish_reason": None}
    event = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    body = (
        json.dumps({"message": {"content": "half"}}) + "\n"
        if remote.adapter == "ollama"
        else f"data: {json.dumps({**event, 'choices': [delta]})}\n\n"
    )
    error = remote.fails(says({"malformed": body}))
    assert (error.failure_class, error.code) == ("transient", "connection_lost")
