"""Bounded capture of a stream: both ends kept, every byte counted, redacted before it is cut.

A stream of any size costs a fixed amount of memory: a head and a tail window, each larger by a
margin than the part that will be shown. The windows are redacted whole and only then cut, and the
margin at the cut side is dropped, so a secret shorter than the margin is either inside a window and
redacted or lies within what is dropped; it never shows in part. Text that leaves is valid UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable

SECRET_BYTES_MAX = 16 * 1024

Redact = Callable[[str], str]


class Capture:
    """Feed chunks with `add`, read the text once with `text`. `size` counts all bytes."""

    def __init__(self, bytes_max: int) -> None:
        self.size = 0
        self._shown_max = bytes_max
        self._window = bytes_max // 2 + SECRET_BYTES_MAX
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        room = self._window - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * self._window:
            del self._tail[: -self._window]

    def text(self, redact: Redact) -> str:
        """At most `bytes_max` bytes of redacted text, and between the ends how much was cut."""
        if self.size == len(self._head) + len(self._tail):
            return cut_middle(redact(_decode(self._head + self._tail)), self._shown_max)
        half = self._shown_max // 2
        head = redact(_decode(self._head)).encode()[:-SECRET_BYTES_MAX][:half]
        tail = redact(_decode(self._tail[-self._window :])).encode()[SECRET_BYTES_MAX:][-half:]
        return _joined(head, self.size - len(head) - len(tail), tail)


def cut_middle(text: str, bytes_max: int) -> str:
    """`text`, which is redacted already, with its middle cut out when it is over `bytes_max`."""
    data = text.encode()
    if len(data) <= bytes_max:
        return text
    half = bytes_max // 2
    return _joined(data[:half], len(data) - 2 * half, data[len(data) - half :])


def cut_end(text: str, bytes_max: int) -> str:
    """The longest beginning of `text` that fits `bytes_max` bytes of UTF-8."""
    return text.encode()[:bytes_max].decode(errors="ignore")


def _joined(head: bytes, cut_bytes: int, tail: bytes) -> str:
    ends = (head.decode(errors="ignore"), tail.decode(errors="ignore"))
    return f"\n[... {cut_bytes} bytes cut ...]\n".join(ends)


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace")
