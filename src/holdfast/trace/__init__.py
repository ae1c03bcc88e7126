"""The agent-native trace engine: evidence for agents, alone or inside. An island.

One environment switch, `AGENTLOG=true`, makes every function below write to one SQLite file of two
tables; without it they do nothing, in well under a microsecond, and nothing else is imported.
Standard library only; imports nothing else of Holdfast. No page, no socket, no thread but the one
that copies a tool's child output.

The one seam is `Sink` (`events`): `open_session`, `close_session`, `write(event)`. Readers, exports
and sync only SELECT from these names, which may be tables (alone) or views (inside Holdfast):

    agent_sessions (session_id, start_ts, end_ts, agent_name, task, total_tokens)
    events (id, session_id, ts, event_type, payload)

Times are ms since the epoch. `id` sorts in the order of happening. `payload` is JSON under the
short keys of `events.FIELDS`; `events.compact` and `events.readable` go from readable keys to short
ones and back, and whoever writes rows another way uses `compact`.

Environment: `AGENTLOG` (true, 1, yes, on), `AGENTLOG_FILE` (agentlog.db in the current directory),
`AGENTLOG_LEVEL` (debug and info: everything; warning: failures, decisions and calls that failed;
error: failures), `AGENTLOG_BUFFER_SIZE` (events that may wait in memory; 1), and
`AGENTLOG_PARENT_SESSION` (the session that this process's sessions nest below).
"""

from __future__ import annotations

import os
from types import MappingProxyType

TYPE_CHECKING = False  # importing `typing` for it would be most of this module's import time
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Any, Self

    from holdfast.trace.recorder import LlmCall, Recorder, ToolCall
    from holdfast.trace.switch import Switch

__all__ = [
    "end_session",
    "get_context",
    "get_session_id",
    "llm_call",
    "log_decision",
    "log_failure",
    "log_git_diff",
    "log_llm_call",
    "session",
    "start_session",
    "token_summary",
    "tool_call",
]


class _Off:
    """What the `with` blocks give while the switch is off: takes everything, does nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Lets every exception pass."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Forgets what a program notes on the call."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *args: Any, **named: Any) -> Self:
        return self


class _OffSession:
    """The block of a session while the switch is off: its id is empty."""

    __slots__ = ()

    def __enter__(self) -> str:
        return ""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Lets every exception pass."""


_OFF: Any = _Off()
_OFF_SESSION = _OffSession()


def start_session(agent_name: str, task: str = "", *, session_id: str = "") -> str:
    """Open a session below the ambient one; it is ambient for this task or thread until ended."""
    recorder = active()
    return recorder.start_session(agent_name, task, session_id) if recorder is not None else ""


def end_session(session_id: str = "") -> None:
    """Close a session, the ambient one unless said; its parent is ambient again. Idempotent."""
    recorder = active()
    if recorder is not None:
        recorder.end_session(session_id)


def session(agent_name: str, task: str = "") -> AbstractContextManager[str]:
    """`start_session` and `end_session` around a block; gives the id."""
    recorder = active()
    if recorder is None:
        return _OFF_SESSION
    from holdfast.trace.recorder import SessionBlock  # noqa: PLC0415  nothing is loaded when off

    return SessionBlock(recorder, agent_name, task)


def get_session_id() -> str:
    """The ambient session; empty when there is none, or while the switch is off."""
    recorder = active()
    return recorder.sessions.current() if recorder is not None else ""


def log_llm_call(
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
    """Record one model call; returns the event id. Counts left out are unknown, not zero.

    An explicit `session_id` wins over the ambient one. `cost_nusd` is in 10⁻⁹ US dollars.
    """
    recorder = active()
    if recorder is None:
        return ""
    return recorder.llm_call(
        model,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        duration_ms=duration_ms,
        prompt=prompt,
        response=response,
        error=error,
        call_id=call_id,
        session_id=session_id,
        operation=operation,
        tokens_cached=tokens_cached,
        tokens_written=tokens_written,
        tokens_reasoning=tokens_reasoning,
        finish_reason=finish_reason,
        cost_nusd=cost_nusd,
    )


def llm_call(model: str, *, prompt: Any = None, session_id: str = "") -> LlmCall:
    """A block around one model call: set `.response`, call `.usage(tokens_in, tokens_out)`."""
    recorder = active()
    if recorder is None:
        return _OFF  # type: ignore[no-any-return]  # stands for every block
    from holdfast.trace.recorder import LlmCall  # noqa: PLC0415  nothing is loaded when off

    return LlmCall(recorder, model, prompt, session_id)


def tool_call(
    tool: str,
    arguments: Mapping[str, Any] = MappingProxyType({}),
    *,
    descriptors: bool = False,
    session_id: str = "",
) -> ToolCall:
    """A block around one tool call that keeps what it prints and what its children write.

    With `descriptors` C-level writes too; such blocks in other threads wait for each other.
    """
    recorder = active()
    if recorder is None:
        return _OFF  # type: ignore[no-any-return]  # stands for every block
    from holdfast.trace.recorder import ToolCall  # noqa: PLC0415  nothing is loaded when off

    return ToolCall(recorder, tool, arguments, descriptors=descriptors, session_id=session_id)


def log_git_diff(turn_number: int | None = None, path: str = ".", *, session_id: str = "") -> str:
    """Record what changed in the work tree around `path` since the last call, or since HEAD.

    Returns the event id; empty when nothing changed and outside git.
    """
    recorder = active()
    return recorder.git_diff(turn_number, path, session_id) if recorder is not None else ""


def log_decision(
    question: str, answer: str, reason: str = "", context: Any = None, *, session_id: str = ""
) -> str:
    """Record a choice and why; returns the event id."""
    recorder = active()
    if recorder is None:
        return ""
    return recorder.decision(question, answer, reason, context, session_id)


def log_failure(error: BaseException, *, session_id: str = "") -> str:
    """Record a handled exception with the values at its bottom frame; once per exception."""
    recorder = active()
    return recorder.failure(error, "handled", session_id) if recorder is not None else ""


def token_summary(session_id: str = "") -> dict[str, Any]:
    """Tokens and money of one session, the ambient one unless said, over all its recorded calls.

    `{"session_id", "models": {model: {"calls", "unknown_calls", "estimated_calls", "tokens_in",
    "tokens_out", "tokens_cached", "tokens_reasoning", "tokens_total", "cost_nusd",
    "unpriced_calls"}}, "total_tokens", "unknown_calls", "estimated_calls", "cost_nusd",
    "unpriced_calls", "cost_usd"}`; `cost_usd` is None when a call has no known price. Empty while
    the switch is off.
    """
    recorder = active()
    if recorder is None:
        return {}
    from holdfast.trace.read import token_summary as summary  # noqa: PLC0415  nothing is loaded when off

    with process().reader() as connection:
        return summary(connection, session_id or recorder.sessions.current())


def get_context(max_tokens: int = 800, *, session_id: str = "") -> str:
    """What an agent should know of the latest failure, in at most `max_tokens` tokens of text."""
    if active() is None:
        return ""
    from holdfast.trace.report import context  # noqa: PLC0415  nothing is loaded when off

    with process().reader() as connection:
        return context(connection, max_tokens, session_id=session_id)


# --- the switch -----------------------------------------------------------------------------------

# A process has one switch, read at the first call. None: not read; False: off.
_state: Any = None


def active() -> Recorder | None:
    """The process's recorder, or None while the switch is off."""
    if _state is False:
        return None
    if _state is None:
        return _read_switch()
    recorder: Recorder = _state.recorder
    return recorder


def _read_switch() -> Recorder | None:
    global _state
    if os.environ.get("AGENTLOG", "").strip().lower() not in ("true", "1", "yes", "on"):
        _state = False
        return None
    return process().recorder


def process() -> Switch:
    """What is traced with in this process, turned on now if it was not."""
    global _state
    if not _state:
        from holdfast.trace.switch import Switch  # noqa: PLC0415  nothing is loaded when off

        _state = Switch(os.environ)
        _state.turn_on()
    found: Switch = _state
    return found


def forget_switch() -> None:
    """Turn off and read the environment anew at the next call; for tests and embedding."""
    global _state
    if _state:
        _state.turn_off()
    _state = None
