"""One suite for every model adapter: the same scripts over real HTTP, the same replies expected."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.ports import Message, ToolCall, Usage
from model_world import ADAPTERS, OVER_HTTP, UNICODE, World, request, says


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


def test_a_reply_the_provider_filtered_says_so(world: World) -> None:
    [reply] = world.ask(says({"text": "", "finish_reason": "content_filter"}))
    # Ollama filters nothing and has no word for it.
    assert reply.finish_reason == ("stop" if world.adapter == "ollama" else "content_filter")


@pytest.mark.parametrize("adapter", OVER_HTTP)
def test_a_whole_reply_says_what_its_stream_says(adapter: str, tmp_path: Path) -> None:
    call = {"name": "read_file", "arguments": {"path": "a"}}
    usage = {"in": 30, "out": 4, "cached": 7}
    turn = {"text": "Let me 🦊 look.", "thinking": "hm", "calls": [call, call], "usage": usage}
    world = World(adapter, tmp_path)
    assert world.ask(says(turn), stream=False) == world.ask(says(turn))


@pytest.mark.parametrize("adapter", OVER_HTTP)
@pytest.mark.parametrize(
    ("turn", "code"),
    [
        ({"text": "no", "status": 429, "retry_after": 7}, "rate_limited"),
        ({"text": "no", "malformed": '{"choices": ['}, "malformed_reply"),
    ],
)
def test_a_whole_reply_fails_as_its_stream_does(
    adapter: str, turn: dict[str, Any], code: str, tmp_path: Path
) -> None:
    error = World(adapter, tmp_path).fails(says(turn), stream=False)
    assert (error.code, error.failure_class) == (code, "transient")


def test_a_reply_cut_at_the_output_limit_says_so(world: World) -> None:
    [reply] = world.ask(says({"text": "half a sent", "finish_reason": "length"}))
    assert reply.finish_reason == "length"


def test_usage_of_equal_requests_is_equal_in_every_adapter(tmp_path: Path) -> None:
    script = says({"text": "ok", "usage": {"in": 3, "out": 4}})
    replies = [World(adapter, tmp_path).ask(script)[0] for adapter in ADAPTERS]
    assert {(each.usage.tokens_in, each.usage.tokens_out) for each in replies} == {(3, 4)}
    assert replies[0].usage + Usage() == replies[0].usage


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
