"""The inside of a sandbox: the zygote that forks workers, and the worker that runs programs.

The zygote is a clean process: empty environment, no arguments but a descriptor and the place of
this package, nothing of the host in memory. It loads the language once and forks a worker for each
socket it is handed. A worker rehearses, walks behind the walls, says which level it reached, takes
a job, lets the memory limit down to what the job's inputs left it, runs, answers, and waits: to be
ended, or for the next job of the same scope (see `pool`).

What runs only in those processes is marked as not measured; `tests/lang/test_pool.py` and the raw
escape corpus exercise it there.

Owns no policy and no record: tools, journal and prints are the parent's, reached by frames.
Invariants: a worker dies with its zygote, a zygote with its pool; nothing but the one socket and
the memory gauge are open behind the walls.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import select
import signal
import socket
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn

from holdfast.lang import walls, wire
from holdfast.lang.api import Hit, LangError, Limits, Miss, Result, Tool, Value, over_limit
from holdfast.lang.channel import HURRY, Channel, FrameTooLarge, Message
from holdfast.lang.compiler import CodeCache
from holdfast.lang.run import NoHost, run

# Retired: an earlier program of the scope left too little room for this one's inputs.
EXIT_CRASHED, EXIT_MEMORY, EXIT_RETIRED = 70, 71, 72
PARACHUTE_BYTES = 2_000_000
# Deep recursion through built-ins took less. The C library keeps 40 MiB of stacks at most.
STACK_BYTES = 5 * 2**20
PRACTICE_ROUNDS = 8  # the interpreter has adapted most of the code it runs by then
_REHEARSAL = '(let [m {:a [1 2 3]}] (->> (:a m) (map inc) (filter odd?) (reduce + 0) (str "x")))'
REHEARSALS = (
    """
    (let [[{:keys [i name] :or {name ""}} & more] [{:i 1} {:i 2}]
          groups (->> more (filter :i) (group-by :i) (sort-by first) (mapv second))]
      (loop [n 0] (when (and (< n 2) (not= n i)) (recur (inc n))))
      (println name (pr-str groups)))
    """,
    """
    (defn total [key rows] (reduce + 0 (map key rows)))
    (task "rehearsal" (if (empty? [1]) :none {:total (total :i [{:i 1}]) :set #{1 2.5}}))
    """,
    '(pmap (fn [i] (tool/rehearse {:i i :name (str "n" i)})) (range 3))',
)


def zygote(
    control_fd: int,
) -> NoReturn:  # pragma: no cover  # a clean process: no tool measures there
    """Serve a pool until its end of the control socket closes or its process is gone.

    Ops, one datagram each: `fork N` with a socket attached starts worker N; `drop N` ends it;
    `end N` ends it and answers `N STATUS`, the status of os.waitpid. A worker that is dead already
    keeps the status it died with.
    """
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=control_fd)
    parent = os.getppid()
    with contextlib.suppress(OSError):  # each worker tries again, and says so
        walls.drop_privileges()
    walls.prepared_filter()
    rehearse()
    reserve_stacks()
    _settle()
    children: dict[bytes, int] = {}
    dying: list[int] = []
    practice = [*REHEARSALS] * PRACTICE_ROUNDS
    while os.getppid() == parent:
        if not select.select([control], [], [], 0 if practice else 1.0)[0]:
            if practice:
                rehearse()
                rehearse_alone(practice.pop())
                _settle()
            continue
        request, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not request:
            break
        op, number = request.split()
        match op:
            case b"fork":
                children[number] = _fork(control, descriptors[0])
                # A dead worker's memory is given back after its successor has begun to warm up.
                while dying:
                    os.waitpid(dying.pop(), 0)
            case b"drop":
                dying.append(_kill(children.pop(number)))
            case b"end":
                status = os.waitpid(_kill(children.pop(number)), 0)[1]
                control.send(b"%s %d" % (number, status))
            case _:
                break
    os._exit(0)


def _settle() -> None:  # pragma: no cover  # a clean process: no tool measures there
    """Have no worker's collector touch, and so copy, what the zygote holds."""
    gc.collect()
    gc.freeze()


def reserve_stacks() -> None:  # pragma: no cover  # a clean process: no tool measures there
    """Start and end as many threads as a pmap has, so that the C library keeps their stacks.

    Every worker inherits them: its threads take stacks that were there before the memory baseline,
    instead of memory that the program is then said to have used.
    """
    threading.stack_size(STACK_BYTES)
    gate = threading.Barrier(Limits().pmap_workers - 1)
    threads = [threading.Thread(target=gate.wait) for _ in range(gate.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def rehearse() -> None:
    """Run a program from frame to frame, so that the first real one finds code and pages warm."""
    near, far = socket.socketpair()
    with near, far:
        pool, worker = Channel(near), Channel(far)
        pool.send(
            {
                "op": "job",
                "source": _REHEARSAL,
                "context": {},
                "memory": {},
                "history": [],
                "limits": {},
                "tools": [],
                "final": True,
                "recorded": {},
            }
        )
        job = load(worker)
        assert job is not None
        answer(worker, job, CodeCache())
        pool.receive()


def rehearse_alone(source: str) -> None:
    """Run a program without a frame, as behind the walls, where no socket can be made."""
    result = run(source, host=_RehearsalHost(), tools=["rehearse"])
    assert result.error is None, result.error


def work(
    sock: socket.socket,
) -> None:  # pragma: no cover  # a clean process: no tool measures there
    """Enter the walls, run the jobs that arrive on `sock` and answer them, until it closes."""
    channel = Channel(sock)
    if not channel.arrived:
        rehearse()
    statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    parachute = [bytes(PARACHUTE_BYTES)]
    standing = walls.enter()
    channel.send({"op": "ready", "level": standing.level, "reasons": list(standing.reasons)})
    cache = CodeCache()
    for source in REHEARSALS:
        if channel.arrived:
            break
        rehearse_alone(source)
    while True:
        try:
            job = load(channel)
            if job is None:
                return
            confine(job, statm)
        except (MemoryError, ValueError):
            os._exit(EXIT_RETIRED)
        answer(channel, job, cache, parachute)
        walls.lift_memory()


@dataclass(frozen=True, kw_only=True)
class Job:
    """One program with its inputs as values of the language; a final one is the worker's last."""

    source: str
    context: dict[str, Value]
    memory: dict[str, Value]
    history: tuple[Value, ...]
    limits: Limits
    tools: dict[str, Tool]
    final: bool
    recorded: dict[str, list[str]]


def load(channel: Channel) -> Job | None:
    """The next job, or None when the pool has closed the channel."""
    order = channel.receive()
    while order == HURRY:  # its arrival was the message
        order = channel.receive()
    if order is None:
        return None
    limits = Limits(**order["limits"])
    return Job(
        source=order["source"],
        context=wire.decode_all(order["context"]),
        memory=wire.decode_all(order["memory"], limits),
        history=tuple(wire.decode(value) for value in order["history"]),
        limits=limits,
        tools={tool["name"]: Tool(**tool) for tool in order["tools"]},
        final=order["final"],
        recorded=order["recorded"],
    )


def confine(
    job: Job, statm: int
) -> None:  # pragma: no cover  # a clean process: no tool measures there
    """Limit memory above what is in use now that the inputs are loaded, and processor time.

    ValueError if an earlier program of the scope left too little room.
    """
    walls.limit_memory(walls.data_bytes(statm), job.limits.memory_bytes, final=job.final)
    walls.limit_time(math.ceil(job.limits.wall_s) + 1, final=job.final)


def answer(
    channel: Channel, job: Job, cache: CodeCache, parachute: list[bytes] | None = None
) -> None:
    """Run a job and send how it ended.

    The parachute is memory to let go of when all is used up, so that a last frame can be made.
    """
    host = RemoteHost(channel, job.recorded)
    try:
        result = run(
            job.source,
            context=job.context,
            memory=job.memory,
            history=job.history,
            host=host,
            limits=job.limits,
            tools=job.tools,
            cache=cache,
        )
        if result.error is not None and result.error.details.get("limit") == "memory_bytes":
            result.error.details["wall"] = "rlimits"
        channel.send({**encode_result(result, job), "replayed": host.take_replayed()})
    except MemoryError:
        if parachute:
            parachute.clear()
        channel.send({"op": "memory"})
    except (FrameTooLarge, RecursionError, TypeError, ValueError):
        channel.send({"op": "unsendable"})


class _RehearsalHost(NoHost):
    """A host that gives every tool its arguments back."""

    def call_tool(self, path: str, name: str, args: dict[str, Value]) -> Value:
        return args


class RemoteHost:
    """The worker's side of a Host: every call is a frame to the parent and a wait for its answer.

    A call that was recorded before the run is answered here and mentioned in the next frame; what
    differs from the record in any way is the parent's to judge.
    Threads of the program call at the same time. Whoever waits and finds nobody reading reads for
    all, so a program without parallel branches costs no thread and no hand-over.
    """

    def __init__(self, channel: Channel, recorded: Mapping[str, list[str]]) -> None:
        self._channel = channel
        self._recorded = dict(recorded)
        self._replayed: list[str] = []
        self._arrived = threading.Condition()
        self._answers: dict[int, Message] = {}
        self._reading = False
        self._next = 0

    def recorded(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def call_tool(self, path: str, name: str, args: dict[str, Value]) -> Value:
        encoded = wire.encode_all(args)
        row = self._recorded.pop(path, None)
        if row is not None and row[:2] == [name, wire.canonical(encoded)]:
            value = wire.decode(json.loads(row[2]))
            with self._arrived:
                self._replayed.append(path)
            return value
        return wire.decode(self._ask("call_tool", path=path, name=name, args=encoded)["value"])

    def task_begin(self, path: str, id: str, source: str) -> Hit | Miss:
        reply = self._ask("task_begin", path=path, id=id, source=source)
        if reply["hit"]:
            return Hit(wire.decode(reply["value"]), reply["warning"])
        return Miss(reply["generation"])

    def task_done(self, path: str, id: str, source: str, value: Value) -> None:
        self._ask("task_done", path=path, id=id, source=source, value=wire.encode(value))

    def task_reset(self, path: str, id: str) -> None:
        self._ask("task_reset", path=path, id=id)

    def step_done(self, id: str, text: str) -> None:
        self._ask("step_done", id=id, text=text)

    def budget(self) -> Value:
        return wire.decode(self._ask("budget")["value"])

    def printed(self, text: str) -> None:
        self._channel.send({"op": "printed", "text": text})

    def _ask(self, what: str, **fields: Any) -> Message:
        with self._arrived:
            number = self._next
            self._next += 1
        together = threading.active_count() > 1
        told = {"together": together, "replayed": self.take_replayed()}
        request = {"op": what, "n": number, **told, **fields}
        try:
            self._channel.send(request)
        except FrameTooLarge as error:
            text = f"what {what} was given does not fit into a frame: {error}"
            raise over_limit("frame", text) from None
        reply = self._wait_for(number)
        if "error" in reply:
            raise LangError.from_dict(reply["error"])
        return reply

    def take_replayed(self) -> list[str]:
        """The paths that were answered here since the last frame."""
        with self._arrived:
            found, self._replayed = self._replayed, []
        return found

    def _wait_for(self, number: int) -> Message:
        with self._arrived:
            while number not in self._answers:
                if self._reading:
                    self._arrived.wait()
                else:
                    self._read_one()
            return self._answers.pop(number)

    def _read_one(self) -> None:
        """Read one answer without holding the condition, and tell all who wait."""
        self._reading = True
        self._arrived.release()
        try:
            reply = self._channel.receive()
        finally:
            self._arrived.acquire()
            self._reading = False
            self._arrived.notify_all()
        if reply is None:
            os._exit(EXIT_CRASHED)  # the parent has given this run up
        self._answers[reply["n"]] = reply


def encode_result(result: Result, job: Job) -> Message:
    """What only the worker knows of a run; tool calls the parent has seen itself.

    A value that cannot be sent (too deep, a function without source) is the program's error.
    """
    try:
        return _encode_result(result)
    except LangError as error:
        refused = replace(result, ending="error", value=None, error=error)
        return _encode_result(replace(refused, memory=job.memory, history=job.history))


def _encode_result(result: Result) -> Message:
    return {
        "op": "done",
        "ending": result.ending,
        "value": wire.encode(result.value),
        "error": result.error.as_dict() if result.error else None,
        "memory": wire.encode_all(result.memory),
        "history": [wire.encode(value) for value in result.history],
        "prints": list(result.prints),
        "pmap_calls": [asdict(call) for call in result.pmap_calls],
        "warnings": list(result.warnings),
        "summaries": dict(result.summaries),
        "usage": vars(result.usage),
    }


def _fork(
    control: socket.socket, descriptor: int
) -> int:  # pragma: no cover  # a clean process: no tool measures there
    zygote_pid = os.getpid()
    pid = os.fork()
    if pid:
        os.close(descriptor)
        return pid
    code = EXIT_CRASHED
    try:
        walls.die_with_parent()
        if os.getppid() == zygote_pid:
            control.close()
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=descriptor)
            work(sock)
            code = 0
    except MemoryError:
        code = EXIT_MEMORY
    finally:
        os._exit(code)


def _kill(pid: int) -> int:  # pragma: no cover  # a clean process: no tool measures there
    """Kill a child of this process. It is still ours to reap, so the pid is no other's."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return pid
