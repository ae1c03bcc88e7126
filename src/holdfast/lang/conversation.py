"""One program's run as the parent sees it: the frames of a worker, answered and judged.

Owns the clock of a run, the execution of host calls, the record of tool calls and prints, and the
strict reading of everything the worker says. Owns no process: `pool` brings a worker and ends it.

Invariants: nothing the worker sends is trusted. A frame with a wrong field is a breach; a tool that
was not granted is a breach, and so is more output than the limit. Whatever the host completed is in
the record, however the worker ends. Calls that the worker marks as parallel run together on at most
`pmap_workers` threads of this run; all others run on the caller's thread.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.lang import wire
from holdfast.lang.api import (
    Hit,
    Host,
    LangError,
    Limits,
    ParallelRecord,
    Result,
    ToolRecord,
    Usage,
    Value,
    over_limit,
)
from holdfast.lang.channel import Channel, FrameTooLarge, Message, ProtocolError
from holdfast.lang.portable import named_input
from holdfast.lang.wire import canonical

GRACE_S = 0.25  # the inner wall names line and column, so it gets the first word
NAME_CHARS_MAX = 10_000
_DATA = re.compile(r"data/([^\s()\[\]{}\"',;`~@^\\]+)")
RECORDED_ROWS_MAX, RECORDED_CHARS_MAX = 10_000, 1_000_000  # beyond, each row is asked for
_DEFAULTS = vars(Limits())
IN_FLIGHT_MAX = 1_000  # more parallel branches than an honest worker has threads


class Breach(Exception):
    """The worker must be ended: which wall fired, which limit, and what to tell the program."""

    def __init__(self, code: str, message: str, wall: str, limit: str = "") -> None:
        super().__init__(message)
        details = {"wall": wall, **({"limit": limit} if limit else {})}
        self.error = LangError(code, message, details=details)


class Gone(Exception):
    """The worker closed its end; only its exit status can say why."""


@dataclass
class Seen:
    """What the parent witnessed itself; it survives every end of the worker."""

    prints: list[str] = field(default_factory=list)
    tool_calls: list[ToolRecord | None] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    summaries: dict[str, str] = field(default_factory=dict)

    def finished_calls(self) -> tuple[ToolRecord, ...]:
        return tuple(call for call in self.tool_calls if call is not None)


class Conversation:
    """One run of one program. Use once."""

    def __init__(self, host: Host, limits: Limits, granted: Collection[str]) -> None:
        self.seen, self.limits, self.heard = Seen(), limits, False
        self._host = host
        self._granted = frozenset(granted)
        self._recorded = recorded(host, self._granted)
        self._replayed: set[str] = set()
        self._channel: Channel
        self._started = self._deadline = time.monotonic()
        self._output_left = limits.output_bytes
        self._together: ThreadPoolExecutor | None = None
        self._in_flight: list[Future[None]] = []
        self._failure: BaseException | None = None

    def hold(self, channel: Channel, job: Message) -> Result:
        """Send the job over `channel` and answer the worker until it is done.

        Raises Breach, Gone, or whatever the host itself raised that is no LangError (a bug, or a
        suspension): then the worker must be ended and the exception is the caller's.
        """
        self._channel, self._started = channel, time.monotonic()
        self._deadline = self._started + self.limits.wall_s + GRACE_S
        try:
            self._send({**job, "recorded": self._recorded})
            while True:
                message = self._receive()
                self._witness(message.get("replayed", []))
                if message["op"] == "done":
                    return self._result(message)
                self._handle(message)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if self._failure is not None:
                raise self._failure from None
            raise _garbage(f"a frame has wrong fields ({type(error).__name__})") from None
        except ProtocolError as error:
            raise _garbage(str(error)) from None

    def ended(
        self, error: LangError, memory: Mapping[str, Value], history: Sequence[Value]
    ) -> Result:
        """The result of a run that its worker did not finish: what was seen, nothing changed."""
        return Result(
            ending="error",
            error=error,
            memory=dict(memory),
            history=tuple(history),
            prints=tuple(self.seen.prints),
            tool_calls=self.seen.finished_calls(),
            warnings=tuple(self.seen.warnings),
            summaries=dict(self.seen.summaries),
            usage=Usage(wall_ms=(time.monotonic() - self._started) * 1e3),
        )

    def settle(self) -> None:
        """Wait for host calls still in flight, so that what they do is recorded. Idempotent."""
        if self._together is not None:
            self._together.shutdown(wait=True, cancel_futures=True)

    def _witness(self, paths: list[Any]) -> None:
        """Note the calls that the worker answered from what it was told is recorded."""
        for path in paths:
            if path not in self._recorded or path in self._replayed:
                raise ProtocolError("a call was not recorded, or is replayed twice")
            self._replayed.add(path)
            name, args, value = self._recorded[path]
            given, found = _value(json.loads(args)), _value(json.loads(value))
            self.seen.tool_calls.append(ToolRecord(path=path, name=name, args=given, value=found))

    def _handle(self, message: Message) -> None:
        match message["op"]:
            case "printed":
                text = _text(message["text"], self.limits.output_bytes)
                self._output_left -= len(text)
                if self._output_left < 0:
                    text = f"the program printed more than {self.limits.output_bytes} bytes"
                    raise Breach("memory_exceeded", text, "channel", "output_bytes")
                self.seen.prints.append(text)
                self._guard(lambda: self._host.printed(text))
            case "memory":
                needed = f"the program needed more than {self.limits.memory_bytes} bytes"
                text = f"{needed} above what its inputs take"
                raise Breach("memory_exceeded", text, "rlimits", "memory_bytes")
            case "unsendable":
                text = "the program's result and definitions do not fit into a frame"
                raise Breach("memory_exceeded", text, "channel", "frame")
            case "call_tool":
                self._answer(message, self._call_tool(message))
            case "task_begin" | "task_done" | "task_reset" | "step_done" | "budget":
                self._answer(message, self._ask_host(message))
            case _:
                raise ProtocolError("a frame has an unknown op")

    def _call_tool(self, message: Message) -> Callable[[], Message]:
        path, name = _text(message["path"]), _text(message["name"])
        if name not in self._granted:
            raise Breach(
                "sandbox_violation", "the worker called a tool that was not granted", "channel"
            )
        args = {_text(key): _value(value) for key, value in message["args"].items()}
        slot = len(self.seen.tool_calls)
        self.seen.tool_calls.append(None)

        def call() -> Message:
            started = time.monotonic()
            value, failure = None, ""
            try:
                value = self._host.call_tool(path, name, args)
                return {"value": wire.encode(value)}
            except LangError as error:
                failure = str(error)
                raise
            finally:
                took_ms = (time.monotonic() - started) * 1e3
                self.seen.tool_calls[slot] = ToolRecord(
                    path=path, name=name, args=args, value=value, error=failure, ms=took_ms
                )

        return call

    def _ask_host(self, message: Message) -> Callable[[], Message]:
        host, what = self._host, message["op"]
        if what == "budget":
            return lambda: {"value": wire.encode(host.budget())}
        id = _text(message["id"])
        if what == "step_done":
            text = _text(message["text"])
            return lambda: self._step_done(id, text)
        path = _text(message["path"])
        if what == "task_reset":
            return partial(_silent, host.task_reset, path, id)
        source = _text(message["source"], self.limits.program_bytes)
        if what == "task_begin":
            return lambda: self._task_begin(path, id, source)
        value = _value(message["value"])
        return partial(_silent, host.task_done, path, id, source, value)

    def _task_begin(self, path: str, id: str, source: str) -> Message:
        found = self._host.task_begin(path, id, source)
        if not isinstance(found, Hit):
            return {"hit": False, "generation": found.generation}
        if found.warning:
            self.seen.warnings.append(found.warning)
        return {"hit": True, "value": wire.encode(found.value), "warning": found.warning}

    def _step_done(self, id: str, text: str) -> Message:
        self._host.step_done(id, text)
        self.seen.summaries[id] = text
        return {}

    def _answer(self, message: Message, call: Callable[[], Message]) -> None:
        number, together = message["n"], message["together"]
        if type(number) is not int or type(together) is not bool:
            raise ProtocolError("a call has no number")
        if together:
            if self._together is None:
                self._together = ThreadPoolExecutor(self.limits.pmap_workers)
            self._in_flight = [each for each in self._in_flight if not each.done()]
            if len(self._in_flight) >= IN_FLIGHT_MAX:
                raise ProtocolError("too many calls are in flight")
            self._in_flight.append(self._together.submit(self._reply, number, call))
        else:
            self._reply(number, call)
            if self._failure is not None:
                raise self._failure

    def _reply(self, number: int, call: Callable[[], Message]) -> None:
        """Do one host call and send its answer. A failure of the host itself ends the run."""
        try:
            reply = call()
        except LangError as error:
            reply = {"error": error.as_dict()}
        except BaseException as failure:
            self._fail(failure)
            return
        try:
            self._send({"op": "answer", "n": number, **reply})
        except FrameTooLarge as error:
            refusal = over_limit(
                "tool_result_bytes", f"a result does not fit into a frame: {error}"
            )
            self._send({"op": "answer", "n": number, "error": refusal.as_dict()})

    def _guard(self, act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as failure:
            self._failure = failure
            raise

    def _fail(self, failure: BaseException) -> None:
        """Keep the first failure and end the stream, so that the reading thread sees it."""
        if self._failure is None:
            self._failure = failure
        self._channel.hang_up()

    def _send(self, message: Message) -> None:
        """Send; a worker that is gone or does not read is found out by the next receive."""
        try:
            self._channel.sock.settimeout(max(self._deadline - time.monotonic(), 0.001))
            self._channel.send(message)
        except TimeoutError:
            self._channel.hang_up()
        except OSError:
            pass

    def _receive(self) -> Message:
        left = self._deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            self._channel.sock.settimeout(left)
            message = self._channel.receive()
        except TimeoutError:
            text = f"the program ran longer than {self.limits.wall_s:g} s"
            raise Breach("timeout", text, "clock", "wall_s") from None
        if self._failure is not None:
            raise self._failure
        if message is None:
            raise Gone
        self.heard = True
        return message

    def _result(self, message: Message) -> Result:
        self.settle()
        ending, error = message["ending"], message["error"]
        if ending not in ("value", "returned", "failed", "error"):
            raise ProtocolError("a result has an unknown ending")
        if (error is not None) != (ending == "error"):
            raise ProtocolError("a result has an ending without its error")
        return Result(
            ending=ending,
            value=_value(message["value"]),
            error=_error(error) if error is not None else None,
            memory={_text(k): _value(v) for k, v in message["memory"].items()},
            history=tuple(_value(v) for v in message["history"]),
            prints=tuple(_text(text, self.limits.output_bytes) for text in message["prints"]),
            tool_calls=self.seen.finished_calls(),
            pmap_calls=tuple(_parallel(call) for call in message["pmap_calls"]),
            warnings=tuple(_text(text) for text in message["warnings"]),
            summaries={_text(k): _text(v) for k, v in message["summaries"].items()},
            usage=_usage(message["usage"]),
        )


def job(
    source: str,
    *,
    context: Mapping[Any, Any],
    memory: Mapping[str, Value],
    history: tuple[Value, ...],
    limits: Limits,
    tools: list[dict[str, str]],
    final: bool,
) -> Message:
    """The one message a worker gets before its program starts; a final job is its last.

    Of the context only what the program mentions is copied. Raises LangError for what is no value.
    """
    return {
        "op": "job",
        "source": source,
        "context": {name: wire.encode(named_input(context, name)) for name in mentioned(source)},
        "memory": wire.encode_all(memory),
        "history": [wire.encode(value) for value in history],
        "limits": {name: n for name, n in vars(limits).items() if n != _DEFAULTS[name]},
        "tools": tools,
        "final": final,
        "recorded": {},
    }


def recorded(host: Host, granted: Collection[str]) -> dict[str, tuple[str, str, str]]:
    """What a worker may answer itself: tool, arguments and value as text, by path."""
    found: dict[str, tuple[str, str, str]] = {}
    chars = 0
    for path, row in host.recorded().items():
        try:
            texts = (row["tool"], canonical(row["args"]), canonical(row["value"]))
        except (KeyError, TypeError, ValueError):
            continue  # no row of ours: the call that comes to it is refused with a reason
        chars += len(path) + sum(map(len, texts))
        if chars > RECORDED_CHARS_MAX or len(found) == RECORDED_ROWS_MAX:
            break
        if texts[0] in granted:
            found[path] = texts
    return found


def mentioned(source: str) -> set[str]:
    """Names that follow `data/` anywhere in a source, in strings and comments too: a superset."""
    return set(_DATA.findall(source))


def _garbage(message: str) -> Breach:
    return Breach("sandbox_violation", f"the worker broke the protocol: {message}", "channel")


def _silent(act: Callable[..., None], *arguments: Value) -> Message:
    act(*arguments)
    return {}


def _text(value: Any, chars_max: int = NAME_CHARS_MAX) -> str:
    if type(value) is not str or len(value) > chars_max:
        raise ProtocolError("a text is none or is too long")
    return value


def _value(data: Any) -> Value:
    """A value a worker sent. Functions stay text: nothing of a worker is compiled out here."""
    try:
        return wire.decode(data)
    except LangError as error:
        raise ProtocolError(f"a value is none: {error.message}") from None


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise ProtocolError("a number is none")
    return value  # type: ignore[no-any-return]  # narrowed by the line above


def _error(record: Any) -> LangError:
    if not all(
        type(record[key]) is str for key in ("code", "message", "source_line", "form", "hint")
    ):
        raise ProtocolError("an error has wrong fields")
    if type(record["line"]) is not int or type(record["column"]) is not int:
        raise ProtocolError("an error has no place")
    return LangError.from_dict(record)


def _parallel(record: Any) -> ParallelRecord:
    if record["type"] not in ("pmap", "pcalls"):
        raise ProtocolError("a parallel call has an unknown type")
    counts = {
        key: int(_number(record[f"{key}"])) for key in ("count", "success_count", "error_count")
    }
    return ParallelRecord(
        path=_text(record["path"]), type=record["type"], ms=_number(record["ms"]), **counts
    )


def _usage(record: Any) -> Usage:
    return Usage(**{str(name): _number(number) for name, number in record.items()})  # type: ignore[arg-type]  # counts stay counts
