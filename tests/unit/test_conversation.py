"""A conversation as the journal sees it, and where two of them part."""

import pytest

from holdfast.agent.conversation import Conversation, encode, first_difference
from holdfast.domain.ports import ModelReply, ToolCall, ToolSpec

TOOL = ToolSpec(name="t", description="", parameters={}, effect="pure")


def talk() -> Conversation:
    return Conversation(model="x", seed=7, tools=[TOOL], system="be", user="do")


def test_the_first_delta_holds_what_the_take_began_with_and_later_ones_only_what_is_new() -> None:
    spoken = talk()
    first = spoken.delta()
    assert b'"seed":7' in first
    assert b'"after":0' in first
    call = ToolCall(id="1", name="t", arguments="{}")
    spoken.assistant(ModelReply(text="", calls=(call,)), [call], "t001/model")
    spoken.observe([(call, "seen", "t001/call:0")])
    spoken.user("go on", "t001")
    assert spoken.delta() == encode(
        {
            "after": 2,
            "messages": [
                {"role": "assistant", "content": "", "calls": [call]},
                {"role": "tool", "content": "seen", "call_id": "1", "tool": "t"},
                {"role": "user", "content": "go on"},
            ],
        }
    )
    assert spoken.delta() == b'{"after":5,"messages":[]}'
    assert spoken.origins == ["bundle", "bundle", "t001/model", "t001/call:0", "t001"]
    request = spoken.request()
    assert (request.model, request.seed, request.tools) == ("x", 7, (TOOL,))
    assert len(request.messages) == 5


@pytest.mark.parametrize(
    ("recorded", "now", "where"),
    [
        (b'{"a":"xyz"}', b'{"a":"xYz"}', ("a", 1)),
        (b'{"a":"xy"}', b'{"a":"xyz"}', ("a", 2)),
        ('{"a":"é1"}'.encode(), '{"a":"é2"}'.encode(), ("a", 2)),
        (b'{"m":[{"c":"a"},{"c":"b"}]}', b'{"m":[{"c":"a"},{"c":"z"}]}', ("m[1].c", 0)),
        (b'{"m":[1,2]}', b'{"m":[1]}', ("m[1]", 0)),
        (b'{"m":[1]}', b'{"m":[1,2]}', ("m[1]", 0)),
        (b'{"a":1}', b'{"b":1}', ("a", 0)),
        (b'{"a":123}', b'{"a":124}', ("a", 2)),
        (b'{"a":"1"}', b'{"a":1}', ("a", 0)),
        (b"12", b"13", ("", 1)),
        (b"no json", b"no jsin", ("", 5)),
        (b"no json", b"no", ("", 2)),
    ],
)
def test_a_difference_is_named_by_field_and_byte(
    recorded: bytes, now: bytes, where: tuple[str, int]
) -> None:
    assert first_difference(recorded, now) == where


def test_without_offered_tools_what_was_seen_is_one_text_of_the_user() -> None:
    spoken = Conversation(model="x", seed=7, tools=[], system="be", user="do")
    call = ToolCall(id="1", name="t", arguments="{}")
    spoken.assistant(ModelReply(text="call"), [call], "t001/model")
    spoken.observe([(call, "one", "a"), (call, "two", "b")])
    assert [message.calls for message in spoken.messages] == [(), (), (), ()]
    assert spoken.messages[-1].content == "t answered:\none\n\nt answered:\ntwo"
    assert spoken.origins[-1] == "a"
