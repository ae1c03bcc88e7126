"""Reading a reply never raises and always gives the same actions."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.actions import parse, read_object
from holdfast.agent.conversation import encode
from holdfast.agent.loop import Reply
from holdfast.domain.ports import ModelReply, ToolCall, ToolSpec

TOOLS = {"t": ToolSpec(name="t", description="", parameters={}, effect="pure")}
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
calls_like = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("tool", "name", "function", "arguments", "args"), values)
).map(json.dumps)
pieces = st.sampled_from(
    ["```json\n", "\n```", "<think>", "</think>", '{"tool": "t", "arguments": {}}', "{", "}", "\\"]
)
texts = st.lists(pieces | calls_like | st.text(max_size=20), max_size=8).map("".join)


@given(texts, st.lists(texts, max_size=2), st.sampled_from(["stop", "length", "tool_calls"]))
def test_any_reply_is_read_without_an_exception(text: str, raw: list[str], finish: str) -> None:
    calls = tuple(ToolCall(id=str(n), name="t", arguments=one) for n, one in enumerate(raw))
    reply = ModelReply(text=text, calls=calls, finish_reason=finish)  # type: ignore[arg-type]
    said = parse(reply, TOOLS, lambda spec, arguments: [])
    assert (said.kind == "calls") == bool(said.calls)
    again = parse(reply, TOOLS, lambda spec, arguments: [])
    assert encode(said) == encode(again)
    fresh = Reply(reply=reply, actions=said)
    assert msgspec.json.decode(encode(fresh), type=Reply) == fresh, "a fresh reply is not read back"


@given(st.dictionaries(st.text(max_size=8), values, max_size=4))
def test_an_object_that_is_one_is_never_repaired_into_another(value: dict[str, object]) -> None:
    assert read_object(json.dumps(value)) == value
