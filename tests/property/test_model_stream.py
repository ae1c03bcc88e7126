"""Where a stream is cut into pieces never changes the reply it decodes to."""

import contextlib
import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.adapters.models.ollama import ChatStream
from holdfast.adapters.models.replies import Draft
from holdfast.adapters.models.script import Script, ScriptedReply, parse_script
from holdfast.errors import ModelError
from holdfast.testing import dialects

TEXT = st.text(max_size=40)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["read_file", "write_file"]),
            "arguments": st.dictionaries(st.text(max_size=5), TEXT | st.integers() | st.none()),
        }
    ),
    max_size=3,
)
REPLIES = st.fixed_dictionaries({"text": TEXT, "thinking": TEXT, "calls": CALLS})
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["message", "content", "tool_calls", "function", "arguments", "done"]),
            inner,
        )
    ),
    max_leaves=8,
)
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


def scripted(reply: dict[str, object]) -> ScriptedReply:
    script: Script = parse_script({"rules": [{"replies": [reply]}]})
    return script.rules[0].replies[0]


def decode(pieces: list[bytes]) -> Draft:
    stream = ChatStream(str)
    for piece in pieces:
        stream.feed(piece)
    return stream.draft()


def cut(wire: bytes, borders: set[int]) -> list[bytes]:
    edges = [0, *sorted(border % (len(wire) + 1) for border in borders), len(wire)]
    return [wire[a:b] for a, b in pairwise(edges)]


@given(REPLIES, st.sets(st.integers(0, 5000)))
@example({"text": "\u2028\x85\r\n🦊", "thinking": "", "calls": []}, set(range(400)))
def test_borders_never_change_the_decoded_reply(
    reply: dict[str, object], borders: set[int]
) -> None:
    played = scripted(reply)
    wire = b"".join(dialects.ollama_frames(played, BODY))
    whole = decode([wire])
    assert decode(cut(wire, borders)) == whole
    assert whole.text == played.text
    assert whole.thinking == played.thinking
    assert [json.loads(call.arguments) for call in whole.calls] == [
        call.arguments for call in played.calls
    ]


@given(REPLIES, st.integers(0, 5000))
def test_a_stream_that_stops_early_is_never_a_reply(reply: dict[str, object], at: int) -> None:
    wire = b"".join(dialects.ollama_frames(scripted(reply), BODY)).rstrip(b"\n")
    with pytest.raises(ModelError):
        decode([wire[: at % len(wire)]])


@given(
    st.lists(st.binary(max_size=30) | JSON.map(lambda value: json.dumps(value).encode() + b"\n"))
)
def test_no_bytes_raise_anything_but_a_model_error(pieces: list[bytes]) -> None:
    with contextlib.suppress(ModelError):
        decode(pieces)
