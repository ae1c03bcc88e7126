"""One suite for every model adapter: the same scripts over real HTTP, the same replies expected."""

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast.adapters.models import resolve, transport
from holdfast.adapters.models.anthropic import AnthropicModel
from holdfast.adapters.models.ollama import OllamaModel
from holdfast.adapters.models.openai import OpenAICompatibleModel
from holdfast.adapters.models.replies import canonical_json
from holdfast.domain.ports import (
    Message,
    Model,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolSpec,
    Usage,
)
from holdfast.errors import ModelError, Refused, Unavailable
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
    ) -> T:
        async def run(spec: str, environ: Mapping[str, str]) -> T:
            model = resolve(
                spec, environ=environ, redact=redact, timeout_s=timeout_s, prices_file=prices_file
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


@pytest.fixture(params=ADAPTERS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


@pytest.fixture(params=OVER_HTTP)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(request.param, tmp_path)


def test_a_text_reply_arrives_whole_with_its_usage(world: World) -> None:
    script = says({"text": "All done.", "usage": {"in": 120, "out": 7}})
    [reply] = world.ask(script)
    assert (reply.text, reply.thinking, reply.calls) == ("All done.", "", ())
    assert reply.finish_reason == "stop"
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (120, 7)
    assert reply.usage.reported
    assert reply.model == "scripted"


def test_native_tool_calls_arrive_in_order_with_distinct_ids(world: World) -> None:
    calls = [
        {"name": "read_file", "arguments": {"path": "a.py", "deep": {"z": 1, "ä": [None, True]}}},
        {"name": "read_file", "arguments": {}},
    ]
    [reply] = world.ask(says({"text": "Looking.", "calls": calls}))
    assert [call.name for call in reply.calls] == ["read_file", "read_file"]
    assert [json.loads(call.arguments) for call in reply.calls] == [
        call["arguments"] for call in calls
    ]
    assert reply.calls[0].arguments == '{"deep":{"z":1,"ä":[null,true]},"path":"a.py"}'
    assert len({call.id for call in reply.calls}) == 2
    assert all(call.id for call in reply.calls)
    assert reply.finish_reason == "tool_calls"


def test_a_malformed_call_arrives_as_the_model_wrote_it(world: World) -> None:
    [reply] = world.ask(says({"calls": [{"name": "read_file", "arguments": '{"path": '}]}))
    assert reply.calls[0].arguments == '{"path": '


def test_thinking_is_kept_apart_from_text(world: World) -> None:
    [reply] = world.ask(says({"thinking": "Hmm, let me see.", "text": "Yes."}))
    assert (reply.thinking, reply.text) == ("Hmm, let me see.", "Yes.")


@pytest.mark.parametrize("chunk_bytes", range(1, 8))
def test_a_chunk_border_inside_a_character_changes_nothing(remote: World, chunk_bytes: int) -> None:
    call = {"name": "read_file", "arguments": {"path": UNICODE}}
    turn = {"text": UNICODE, "thinking": UNICODE, "calls": [call]}
    [reply] = remote.ask(says(turn, chunk_bytes=chunk_bytes))
    assert reply.text == UNICODE
    assert reply.thinking == UNICODE
    assert json.loads(reply.calls[0].arguments) == {"path": UNICODE}


def test_a_conversation_with_tools_goes_on_turn_by_turn(world: World) -> None:
    script = says(
        {"text": "Let me look.", "calls": [{"name": "read_file", "arguments": {"path": "a"}}]},
        {"text": ""},
        {"text": "Done."},
    )
    call = ToolCall(id="call_x", name="read_file", arguments='{"path":"a"}')
    second = (
        Message(role="assistant", content="Let me look.", calls=(call,)),
        Message(role="tool", content="bytes", call_id="call_x", tool="read_file"),
    )
    third = (*second, Message(role="assistant", content=""), Message(role="user", content="Go on"))
    replies = world.ask(script, request(), request(*second), request(*third))
    assert [reply.text for reply in replies] == ["Let me look.", "", "Done."]
    if world.server is not None:
        assert [call.status for call in world.server.calls] == [200, 200, 200]
        assert [call.turn for call in world.server.calls] == [0, 1, 2]


def test_every_option_of_a_request_is_one_the_official_client_knows(world: World) -> None:
    asked = request(temperature=0.5, seed=7, output_tokens_max=99)
    [reply] = world.ask(says({"text": "ok"}), asked)
    assert reply.text == "ok"


def test_a_provider_that_sends_no_usage_is_estimated_and_says_so(world: World) -> None:
    text = "one two three four five six seven eight nine ten"
    [reply] = world.ask(says({"text": text, "usage": {"reported": False}}))
    if world.adapter == "anthropic":  # the protocol has no reply without its counts
        assert reply.usage.reported
        return
    assert not reply.usage.reported
    assert reply.usage.tokens_out == 11
    assert reply.usage.tokens_in > 10


@pytest.mark.parametrize("adapter", OVER_HTTP)
def test_counts_of_zero_are_no_counts(adapter: str, tmp_path: Path) -> None:
    """An independent server reports zeros in two dialects: money is not spent by not counting."""
    script = says({"text": "one two three", "usage": {"in": 0, "out": 0}})
    [reply] = World(adapter, tmp_path).ask(script)
    assert not reply.usage.reported
    assert reply.usage.tokens_in > 10
    assert reply.usage.tokens_out > 1


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


def test_cached_tokens_and_money_are_counted_exactly(world: World, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    row = '{ in = "1.25", out = "10", cached = "0.1255" }\n'
    prices.write_text(f'"{world.adapter}:*" = {row}', encoding="utf-8")
    script = says({"text": "ok", "usage": {"in": 1000, "out": 10, "cached": 1}})
    [reply] = world.ask(script, prices_file=prices)
    cached = 0 if world.adapter == "ollama" else 1  # Ollama does not say
    assert reply.usage.tokens_cached == cached
    # 999 × 1250 + 1 × 125.5 + 10 × 10000 = 1,348,875.5 → half up
    assert reply.usage.cost_nusd == (1_350_000 if cached == 0 else 1_348_876)


def test_free_models_cost_zero_and_unknown_ones_nothing_known(world: World) -> None:
    [reply] = world.ask(says({"text": "ok"}))
    assert reply.usage.cost_nusd == (None if world.adapter in ("openai", "anthropic") else 0)


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


def test_secrets_are_redacted_before_anyone_sees_the_reply(world: World) -> None:
    def redact(text: str) -> str:
        return text.replace("sk-secret", "[redacted]")

    escaped = '{"path":"s\\u006b-secret"}'
    calls = [
        {"name": "read_file", "arguments": {"path": "sk-secret"}},
        {"name": "read_file", "arguments": escaped},
    ]
    turn = {"text": "key sk-secret", "thinking": "sk-secret!", "calls": calls}
    [reply] = world.ask(says(turn), redact=redact)
    assert reply.text == "key [redacted]"
    assert reply.thinking == "[redacted]!"
    assert [json.loads(call.arguments) for call in reply.calls] == [{"path": "[redacted]"}] * 2


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


def test_a_reply_the_provider_filtered_says_so(world: World) -> None:
    [reply] = world.ask(says({"text": "", "finish_reason": "content_filter"}))
    # Ollama filters nothing and has no word for it.
    assert reply.finish_reason == ("stop" if world.adapter == "ollama" else "content_filter")


def test_a_reply_cut_at_the_output_limit_says_so(world: World) -> None:
    [reply] = world.ask(says({"text": "half a sent", "finish_reason": "length"}))
    assert reply.finish_reason == "length"


def test_a_good_endpoint_passes_the_probe(world: World) -> None:
    assert world.talk(says({"text": "ok"}), lambda model: model.probe()) is None


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
def test_a_reply_stops_at_the_size_limit(remote: World, reply_bytes_max: int) -> None:
    with ScriptedServer(says({"text": "word " * 5_000})) as server:
        environ = server.environ()
        common: dict[str, Any] = {
            "redact": same,
            "timeout_s": 30.0,
            "price": None,
            "reply_bytes_max": reply_bytes_max,
        }

        async def call() -> str:
            model: Model = (
                OllamaModel("scripted", host=environ["OLLAMA_HOST"], **common)
                if remote.adapter == "ollama"
                else OpenAICompatibleModel(
                    "scripted", base_url=environ["OPENAI_BASE_URL"], api_key="", **common
                )
                if remote.adapter == "openai"
                else AnthropicModel(
                    "scripted", base_url=environ["ANTHROPIC_BASE_URL"], api_key="", **common
                )
            )
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


def resolved(adapter: str, environ: Mapping[str, str], name: str = "scripted") -> Model:
    return resolve(f"{adapter}:{name}", environ=environ, redact=same, timeout_s=5)


async def probed(model: Model) -> None:
    try:
        await model.probe()
    finally:
        await model.aclose()


def test_an_unknown_model_is_refused_with_near_names(remote: World) -> None:
    with ScriptedServer(says(models=["qwen3:8b", "llama3"])) as server:
        model = resolved(remote.adapter, server.environ(), "qwen3:9b")
        with pytest.raises(Refused, match="near names: qwen3:8b") as caught:
            asyncio.run(probed(model))
        assert caught.value.code == "unknown_model"
        if remote.adapter == "ollama":
            assert caught.value.hint == "`ollama pull qwen3:9b` fetches it"


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


def test_a_wrong_key_is_refused_by_the_probe() -> None:
    with ScriptedServer(says({"text": "ok"}, api_key="right")) as server:
        environ = {**server.environ(), "OPENAI_API_KEY": "wrong"}
        with pytest.raises(Refused, match="answered 401") as caught:
            asyncio.run(probed(resolved("openai", environ)))
        assert caught.value.code == "not_allowed"
        asyncio.run(probed(resolved("openai", server.environ())))


def test_the_window_is_the_models_own_under_the_cap() -> None:
    async def window(server: ScriptedServer, cap: int) -> int | None:
        model = resolve(
            "ollama:scripted",
            environ=server.environ(),
            redact=same,
            timeout_s=5,
            context_tokens_max=cap,
        )
        assert model.context_tokens is None
        await probed(model)
        return model.context_tokens

    with ScriptedServer(says({"text": "ok"}, context_tokens=8192)) as server:
        assert asyncio.run(window(server, 32_768)) == 8192
        assert asyncio.run(window(server, 4096)) == 4096


def test_usage_of_equal_requests_is_equal_in_every_adapter(tmp_path: Path) -> None:
    script = says({"text": "ok", "usage": {"in": 3, "out": 4}})
    replies = [World(adapter, tmp_path).ask(script)[0] for adapter in ADAPTERS]
    assert {(each.usage.tokens_in, each.usage.tokens_out) for each in replies} == {(3, 4)}
    assert replies[0].usage + Usage() == replies[0].usage


class OddEndpoint(BaseHTTPRequestHandler):
    """Answers every request with the status and body its server carries."""

    def do_GET(self) -> None:
        status, body, kind = self.server.answer  # type: ignore[attr-defined]  set by `odd_endpoint`
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        if kind:
            self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@contextmanager
def odd_endpoint(status: int, body: bytes, kind: str = "") -> Iterator[dict[str, str]]:
    with HTTPServer(("127.0.0.1", 0), OddEndpoint) as server:
        server.answer = (status, body, kind)  # type: ignore[attr-defined]  read by `OddEndpoint`
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield dict.fromkeys(ADDRESSES, url)
        finally:
            server.shutdown()
            thread.join()


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


def test_a_redirect_is_not_followed(remote: World) -> None:
    async def call(model: Model) -> None:
        try:
            await model.complete(request())
        finally:
            await model.aclose()

    with odd_endpoint(307, b"") as environ, pytest.raises(ModelError) as caught:
        asyncio.run(call(resolved(remote.adapter, environ)))
    assert (caught.value.failure_class, caught.value.code) == ("logic", "bad_endpoint")


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


def test_what_a_cache_saves_and_costs_is_counted_and_priced(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    row = '{ in = "2", out = "10", cached = "0.1", written = "2.5" }\n'
    prices.write_text(f'"anthropic:scripted" = {row}', encoding="utf-8")
    script = says({"text": "ok", "usage": {"in": 1000, "out": 10, "cached": 600, "written": 300}})
    [reply] = World("anthropic", tmp_path).ask(script, prices_file=prices)
    usage = reply.usage
    assert (usage.tokens_in, usage.tokens_cached, usage.tokens_written) == (1000, 600, 300)
    # 100 x 2000 + 600 x 100 + 300 x 2500 + 10 x 10000
    assert usage.cost_nusd == 1_110_000


def test_tokens_spent_on_thinking_are_kept(tmp_path: Path) -> None:
    for adapter in ("openai", "scripted"):
        script = says({"text": "ok", "usage": {"out": 10, "reasoning": 7}})
        [reply] = World(adapter, tmp_path).ask(script)
        assert reply.usage.tokens_reasoning == 7


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


def test_a_hosted_provider_is_one_row_of_a_table() -> None:
    async def call(environ: Mapping[str, str]) -> ModelReply:
        model = resolved("deepseek", environ)
        try:
            await model.probe()
            return await model.complete(request())
        finally:
            await model.aclose()

    with ScriptedServer(says({"text": "ok"}), strict=True) as server:
        environ = {"DEEPSEEK_API_KEY": "k", "DEEPSEEK_BASE_URL": f"{server.url}/v1"}
        assert asyncio.run(call(environ)).text == "ok"
    with ScriptedServer(says({"status": 503}), strict=True) as server:
        environ = {"DEEPSEEK_API_KEY": "k", "DEEPSEEK_BASE_URL": f"{server.url}/v1"}
        with pytest.raises(ModelError) as caught:
            asyncio.run(call(environ))
        assert (caught.value.code, len(server.calls)) == ("overloaded", 1)
