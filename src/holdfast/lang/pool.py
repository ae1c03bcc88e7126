"""`SandboxPool`: programs run in walled processes, never more than N, and leave nothing behind.

Owns the zygote, the worker processes, the queue and the naming of what ended a worker. The run
itself is a `Conversation`; the walls are `walls`; the far side is `worker`.

A worker is re-forked, never reset, between programs that do not belong together: what a program
left in an interpreter (or did to it, if the inner wall fell) ends with the process. Programs that
do belong together, such as the turns of one agent, may name a `scope` and then follow each other in
one process. Measured on 2 cores: the next program of a scope takes 0.2 ms, one in a worker that
waits ready 0.7 ms, and one that must wait for its worker to be forked 4 ms (`benchmarks/lisp.md`).
A caller who finds no worker ready tells one to hurry, and that one leaves out its rehearsal. There
are no spares: a worker counts from its fork to its kill. Within a scope memory is less exact: what
an earlier program freed can be used again without being counted.

Invariants: nothing starts before `start` or the first `run`; at most `size` workers are alive;
callers are served in the order they came; a worker that broke a limit is dead before `run` returns;
`close` is idempotent, and a parent that dies takes zygote and workers with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from holdfast.lang import walls
from holdfast.lang.api import Host, LangError, Limits, Result, Tool, Value
from holdfast.lang.channel import HURRY, Channel, FrameTooLarge, Message, ProtocolError
from holdfast.lang.conversation import Breach, Conversation, Gone, job
from holdfast.lang.run import NoHost
from holdfast.lang.worker import EXIT_MEMORY, EXIT_RETIRED

READY_S = 30.0
START_ATTEMPTS = 3
_PACKAGE_ROOT = str(Path(__file__).parents[2])
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[2]);"
    " from holdfast.lang.worker import zygote; zygote(int(sys.argv[1]))"
)


class SandboxPool:
    """At most `size` programs at a time, each behind the outer wall.

    `require` is the least level of `walls` a worker must reach; where the machine cannot, `run`
    raises LangError `sandbox_unavailable` and runs nothing. Safe to use from many threads.
    """

    def __init__(
        self, size: int = 2, limits: Limits | None = None, *, require: walls.Level = "seccomp"
    ) -> None:
        if size < 1:
            raise ValueError("a pool has at least one worker")
        self.size, self.limits, self.require = size, limits or Limits(), require
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._idle: deque[_Worker] = deque()
        self._busy = 0
        self._zygote: _Zygote | None = None
        self._closed = False

    def __enter__(self) -> SandboxPool:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the zygote and its workers without waiting for them. Idempotent."""
        with self._changed:
            self._refuse_if_closed()
            self._fill()

    def standing(self) -> walls.Probe:
        """The level a worker of this pool has reached, with reasons; waits for one to be ready."""
        worker = self._take()
        try:
            return worker.standing
        finally:
            self._give_back(worker)

    def run(
        self,
        source: str,
        *,
        context: Mapping[Any, Any] | None = None,
        memory: Mapping[str, Value] | None = None,
        history: Sequence[Value] = (),
        host: Host | None = None,
        limits: Limits | None = None,
        tools: Mapping[str, Tool] | Sequence[str] = (),
        scope: str = "",
    ) -> Result:
        """Run one program in a walled process and say how it ended.

        A program without a scope has the process to itself; programs of one scope may share one.
        A limit or a wall that ends the worker is a Result with an error that names it. What `host`
        itself raises, other than a LangError, ends the worker and is raised here.
        """
        limits = limits or self.limits
        offered = tools if isinstance(tools, Mapping) else {name: Tool(name=name) for name in tools}
        talk = Conversation(host or NoHost(), limits, offered)
        try:
            order = job(
                source,
                context=context or {},
                memory=memory or {},
                history=tuple(history),
                limits=limits,
                tools=[asdict(tool) for tool in offered.values()],
                final=not scope,
            )
        except LangError as refused:
            return talk.ended(refused, memory or {}, history)
        try:
            return self._hold(talk, order, scope)
        except Breach as breach:
            talk.settle()
            return talk.ended(breach.error, memory or {}, history)
        finally:
            talk.settle()

    def close(self) -> None:
        """End zygote and workers. Callers in the queue are refused; running programs end with it.

        Idempotent.
        """
        with self._changed:
            self._closed = True
            if self._zygote is not None:
                self._zygote.close()
                self._zygote = None
            while self._idle:
                self._idle.popleft().channel.close()
            self._changed.notify_all()

    def _hold(self, talk: Conversation, order: Message, scope: str) -> Result:
        """Bring the conversation a worker, and keep the worker for its scope or end it."""
        for attempt in range(START_ATTEMPTS):
            worker, fit = self._take(scope), False
            try:
                result = talk.hold(worker.channel, order)
                fit = bool(scope) and worker.channel.quiet and not _out_of_memory(result)
                return result
            except FrameTooLarge as error:
                text = f"the inputs are too large: {error}"
                raise Breach("memory_exceeded", text, "channel", "frame") from None
            except Breach:
                worker.end()
                raise
            except Gone:
                status = worker.end()
                last = attempt == START_ATTEMPTS - 1
                if last or talk.heard or not _may_run_again(status):
                    raise _verdict(status, talk.limits) from None
            finally:
                worker.used = True
                self._give_back(worker) if fit else self._replace(worker)
        raise AssertionError("the last attempt returns or raises")

    def _take(self, scope: str = "") -> _Worker:
        """Wait for this caller's turn and a ready worker that reached the demanded level."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                self._refuse_if_closed()
                self._fill()
                while self._queue[0] is not ticket or not self._idle:
                    self._changed.wait()
                    self._refuse_if_closed()
                worker = self._pick(scope)
                self._busy += 1
            finally:
                self._queue.remove(ticket)
                self._changed.notify_all()
        problem = worker.wait_until_ready(self.require)
        for _ in range(START_ATTEMPTS - 1):
            if problem is None or not problem.details.get("again"):
                break
            worker = self._again(worker)
            problem = worker.wait_until_ready(self.require)
        if problem is not None:
            self._replace(worker)
            raise problem
        worker.scope = scope
        return worker

    def _pick(self, scope: str) -> _Worker:
        """An idle worker of this scope, else an unused one, else a new one for another scope's."""
        mine = [worker for worker in self._idle if worker.used and worker.scope == scope]
        for worker in [*mine, *(worker for worker in self._idle if not worker.used)]:
            self._idle.remove(worker)
            return worker
        self._idle.popleft().drop()
        return self._hatch()

    def _again(self, dead: _Worker) -> _Worker:
        """Another worker in place of one that died before it was given a program."""
        dead.drop()
        with self._changed:
            self._refuse_if_closed()
            return self._hatch()

    def _give_back(self, worker: _Worker) -> None:
        """Return a worker that may serve again."""
        with self._changed:
            self._busy -= 1
            self._idle.append(worker)
            self._changed.notify_all()

    def _replace(self, worker: _Worker) -> None:
        """End a worker and fork its successor, which warms up on its own time."""
        worker.drop()
        with self._changed:
            self._busy -= 1
            if not self._closed:
                self._fill()
            self._changed.notify_all()

    def _fill(self) -> None:
        while self._busy + len(self._idle) < self.size:
            self._idle.append(self._hatch())

    def _hatch(self) -> _Worker:
        """Fork a worker; a zygote that died is replaced once, and its idle workers died with it."""
        if self._zygote is not None:
            with contextlib.suppress(OSError):
                return self._zygote.hatch()
            self._zygote.close()
        self._zygote = _Zygote()
        return self._zygote.hatch()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise LangError("sandbox_unavailable", "the pool is closed")


class _Zygote:
    """The clean process that forks workers, and the one way to talk to it."""

    def __init__(self) -> None:
        self._control, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asking = threading.Lock()
        self._hatched = 0
        with far:
            # An empty environment and no host memory: whatever a worker becomes, it knows nothing.
            self._process = subprocess.Popen(  # noqa: S603  # our interpreter and our own text
                [sys.executable, "-I", "-S", "-c", _BOOT, str(far.fileno()), _PACKAGE_ROOT],
                env={},
                cwd="/",
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def hatch(self) -> _Worker:
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with far:
            self._hatched += 1
            number = self._hatched
            try:
                socket.send_fds(self._control, [b"fork %d" % number], [far.fileno()])
            except OSError:
                near.close()
                raise
        return _Worker(self, number, Channel(near))

    def drop(self, number: int) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"drop %d" % number)

    def end(self, number: int) -> int | None:
        """End a worker and return the status it died with; None if the zygote is gone as well."""
        try:
            with self._asking:
                self._control.send(b"end %d" % number)
                reply = self._control.recv(64).split()
        except OSError:
            return None
        return int(reply[1]) if reply else None

    def close(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()


class _Worker:
    """One process behind the walls, good for one program or for the programs of one scope."""

    def __init__(self, zygote: _Zygote, number: int, channel: Channel) -> None:
        self.channel = channel
        self.standing = walls.Probe("none", ("not ready yet",))
        self.scope, self.used = "", False
        self._zygote, self._number = zygote, number
        self._ready = self._ended = False

    def wait_until_ready(self, require: walls.Level) -> LangError | None:
        """None once the worker stands behind walls that satisfy `require`, else why not."""
        if not self._ready:
            try:
                if not self.channel.arrived:
                    self.channel.send(HURRY)
                self.channel.sock.settimeout(READY_S)
                hello = self.channel.receive()
            except (ProtocolError, OSError):
                hello = None
            if hello is None:
                text = "a worker died before it was ready"
                return LangError("sandbox_unavailable", text, details={"again": True})
            self.standing = walls.Probe(hello["level"], tuple(hello["reasons"]))
            self._ready = True
        if walls.reaches(self.standing.level, require):
            return None
        return LangError(
            "sandbox_unavailable",
            f"the policy demands the wall {require}, and this machine reaches"
            f" {self.standing.level} ({'; '.join(self.standing.reasons)})",
            details={"level": self.standing.level, "require": require},
        )

    def drop(self) -> None:
        """End the process. Idempotent."""
        if not self._ended:
            self._ended = True
            self._zygote.drop(self._number)
        self.channel.close()

    def end(self) -> int | None:
        """End the process and return the status it died with."""
        self._ended = True
        return self._zygote.end(self._number)


def _out_of_memory(result: Result) -> bool:
    """An interpreter that ran out of memory may have lost more than one program's values."""
    return result.error is not None and result.error.details.get("limit") == "memory_bytes"


def _may_run_again(status: int | None) -> bool:
    """Whether a worker that was never heard died of something else than its program.

    It retired for lack of room, was killed from outside while idle, or lost its zygote. A program
    reaches the world by frames alone, so one that sent none has done nothing.
    """
    if status is None:
        return True
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status) == EXIT_RETIRED
    return os.WTERMSIG(status) == signal.SIGKILL


def _verdict(status: int | None, limits: Limits) -> Breach:
    """Which wall ended a worker that closed its end by itself."""
    if status is None:
        return Breach("sandbox_violation", "the sandbox is gone", "zygote")
    if os.WIFEXITED(status):
        if os.WEXITSTATUS(status) == EXIT_MEMORY:
            return Breach(
                "memory_exceeded", "the worker ran out of memory", "rlimits", "memory_bytes"
            )
        return Breach("sandbox_violation", "the worker ended without an answer", "process")
    number = os.WTERMSIG(status)
    match number:
        case signal.SIGSYS:
            return Breach("sandbox_violation", "a system call that no program needs", "seccomp")
        case signal.SIGXCPU:
            text = f"the program used more processor time than its {limits.wall_s:g} s"
            return Breach("timeout", text, "rlimits", "cpu")
        case signal.SIGKILL:
            text = "the worker closed its channel or was killed from outside"
            return Breach("sandbox_violation", text, "process")
        case _:
            name = signal.Signals(number).name
            return Breach("sandbox_violation", f"the worker crashed ({name})", "process")
