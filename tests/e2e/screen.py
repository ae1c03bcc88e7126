"""The real command line on a real pseudo-terminal, whose screen is read the way a person sees it.

Owns the terminal: size, keys, what was written, and `pyte`, which plays the part of xterm. Tests
wait for what the screen shows, never for time to pass.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

from e2e.support import WAIT_S, clean_environ


class Screen:
    """A command line that runs on a terminal of `columns` × `rows`. A context manager."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        columns: int = 80,
        rows: int = 24,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self._mine, theirs = pty.openpty()
        self._set_size(columns, rows)
        plain = {
            key: value
            for key, value in clean_environ().items()
            if key not in ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR")
        }
        self.process = subprocess.Popen(
            words,
            cwd=cwd,
            env={**plain, "TERM": "xterm-256color", **(environ or {})},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)

    @property
    def text(self) -> str:
        """What stands on the screen now."""
        return "\n".join(row.rstrip() for row in self._screen.display).rstrip()

    @property
    def cursor_row(self) -> int:
        return int(self._screen.cursor.y)

    @property
    def cursor_shown(self) -> bool:
        return not self._screen.cursor.hidden

    def until(self, fact: Callable[[str], bool] | str, wait_s: float = WAIT_S) -> str:
        """Read until the screen shows a text, or a function of it holds; returns the screen."""
        holds = fact if callable(fact) else lambda shown: fact in shown
        deadline = time.monotonic() + wait_s
        while not holds(self.text):
            assert time.monotonic() < deadline, f"never shown: {fact}\n{self.text}"
            over = self.process.poll() is not None  # asked first: what it wrote is there by then
            assert self._read(0.2) or not over, f"ended without {fact}\n{self.text}"
        return self.text

    def end(self) -> int:
        """Read until the process has ended; returns its exit code."""
        deadline = time.monotonic() + WAIT_S
        while self._read(0.2) or self.process.poll() is None:
            assert time.monotonic() < deadline, f"never ended\n{self.text}"
        return self.process.returncode

    def press(self, keys: bytes) -> None:
        os.write(self._mine, keys)

    def resize(self, columns: int, rows: int) -> None:
        """As a window manager does: the size changes, then the foreground is told."""
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=WAIT_S)
        os.close(self._mine)

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, wait_s: float) -> bool:
        ready, _, _ = select.select([self._mine], [], [], wait_s)
        if not ready:
            return False
        try:
            got = os.read(self._mine, 65536)
        except OSError:  # the last process on the terminal is gone
            return False
        self.written += got
        self._stream.feed(got)
        return bool(got)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._mine, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
