"""The sum of a conversation's deltas is the conversation; a changed byte is found where it is."""

from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.agent.conversation import Conversation, encode, first_difference
from holdfast.domain.ports import Message, ModelReply, ToolCall, ToolSpec

TOOL = ToolSpec(name="t", description="", parameters={}, effect="pure")

moves = st.lists(
    st.tuples(st.sampled_from(["assistant", "tool", "user", "turn"]), st.text(max_size=12)),
    max_size=20,
)


@given(moves)
def test_deltas_add_up_to_the_whole_conversation(script: list[tuple[str, str]]) -> None:
    talk = Conversation(model="m", seed=1, tools=[TOOL], system="s", user="u")
    bodies = []
    for move, text in script:
        call = ToolCall(id=text, name="t", arguments=text)
        if move == "assistant":
            talk.assistant(ModelReply(text=text), [call] if text else [], "o")
        elif move == "tool":
            talk.observe([(call, text, "o")])
        elif move == "user":
            talk.user(text, "o")
        else:
            bodies.append(msgspec.json.decode(talk.delta()))
    bodies.append(msgspec.json.decode(talk.delta()))
    messages: list[Any] = []
    for body in bodies:
        assert body["after"] == len(messages)
        assert ("model" in body) == (body["after"] == 0)
        messages.extend(body["messages"])
    whole = msgspec.convert(messages, list[Message])
    assert tuple(whole) == talk.request().messages
    assert len(talk.origins) == len(whole)


@given(
    st.dictionaries(st.text("ab", min_size=1), st.text(max_size=9), min_size=1),
    st.data(),
)
def test_a_changed_field_is_found_at_its_first_byte(
    fields: dict[str, str], data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(fields)))
    other = data.draw(st.text(max_size=9))
    assume(other != fields[key])
    where, byte = first_difference(encode(fields), encode({**fields, key: other}))
    assert where == key
    one, two = fields[key].encode(), other.encode()
    assert one[:byte] == two[:byte]
    assert one[byte : byte + 1] != two[byte : byte + 1]
