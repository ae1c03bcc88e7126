"""Frames between the pool and a worker: four bytes of length, then one JSON object.

Owns framing, bounds and strict parsing. Knows no message beyond that it is an object whose "op" is
a string; `worker` and `pool` say what the ops mean. No pickle, no code, no references: what comes
out of a worker is hostile input, and the worst a frame can do is be refused.

Invariants: a frame longer than the bound is refused before it is read; a frame with more items than
the bound is refused before it is parsed (a list takes twenty times its text in memory); numbers
that JSON has not, deep nesting and broken text are refused as `ProtocolError`, whatever the parser
called them. Sending is safe from many threads, receiving belongs to one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import Any, NoReturn

FRAME_BYTES_MAX = 64_000_000
FRAME_ITEMS_MAX = 2_000_000
_READ_BYTES = 32_768

Message = dict[str, Any]
HURRY: Message = {"op": "hurry"}  # somebody waits for this worker


class ProtocolError(Exception):
    """The other side sent something that is no frame; the message says what, never quotes it."""


class FrameTooLarge(Exception):
    """A message is over the bound of the channel; nothing was sent."""


class Channel:
    """One end of a stream socket. `bytes_max` and `items_max` bound what is sent and accepted."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        bytes_max: int = FRAME_BYTES_MAX,
        items_max: int = FRAME_ITEMS_MAX,
    ) -> None:
        self.sock = sock
        self.bytes_max, self.items_max = bytes_max, items_max
        self._buffer = bytearray()
        self._sending = threading.Lock()

    def send(self, message: Message) -> None:
        """Write one frame. FrameTooLarge before a byte is sent; OSError if nobody reads."""
        body = _ENCODER.encode(message).encode("ascii")
        if len(body) > self.bytes_max:
            raise FrameTooLarge(f"{len(body)} bytes of at most {self.bytes_max}")
        with self._sending:
            self.sock.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self) -> Message | None:
        """The next message, or None when the other end has closed between two frames.

        Raises ProtocolError for anything else than a frame and TimeoutError by the socket's own
        timeout, after which what has arrived is kept.
        """
        if not self._buffer:
            piece = self._read(_READ_BYTES)
            if not piece:
                return None
            if len(piece) - 4 == int.from_bytes(piece[:4], "big") <= self.bytes_max:
                return _parse(piece[4:], self.items_max)  # the usual case: one whole frame
            self._buffer += piece
        self._have(4)
        size = int.from_bytes(self._buffer[:4], "big")
        if size > self.bytes_max:
            raise ProtocolError(f"a frame of {size} bytes is over the bound of {self.bytes_max}")
        self._have(4 + size)
        body = bytes(self._buffer[4 : 4 + size])
        del self._buffer[: 4 + size]
        return _parse(body, self.items_max)

    @property
    def quiet(self) -> bool:
        """Whether everything that arrived was part of a frame that was received."""
        return not self._buffer

    @property
    def arrived(self) -> bool:
        """Whether a receive would find something at once, be it the end of the stream.

        For a socket without a timeout, which Python would wait for; polling is beyond the walls.
        """
        try:
            self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return bool(self._buffer)
        return True

    def hang_up(self) -> None:
        """End the stream both ways, so that whoever reads or writes it stops; any thread may."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.sock.close()

    def _have(self, size: int) -> None:
        """Read until the buffer holds `size` bytes."""
        while len(self._buffer) < size:
            piece = self._read(max(_READ_BYTES, size - len(self._buffer)))
            if not piece:
                raise ProtocolError("the stream ended inside a frame")
            self._buffer += piece

    def _read(self, size: int) -> bytes:
        """What has arrived, at most `size` bytes; empty at the end of the stream."""
        try:
            return self.sock.recv(size)
        except ConnectionResetError:
            return b""


def _parse(body: bytes, items_max: int) -> Message:
    items = body.count(b",") + body.count(b"[") + body.count(b"{")
    if items > items_max:
        raise ProtocolError(f"a frame of {items} items is over the bound of {items_max}")
    try:
        message = _DECODER.decode(body.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a frame is no JSON ({type(error).__name__})") from None
    if type(message) is not dict or type(message.get("op")) is not str:
        raise ProtocolError("a frame is no object with an op")
    return message


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"), check_circular=False)
