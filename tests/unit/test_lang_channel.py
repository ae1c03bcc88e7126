"""Frames: what goes in comes out, and what is no frame is refused before it costs anything."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from holdfast.lang.channel import Channel, FrameTooLarge, ProtocolError


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Channel]]:
    raw, end = socket.socketpair()
    with raw, end:
        yield raw, Channel(end, bytes_max=10_000, items_max=100)


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def test_messages_arrive_whole_and_in_order_however_they_are_cut(
    pair: tuple[socket.socket, Channel],
) -> None:
    raw, channel = pair
    first, second = {"op": "a", "text": "\ud800é\n"}, {"op": "b", "number": 10**400}
    stream = b"".join(frame(json.dumps(message).encode()) for message in (first, second))
    sender = threading.Thread(
        target=lambda: [raw.sendall(stream[i : i + 1]) for i in range(len(stream))]
    )
    sender.start()
    assert channel.receive() == first
    assert channel.receive() == second
    sender.join()
    raw.close()
    assert channel.receive() is None


def test_a_channel_knows_whether_it_would_have_to_wait(
    pair: tuple[socket.socket, Channel],
) -> None:
    raw, channel = pair
    assert not channel.arrived
    raw.sendall(frame(b'{"op":"a"}') + frame(b'{"op":"b"}'))
    assert channel.arrived
    channel.receive()
    assert channel.arrived  # the second frame came with the first and waits in the buffer
    channel.receive()
    assert not channel.arrived
    raw.close()
    assert channel.arrived  # the end


def test_many_threads_may_send() -> None:
    one, other = socket.socketpair()
    with one, other:
        sender, receiver = Channel(one), Channel(other)
        body = "x" * 5_000
        threads = [
            threading.Thread(target=lambda n=n: sender.send({"op": str(n), "body": body}))
            for n in range(20)
        ]
        for thread in threads:
            thread.start()
        got = [receiver.receive() for _ in threads]
        for thread in threads:
            thread.join()
    assert sorted(int(message["op"]) for message in got if message) == list(range(20))
    assert all(message and message["body"] == body for message in got)


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (b"\xff\xff\xff\xff", "over the bound"),
        (b"\x00\x00\x27\x11", "over the bound"),
        (b"\x00\x00", "ended inside"),
        (b"\x00\x00\x00\x09{", "ended inside"),
        (frame(b"{}"), "no object with an op"),
        (frame(b"[]"), "no object with an op"),
        (frame(b'{"op":1}'), "no object with an op"),
        (frame(b""), "no JSON"),
        (frame(b'{"op":"a"}x'), "no JSON"),
        (frame(b'{"op":"\xff"}'), "no JSON"),
        (frame(b'{"op":"a","x":NaN}'), "no JSON"),
        (frame(b'{"op":"a","x":-Infinity}'), "no JSON"),
        (frame(b'{"op":"a","x":' + b"9" * 5_000 + b"}"), "no JSON"),
        (frame(b"[" * 101), "items"),
        (frame(b'{"op":"a","x":[' + b"1," * 100 + b"1]}"), "items"),
    ],
)
def test_what_is_no_frame_is_refused(
    pair: tuple[socket.socket, Channel], stream: bytes, reason: str
) -> None:
    raw, channel = pair
    raw.sendall(stream)
    raw.close()
    with pytest.raises(ProtocolError, match=reason):
        channel.receive()


def test_deep_nesting_is_a_refusal_and_not_a_crash() -> None:
    raw, end = socket.socketpair()
    with raw, end:
        body = b'{"op":"a","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        sender = threading.Thread(target=raw.sendall, args=(frame(body),))
        sender.start()
        with pytest.raises(ProtocolError, match="no JSON"):
            Channel(end).receive()
        sender.join()


def test_a_message_over_the_bound_is_not_sent_and_the_channel_goes_on(
    pair: tuple[socket.socket, Channel],
) -> None:
    raw, channel = pair
    with pytest.raises(FrameTooLarge):
        channel.send({"op": "a", "x": "y" * 10_000})
    channel.send({"op": "a", "x": "y" * 9_900})
    assert len(raw.recv(20_000)) > 9_900


def test_a_timeout_loses_nothing(pair: tuple[socket.socket, Channel]) -> None:
    raw, channel = pair
    body = frame(b'{"op":"a"}')
    raw.sendall(body[:6])
    channel.sock.settimeout(0.001)
    with pytest.raises(TimeoutError):
        channel.receive()
    raw.sendall(body[6:])
    channel.sock.settimeout(5)
    assert channel.receive() == {"op": "a"}


def test_a_peer_that_died_with_unread_bytes_reads_as_closed() -> None:
    raw, end = socket.socketpair()
    with end:
        channel = Channel(end)
        channel.send({"op": "never read"})
        raw.close()
        assert channel.receive() is None
