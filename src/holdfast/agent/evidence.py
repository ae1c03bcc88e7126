"""Evidence of steps: trace events under the trace engine's own keys, pointing to the step's bytes.

An event names its step and never copies what the step holds. Written by the journal in the step's
own transaction; inside Holdfast the views `agent_sessions` and `events` read them.
"""

from __future__ import annotations

from typing import Any

from holdfast.agent.conversation import encode
from holdfast.domain.model import CheckResult
from holdfast.domain.ports import CommandResult, Diff, ModelReply, Observation
from holdfast.engine.journal import Record
from holdfast.trace.events import Kind, compact


def llm_call(key: str, reply: ModelReply, took_ms: int) -> Record:
    usage = reply.usage
    return _record(
        "llm_call",
        call_id=key,
        model=reply.model,
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens_cached=usage.tokens_cached or None,
        tokens_written=usage.tokens_written or None,
        tokens_reasoning=usage.tokens_reasoning or None,
        cost_nusd=usage.cost_nusd,
        finish_reason=reply.finish_reason,
        estimated=None if usage.reported else True,
        duration_ms=took_ms,
        step=key,
    )


def tool_output(key: str, observation: Observation) -> Record:
    error = observation.error
    return _record(
        "tool_output",
        call_id=key,
        tool=observation.tool,
        exit_code=observation.data.get("exit_code"),
        stdout_bytes=len(observation.output.encode()),
        error=_error(error.code, error.message) if error else None,
        step=key,
    )


def command_output(key: str, result: CommandResult) -> Record:
    return _record(
        "tool_output",
        call_id=key,
        tool="shell",
        exit_code=result.exit_code,
        signal=result.signal,
        stdout_bytes=result.stdout_bytes,
        stderr_bytes=result.stderr_bytes,
        duration_ms=result.duration_ms,
        step=key,
    )


def check_output(key: str, result: CheckResult) -> Record:
    failed = None if result.verdict == "pass" else _error(result.verdict, result.command)
    return _record(
        "tool_output",
        call_id=key,
        tool="check",
        exit_code=result.exit_code,
        duration_ms=result.duration_ms,
        error=failed,
        step=key,
    )


def git_diff(key: str, turn: int, diff: Diff) -> Record:
    """What a step changed: true totals, and the first lines of the diff."""
    return _record(
        "git_diff",
        turn_number=turn,
        files_changed=diff.files_changed,
        lines_added=diff.lines_added,
        lines_removed=diff.lines_removed,
        diff=diff.text,
        truncated=diff.truncated,
        step=key,
    )


def decision(key: str, question: str, answer: str, reason: str) -> Record:
    return _record("decision", question=question, answer=answer, reason=reason, step=key)


def _error(kind: str, message: str) -> dict[str, str]:
    return {"type": kind, "msg": message}


def _record(kind: Kind, **payload: Any) -> Record:
    return Record(kind=kind, body=encode(compact(kind, payload)))
