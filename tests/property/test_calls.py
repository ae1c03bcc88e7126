"""Whatever a model says, reading it never raises, gives the same again, and can be recorded."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.tools import builtin_tools, check_arguments
from holdfast.agent.actions import CALLS_MAX, Actions, parse
from holdfast.agent.conversation import encode
from holdfast.domain.ports import ModelReply, ToolCall

TOOLS = {name: tool.spec for name, tool in builtin_tools(redact=lambda text: text).items()}
# Well-formed, as a sealed reply is; half characters still come in JSON escapes.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
PIECES = st.sampled_from(
    [
        "<tool_call>", "</tool_call>", "<function=read_file>", "</function>", "```json\n", "\n```",
        '<invoke name="write_file">', "</invoke>", "<parameter=path>", '<parameter name="path">',
        "</parameter>", "<arg_key>path</arg_key>", "<arg_value>a</arg_value>", "read_file", "{",
        '{"name": "read_file", "arguments": {"path": "a"}}', '"arguments": ', '"tool": "read_file"',
        "}", "[", "]", ",", '"', "\\", "\n", "\\ud800", "1e999", "<think>", "</think>", "x:invoke",
    ]
)  # fmt: skip
NOISE = st.lists(PIECES | TEXT, max_size=14).map("".join)
NAMES = st.sampled_from([*TOOLS, "nope", ""]) | TEXT
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = NOISE | st.dictionaries(st.sampled_from(["path", "content", "edits"]), VALUES).map(
    json.dumps
)


@settings(max_examples=400)
@given(
    text=NOISE,
    calls=st.lists(st.tuples(NAMES, ARGUMENTS), max_size=3),
    finish=st.sampled_from(["stop", "length", "tool_calls", "unknown"]),
)
def test_reading_a_reply_is_total_repeatable_and_recordable(
    text: str, calls: list[tuple[str, str]], finish: Any
) -> None:
    native = tuple(ToolCall(id="same", name=name, arguments=arguments) for name, arguments in calls)
    reply = ModelReply(text=text, calls=native, finish_reason=finish)
    actions = parse(reply, TOOLS, check_arguments)
    recorded = encode(actions)
    again = msgspec.json.decode(encode(reply), type=ModelReply)
    assert encode(parse(again, TOOLS, check_arguments)) == recorded
    assert encode(msgspec.json.decode(recorded, type=Actions)) == recorded
    assert len(actions.calls) <= CALLS_MAX + 1
    assert len({call.call.id for call in actions.calls}) == len(actions.calls)
    for call in actions.calls:
        assert call.problem or check_arguments(TOOLS[call.call.name], call.arguments) == []
        assert not (call.problem and call.arguments)


@settings(max_examples=200)
@given(path=TEXT.filter(bool), content=TEXT, cut=st.integers(1, 200))
def test_a_call_cut_anywhere_is_whole_or_is_not_performed(
    path: str, content: str, cut: int
) -> None:
    """The mutant this must catch: a parser that mends a cut call by closing what is open."""
    write = {"path": path, "content": content}
    for whole in (
        "<tool_call>" + json.dumps({"name": "write_file", "arguments": write}) + "</tool_call>",
        "```json\n" + json.dumps({"tool": "write_file", "arguments": write}) + "\n```",
    ):
        said = ModelReply(text=whole[: max(1, len(whole) - cut)])
        for call in parse(said, TOOLS, check_arguments).calls:
            assert call.problem or dict(call.arguments) == write
    native = (ToolCall(id="a", name="write_file", arguments=json.dumps(write)[:-cut]),)
    for call in parse(ModelReply(text="", calls=native), TOOLS, check_arguments).calls:
        assert call.problem or dict(call.arguments) == write
