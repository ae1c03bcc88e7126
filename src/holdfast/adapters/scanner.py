"""A second process that scans source files, so that a large tree is read on two cores.

Owns both sides of the pipe; what a scan finds is `codemap.scanned`. The child begins with the files
that show that there is enough to scan. It gets an empty environment and redacted texts, and ends
with the pipe, so with its parent. Invariant: the answer is that of `codemap.scanned`, which is
asked here where the child cannot be started or dies.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import IO

import msgspec

from holdfast.context.codemap import File, Scanned, scanned
from holdfast.context.words import Cuts

CHILD_CHARS_MIN = 1_000_000  # less is scanned before a child has begun
_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from holdfast.adapters.scanner import main; main()"
_HEAD_BYTES = 8
_FILES = msgspec.msgpack.Decoder(list[File])
_FOUND = msgspec.msgpack.Decoder(list[Scanned])


class Scanner:
    """Asked for files with redacted texts, answers what each holds. For one thread."""

    def __init__(self) -> None:
        self._chars = 0
        self._cuts = Cuts()
        self._child: subprocess.Popen[bytes] | None = None

    def __call__(self, files: Sequence[File]) -> list[Scanned]:
        try:
            self._chars += sum(len(text) for _, text, _ in files)
            if self._child is None and self._chars >= CHILD_CHARS_MIN:
                self._child = _start()
            if self._child is not None:
                return _asked(self._child, files)
        except (OSError, EOFError, msgspec.DecodeError):
            pass
        return scanned(files, self._cuts)

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()  # it holds nothing
            self._child.communicate()


def main() -> None:
    """The child: a frame of files in, a frame of what they hold out, until the pipe ends."""
    gc.disable()  # nothing that it makes holds itself
    os.nice(2)  # where cores are few the first process goes first: all waits for it
    cuts = Cuts()
    while (frame := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, msgspec.msgpack.encode(scanned(_FILES.decode(frame), cuts)))


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # our interpreter and our own text
        [sys.executable, "-I", "-S", "-c", _BOOT, *(path for path in sys.path if path)],
        env={},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pipesize=1_048_576,  # all that Linux allows: a thread waits at each piece that it reads
    )


def _asked(child: subprocess.Popen[bytes], files: Sequence[File]) -> list[Scanned]:
    assert child.stdin is not None
    assert child.stdout is not None
    _send(child.stdin, msgspec.msgpack.encode(files))
    answer = _receive(child.stdout)
    if answer is None:
        raise EOFError
    return _FOUND.decode(answer)


def _send(pipe: IO[bytes], frame: bytes) -> None:
    pipe.write(len(frame).to_bytes(_HEAD_BYTES, "big"))
    pipe.write(frame)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """The next frame; None when the pipe ends before it is whole."""
    size = int.from_bytes(pipe.read(_HEAD_BYTES), "big")
    frame = pipe.read(size)
    return frame if size and len(frame) == size else None
