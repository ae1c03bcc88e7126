"""What a tool wrote: Python prints, child processes and, on request, C-level writes.

Owns capture per tool call, exact for tools that run in parallel: Python's streams are proxied by
context variable, and children started by `subprocess` with inherited streams get pipes of the tool
that started them. With `descriptors` the process's own file descriptors 1 and 2 are redirected as
well; those exist once, so such tools wait for each other. Everything still reaches the real
streams. Does not own what is done with the text (`recorder`).

Invariants: a stream's text is redacted, then cut, to at most 10,240 bytes of valid UTF-8 with head
and tail; what is held in memory is bounded; output survives the tool's exception; a child that
outlives its tool keeps a working stream. Not covered: a thread the tool starts without its context,
and code that holds the interpreter lock while it writes more than a pipe holds at C level.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import selectors
import subprocess
import sys
import threading
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

from holdfast.trace.redact import MARGIN, Redactor

STREAM_BYTES_MAX = 10_240
_HELD = STREAM_BYTES_MAX + 2 * MARGIN
_DRAIN_S = 5.0
_READ_BYTES = 65_536

_active: ContextVar[Capture | None] = ContextVar("agentlog_tool", default=None)


class Kept(NamedTuple):
    """A stream's text. `size` and `sha256` (of the original bytes) are set where it was cut.

    The hash is left out if the text held a secret: it would be a record of what was removed.
    """

    text: str
    size: int | None = None
    sha256: str | None = None


class Buffer:
    """The head and tail of one stream, its size and hash; bounded whatever is added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._head, self._tail, self._size = bytearray(), bytearray(), 0
        self._hash = hashlib.sha256()

    def add(self, data: bytes) -> None:
        with self._lock:
            self._size += len(data)
            self._hash.update(data)
            room = _HELD - len(self._head)
            self._head += data[:room] if room > 0 else b""
            self._tail += data[max(0, room) :]
            if len(self._tail) > 2 * _HELD:
                del self._tail[:-_HELD]

    def keep(self, redactor: Redactor) -> Kept:
        """What an event may hold of this stream."""
        with self._lock:
            head, tail, size = bytes(self._head), bytes(self._tail), self._size
            digest = self._hash.hexdigest()
        if len(head) + len(tail) == size:
            original = (head + tail).decode("utf-8", "replace")
            text = redactor.text(original)
            if len(text.encode("utf-8", "replace")) <= STREAM_BYTES_MAX:
                return Kept(text)
            clean, first, last = text == original, text, text
        else:
            # What a cut may have halved lies within the margin and is not shown.
            first, last = head.decode("utf-8", "replace"), tail[-_HELD:].decode("utf-8", "replace")
            shown_first, shown_last = redactor.text(first), redactor.text(last)
            clean = (shown_first, shown_last) == (first, last)
            first = shown_first.encode("utf-8", "replace")[:-MARGIN].decode("utf-8", "ignore")
            last = shown_last.encode("utf-8", "replace")[MARGIN:].decode("utf-8", "ignore")
        note = f"\n…[{size} bytes, the middle is left out]…\n"
        room = STREAM_BYTES_MAX - len(note.encode())
        start = first.encode("utf-8", "replace")[: room // 3].decode("utf-8", "ignore")
        end = last.encode("utf-8", "replace")[-(room - room // 3) :].decode("utf-8", "ignore")
        return Kept(start + note + end, size, digest if clean else None)


class Capture:
    """One tool's streams, from `start` to `stop`. Not reentrant; nested captures see their own."""

    def __init__(self, *, descriptors: bool = False) -> None:
        self.buffers = {1: Buffer(), 2: Buffer()}
        self.descriptors = descriptors
        self.child: Any = None
        self._drain: _Drain | None = None
        self._token: Token[Capture | None] | None = None

    def start(self) -> None:
        self._token = _active.set(self)
        _PROCESS.install()
        try:
            self.descriptors = self.descriptors and _PROCESS.redirect(self)
        except BaseException as error:
            self.descriptors = False
            if not isinstance(error, Exception):  # interrupted while it waited for another tool
                self.stop()
                raise

    def stop(self) -> None:
        """Wait for what was written, give the real streams back. Idempotent."""
        token, self._token = self._token, None
        if token is None:
            return
        if self.descriptors:
            _PROCESS.restore(self)
        if self._drain is not None:
            self._drain.finish()
        try:
            _active.reset(token)
        except ValueError:  # stopped in another context, such as a generator's last step
            _active.set(None)
        _PROCESS.release()

    def pipe(self, descriptor: int) -> int:
        """The write end of this tool's pipe for descriptor 1 or 2."""
        if self._drain is None:
            self._drain = _Drain(self.buffers)
        return self._drain.writers[descriptor]

    def exit_code(self) -> int | None:
        """How the last child process of this tool ended; negative for a signal."""
        code = getattr(self.child, "returncode", None)
        return code if isinstance(code, int) else None


class _Drain:
    """Pipes for both streams and a thread that copies them to the buffers and the real streams."""

    def __init__(self, buffers: dict[int, Buffer]) -> None:
        self._buffers: dict[int, Buffer] | None = buffers
        self._readers: dict[int, int] = {}
        self.writers: dict[int, int] = {}
        self._drained = threading.Event()
        opened: list[int] = []
        try:
            self._selector = selectors.DefaultSelector()
            for descriptor in (1, 2):
                reader, writer = os.pipe()
                opened += (reader, writer)
                os.set_blocking(reader, False)
                self._readers[reader], self.writers[descriptor] = descriptor, writer
                self._selector.register(reader, selectors.EVENT_READ)
            self._wake, self._waker = os.pipe()
            opened += (self._wake, self._waker)
            self._selector.register(self._wake, selectors.EVENT_READ)
            threading.Thread(target=self._run, name="agentlog-streams", daemon=True).start()
        except BaseException:
            for one in opened:
                os.close(one)
            raise

    def finish(self) -> None:
        """Read what is in the pipes now. Children that live on are only passed through."""
        for writer in self.writers.values():
            os.close(writer)
        os.close(self._waker)
        self._drained.wait(_DRAIN_S)

    def _run(self) -> None:
        while self._readers:
            for key, _ in self._selector.select():
                if key.fd == self._wake:
                    self._selector.unregister(self._wake)
                    for reader in list(self._readers):
                        self._copy(reader)
                    self._buffers = None
                    self._drained.set()
                elif key.fd in self._readers:
                    self._copy(key.fd)
        self._drained.set()
        os.close(self._wake)
        self._selector.close()

    def _copy(self, reader: int) -> None:
        descriptor = self._readers[reader]
        while True:
            try:
                data = os.read(reader, _READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(reader)
                del self._readers[reader]
                os.close(reader)
                return
            if self._buffers is not None:
                self._buffers[descriptor].add(data)
            _PROCESS.write(descriptor, data)


class _Process:
    """The process-wide part: which proxies are in place, who owns the descriptors."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._originals: dict[str, Any] = {}
        self._owner: Capture | None = None
        self._owning = threading.Lock()
        self._owner_thread = 0
        self.real: dict[int, int] = {}
        self._popen = subprocess.Popen.__init__

    def install(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            for descriptor, name in ((1, "stdout"), (2, "stderr")):
                original = getattr(sys, name)
                if original is not None:
                    self._originals[name] = original
                    setattr(sys, name, _Proxy(original, descriptor))
            subprocess.Popen.__init__ = _popen_init  # type: ignore[method-assign]  # undone below

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for name, original in self._originals.items():
                if isinstance(getattr(sys, name), _Proxy):
                    setattr(sys, name, original)
            self._originals.clear()
            if subprocess.Popen.__init__ is _popen_init:
                subprocess.Popen.__init__ = self._popen  # type: ignore[method-assign]  # as it was

    def redirect(self, capture: Capture) -> bool:
        """Point descriptors 1 and 2 at the tool; waits for another thread's tool to end.

        A second one in the same thread cannot wait, so it does without; returns whether it may.
        """
        here = threading.get_ident()
        if self._owner_thread == here:
            return False
        self._owning.acquire()
        try:
            writers = {descriptor: capture.pipe(descriptor) for descriptor in (1, 2)}
            _flush_all()
            self.real = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
            for descriptor, writer in writers.items():
                os.dup2(writer, descriptor)
        except BaseException:
            self._give_back()
            raise
        self._owner, self._owner_thread = capture, here
        return True

    def restore(self, capture: Capture) -> None:
        assert self._owner is capture
        with contextlib.suppress(Exception):  # a stream that is closed cannot be flushed
            _flush_all()
        self._give_back()

    def _give_back(self) -> None:
        self._owner, self._owner_thread = None, 0
        real, self.real = self.real, {}
        for descriptor, copy in real.items():
            os.dup2(copy, descriptor)
            os.close(copy)
        self._owning.release()

    def redirects(self, capture: Capture | None) -> bool:
        """Whether what this context writes to the descriptors is captured there already."""
        return self._owner is not None and self._owner is capture

    def elsewhere(self, capture: Capture | None, descriptor: int) -> int | None:
        """Where a context that does not own the redirected descriptor has to write."""
        return self.real.get(descriptor) if not self.redirects(capture) else None

    def write(self, descriptor: int, data: bytes) -> None:
        """To the real stream, whole, or not at all if it is gone."""
        target = self.real.get(descriptor, descriptor)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(target, view) :]
        except OSError:
            return


class _Proxy(io.TextIOBase):
    """Stands for `sys.stdout` or `sys.stderr` while a tool runs; everything else passes through."""

    def __init__(self, original: Any, descriptor: int) -> None:
        self._original, self._descriptor = original, descriptor
        try:
            # A program may have put another stream there, which no redirection touches.
            self._redirected = original.fileno() == descriptor
        except (OSError, ValueError, AttributeError):
            self._redirected = False

    def write(self, text: str, /) -> int:
        capture = _active.get()
        if self._redirected and _PROCESS.elsewhere(capture, self._descriptor) is not None:
            _PROCESS.write(self._descriptor, _encoded(text, self._original))
        else:
            self._original.write(text)
        self._note(capture, text)
        return len(text)

    def _note(self, capture: Capture | None, text: str | bytes) -> None:
        if capture is None:
            return
        if self._redirected and _PROCESS.redirects(capture):
            self._original.flush()  # so that it stands in order with what C code writes
        else:
            data = text.encode("utf-8", "replace") if isinstance(text, str) else text
            capture.buffers[self._descriptor].add(data)

    def writelines(self, lines: Any, /) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._original.flush()

    def fileno(self) -> int:
        return int(self._original.fileno())

    def isatty(self) -> bool:
        return bool(self._original.isatty())

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """The real stream outlives its proxy, which is closed when it is collected."""

    @property
    def closed(self) -> bool:
        return bool(self._original.closed)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute upstream
        return str(self._original.encoding)

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # as above
        found = self._original.errors
        return None if found is None else str(found)

    @property
    def buffer(self) -> Any:
        return _Bytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Bytes:
    """The binary side of a proxy."""

    def __init__(self, proxy: _Proxy) -> None:
        self._proxy = proxy

    def write(self, data: Any) -> int:
        proxy = self._proxy
        capture = _active.get()
        elsewhere = _PROCESS.elsewhere(capture, proxy._descriptor)
        if proxy._redirected and elsewhere is not None:
            _PROCESS.write(proxy._descriptor, bytes(data))
            written = len(data)
        else:
            written = proxy._original.buffer.write(data)
        proxy._note(capture, bytes(data))
        return int(written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proxy._original.buffer, name)


def _popen_init(self: Any, *args: Any, **named: Any) -> None:
    """`Popen.__init__` while a tool runs: streams the child would inherit become the tool's."""
    capture = _active.get()
    positional = list(args)
    for descriptor, index, name in ((1, 4, "stdout"), (2, 5, "stderr")):
        given = positional[index] if len(positional) > index else named.get(name)
        if given is not None:
            continue
        target = _target_of_child(capture, descriptor)
        if len(positional) > index:
            positional[index] = target
        elif target is not None:
            named[name] = target
    if capture is not None:
        capture.child = self
    _PROCESS._popen(self, *positional, **named)


def _target_of_child(capture: Capture | None, descriptor: int) -> int | None:
    """Where a child's inherited stream goes; None leaves it as it is."""
    if capture is None:
        return _PROCESS.elsewhere(None, descriptor)
    try:
        return capture.pipe(descriptor)
    except (OSError, RuntimeError):  # no descriptor or no thread is left for us
        return None


def _encoded(text: str, stream: Any) -> bytes:
    return text.encode(stream.encoding or "utf-8", "replace")


def _flush_all() -> None:
    """Empty the buffers of Python's streams and of the C library, so that no text changes owner."""
    import ctypes  # noqa: PLC0415  10 ms to load, and only tools that ask for descriptors need it

    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    ctypes.CDLL(None).fflush(None)


# The descriptors and `sys.stdout` exist once a process, and so does this.
_PROCESS = _Process()
