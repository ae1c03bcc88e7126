"""The recorder: turns calls into events, redacted and described, and hands them to one sink.

Owns the meaning of each call and the guard that keeps the traced program unharmed. Does not own the
switch (`trace/__init__`), hooks, streams, or storage. Invariants: nothing here raises into the
program and nothing it raises is swallowed; everything passes the redactor before the sink; an
exception is recorded once, in the session it was raised in; recording inside recording is ignored.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from threading import local
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Self

from holdfast.trace import capture
from holdfast.trace.describe import Limits, clip, describe
from holdfast.trace.events import Event, Kind, Session, Sink
from holdfast.trace.redact import Redactor
from holdfast.trace.sessions import Sessions, first_time, raised_in, remember
from holdfast.trace.store import Ids, now_ms
from holdfast.trace.streams import Capture

if TYPE_CHECKING:
    from holdfast.trace.gitdiff import Turns

Level = Literal["debug", "info", "warning", "error"]
TEXT_CHARS_MAX = 2000
_SHOWN = Limits(text_chars=1200, items=12, depth=4, nodes=60)


P = ParamSpec("P")


def _harmless(
    method: Callable[Concatenate[Recorder, P], str],
) -> Callable[Concatenate[Recorder, P], str]:
    """Whatever goes wrong while recording stays here; a recording inside one does nothing."""

    @wraps(method)
    def guarded(self: Recorder, /, *args: P.args, **named: P.kwargs) -> str:
        if getattr(self.busy, "now", False):
            return ""
        self.busy.now = True
        try:
            return method(self, *args, **named)
        except Exception:
            self.lost += 1
            return ""
        finally:
            self.busy.now = False

    return guarded


class Recorder:
    """Records into `sink`. Safe to use from any thread.

    `level` says how much: info and debug everything, warning what failed and decisions, error
    failures only. `entered` is told whenever the ambient session changes. `credentials` gives what
    must not be seen; it is asked again at each session, tool and failure, because programs load
    their secrets after they start. `lost` counts what could not be recorded because describing it
    went wrong.
    """

    def __init__(
        self,
        sink: Sink,
        credentials: Callable[[], Mapping[str, str]] = dict,
        *,
        level: Level = "info",
        parent: str = "",
        entered: Callable[[], None] = lambda: None,
    ) -> None:
        self.sink, self.level = sink, level
        self._credentials, self._secrets = credentials, dict(credentials())
        self.redactor = Redactor(self._secrets)
        self.sessions, self.ids = Sessions(parent), Ids()
        self.entered = entered
        self.busy, self.lost = local(), 0
        self._turns: dict[str, Turns] = {}

    def start_session(self, agent_name: str, task: str = "", session_id: str = "") -> str:
        """Open a session below the ambient one and make it ambient; returns its id."""
        found = session_id or self.sessions.nest(self.ids.new())
        # Within a recording that needs a session this is part of it, and guarded already.
        open_row = self._open_row if getattr(self.busy, "now", False) else self._open
        open_row(found, agent_name, task)
        self.sessions.enter(found)
        self.entered()
        return found

    def end_session(self, session_id: str = "") -> None:
        """Close a session (the ambient one unless said) and return to its parent. Idempotent."""
        found = session_id or self.sessions.current()
        if found:
            self._close(found)
            self.sessions.leave(found)
            self.entered()

    def session_id(self) -> str:
        """The ambient session, opened for this program if there is none."""
        return self.sessions.current() or self.start_session(*_program(self.redactor))

    @_harmless
    def _open(self, session_id: str, agent_name: str, task: str) -> str:
        return self._open_row(session_id, agent_name, task)

    def _open_row(self, session_id: str, agent_name: str, task: str) -> str:
        self.look_for_credentials()
        name, text = self._text(agent_name, 400), self._text(task, 400)
        self.sink.open_session(Session(session_id, now_ms(), name, text))
        return session_id

    @_harmless
    def _close(self, session_id: str) -> str:
        self.sink.close_session(session_id, now_ms())
        return session_id

    @_harmless
    def failure(self, error: BaseException, origin: str = "handled", session_id: str = "") -> str:
        """Record an exception once; returns the event id, empty if it was recorded before."""
        if not first_time(error):
            return ""
        self.look_for_credentials()
        where = raised_in(error) or session_id
        return self._emit("failure", capture.failure(error, self.redactor, origin), where)

    @_harmless
    def llm_call(
        self,
        /,
        model: str,
        *,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        duration_ms: float | None = None,
        prompt: Any = None,
        response: Any = None,
        error: BaseException | None = None,
        call_id: str = "",
        session_id: str = "",
        operation: str | None = None,
        tokens_cached: int | None = None,
        tokens_written: int | None = None,
        tokens_reasoning: int | None = None,
        finish_reason: str | None = None,
        cost_nusd: int | None = None,
    ) -> str:
        """Record one model call. A count that is None stays unknown, which is not zero.

        A call without an id of its own goes by its event's.
        """
        if error is None and self.level == "warning":
            return ""
        payload: dict[str, Any] = {
            "call_id": self._text(call_id, 80) if call_id else None,
            "model": self._text(model, 120),
            "tokens_in": _count(tokens_in),
            "tokens_out": _count(tokens_out),
            "duration_ms": _whole_ms(duration_ms),
            "prompt": self._value(prompt),
            "response": self._value(response),
            "error": error and capture.error_of(error, self.redactor),
            "operation": operation and self._text(operation, 60),
            "tokens_cached": _count(tokens_cached),
            "tokens_written": _count(tokens_written),
            "tokens_reasoning": _count(tokens_reasoning),
            "finish_reason": finish_reason and self._text(finish_reason, 60),
            "cost_nusd": _count(cost_nusd),
        }
        tokens = (payload["tokens_in"] or 0) + (payload["tokens_out"] or 0)
        return self._emit("llm_call", payload, session_id, tokens)

    @_harmless
    def decision(
        self,
        question: str,
        answer: str,
        reason: str = "",
        context: Any = None,
        session_id: str = "",
    ) -> str:
        texts = {"question": question, "answer": answer, "reason": reason}
        clipped = {name: self._text(text, TEXT_CHARS_MAX) for name, text in texts.items()}
        return self._emit("decision", {**clipped, "context": self._value(context)}, session_id)

    @_harmless
    def git_diff(
        self, turn_number: int | None = None, path: str = ".", session_id: str = ""
    ) -> str:
        """Record what changed in the work tree since the last call; nothing outside git."""
        if self.level == "warning":
            return ""
        from holdfast.trace.gitdiff import Turns  # noqa: PLC0415  most programs never need it

        where = str(Path(path).absolute())
        turns = self._turns.get(where) or self._turns.setdefault(where, Turns(Path(where)))
        diff = turns.next()
        if diff is None:
            return ""
        payload = {
            "turn_number": turns.number if turn_number is None else turn_number,
            "files_changed": diff.files_changed,
            "lines_added": diff.lines_added,
            "lines_removed": diff.lines_removed,
            "diff": self.redactor.text(diff.text),
            "truncated": diff.truncated,
        }
        return self._emit("git_diff", payload, session_id)

    @_harmless
    def tool_output(self, call: ToolCall, error: BaseException | None) -> str:
        """Record a tool call that has ended, with what it wrote, however it ended."""
        self.look_for_credentials()
        code = call.exit_code if call.exit_code is not None else call.streams.exit_code()
        if error is None and not code and self.level == "warning":
            return ""
        payload: dict[str, Any] = {
            "call_id": call.call_id,
            "tool": self._text(call.tool, 120),
            "arguments": self._values(call.arguments),
            "exit_code": code if code is None or code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "duration_ms": _whole_ms((time.perf_counter() - call.started_s) * 1000),
            "error": error and capture.error_of(error, self.redactor),
        }
        for name, descriptor in (("stdout", 1), ("stderr", 2)):
            kept = call.streams.buffers[descriptor].keep(self.redactor)
            payload[name] = kept.text or None
            payload[f"{name}_bytes"], payload[f"{name}_sha256"] = kept.size, kept.sha256
        return self._emit("tool_output", payload, call.session_id)

    def look_for_credentials(self) -> None:
        """Hide what became known since the last look; what was known stays hidden."""
        found = {**self._secrets, **self._credentials()}
        if found != self._secrets:
            # A changed value keeps its old one hidden, under a name of its own.
            changed = [name for name, value in self._secrets.items() if value != found[name]]
            size = len(self._secrets)
            kept = {f"{name}_was_{size}": self._secrets[name] for name in changed}
            self._secrets = {**found, **kept}
            self.redactor = Redactor(self._secrets)

    def finish(self) -> None:
        """End every session this process left open; the program is about to exit."""
        for session_id in self.sessions.left_open():
            self.end_session(session_id)

    def _emit(
        self, kind: Kind, payload: Mapping[str, Any], session_id: str, tokens: int = 0
    ) -> str:
        if self.level == "error" and kind != "failure":
            return ""
        where = session_id or self.session_id()
        event = Event(self.ids.new(), where, now_ms(), kind, payload, tokens)
        self.sink.write(event)
        return event.id

    def _text(self, text: object, chars_max: int) -> str:
        """A text that is shown as it is; anything else a program gave instead is described."""
        if type(text) is str:
            return clip(text, self.redactor, chars_max)
        found = describe(text, self.redactor)
        return str(found.get("value", found["type"]))

    def _value(self, value: Any) -> dict[str, Any] | None:
        return None if value is None else describe(value, self.redactor, limits=_SHOWN)

    def _values(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        described = {
            name: describe(value, self.redactor, name=name, limits=_SHOWN)
            for name, value in values.items()
        }
        return described or None


class LlmCall:
    """One model call as a `with` block: set `response`, call `usage`, leave the block.

    An exception is recorded with the call and goes on.
    """

    def __init__(self, recorder: Recorder, model: str, prompt: Any, session_id: str) -> None:
        self._recorder, self.model, self.prompt = recorder, model, prompt
        self.session_id = session_id or recorder.session_id()
        self.response: Any = None
        self.tokens_in: int | None = None
        self.tokens_out: int | None = None
        self._started_s = time.perf_counter()

    def usage(self, tokens_in: int | None, tokens_out: int | None) -> None:
        """What the provider reported; not calling this leaves the usage unknown."""
        self.tokens_in, self.tokens_out = tokens_in, tokens_out

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._recorder.llm_call(
            self.model,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            duration_ms=(time.perf_counter() - self._started_s) * 1000,
            prompt=self.prompt,
            response=self.response,
            error=error,
            session_id=self.session_id,
        )
        if error is not None and isinstance(error, Exception):
            self._recorder.failure(error, "llm", self.session_id)


class ToolCall:
    """One tool call as a `with` block that keeps what the tool writes, even when it raises.

    `exit_code` is taken from the last child process unless the program sets it.
    """

    def __init__(
        self,
        recorder: Recorder,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        descriptors: bool,
        session_id: str,
    ) -> None:
        self._recorder, self.tool, self.arguments = recorder, tool, arguments
        self.session_id = session_id or recorder.session_id()
        self.call_id, self.exit_code = recorder.ids.new(), None
        self.streams = Capture(descriptors=descriptors)
        self.started_s = time.perf_counter()

    exit_code: int | None

    def __enter__(self) -> Self:
        self.streams.start()
        self.started_s = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.streams.stop()
        self._recorder.tool_output(self, error)
        if error is not None and isinstance(error, Exception):
            self._recorder.failure(error, "tool", self.session_id)


class SessionBlock:
    """A session as a `with` block; an exception that leaves it remembers where it was raised."""

    def __init__(self, recorder: Recorder, agent_name: str, task: str) -> None:
        self._recorder, self._row = recorder, (agent_name, task)
        self.session_id = ""

    def __enter__(self) -> str:
        self.session_id = self._recorder.start_session(*self._row)
        return self.session_id

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            remember(error, self.session_id)
        self._recorder.end_session(self.session_id)


def _program(redactor: Redactor) -> tuple[str, str]:
    """The name and the command line of this program, for a session nobody opened."""
    arguments = [word for word in getattr(sys, "argv", ()) if type(word) is str] or ["python"]
    name = Path(arguments[0]).name or "python"
    return name, " ".join(redactor.value([name, *arguments[1:]]))


def _count(number: int | None) -> int | None:
    return number if type(number) is int and number >= 0 else None


def _whole_ms(number: float | None) -> int | None:
    usable = type(number) in (int, float) and number is not None and math.isfinite(number)
    return round(number) if usable and number is not None else None
