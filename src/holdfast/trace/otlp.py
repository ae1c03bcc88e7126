"""A trace as OpenTelemetry spans: one versioned table of names, one request, one sender.

Owns the mapping to the GenAI semantic conventions and the OTLP/HTTP exporter. Does not own the
protobuf encoding (`wire`). A session is a span (`invoke_agent`, or `invoke_workflow` when sessions
nest below it), model and tool calls are its children, failures, decisions and diffs its span
events. Invariants: ids are made from our ids, so that sending twice gives the same spans; usage
stands on the model call alone, never summed on its parents; texts were redacted when stored.
Environment: `OTEL_EXPORTER_OTLP_ENDPOINT`, `_HEADERS`, `_TIMEOUT` (ms), `_PROTOCOL` (http/protobuf
or http/json), their `_TRACES_` forms, and `OTEL_SERVICE_NAME`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from holdfast.trace import read
from holdfast.trace.events import Event
from holdfast.trace.post import Done, PostFailed, post
from holdfast.trace.wire import encode

# GenAI semantic conventions as of semantic-conventions 1.41 and semantic-conventions-genai.
CONVENTIONS = "1.41.0"
NAMES = {
    "operation": "gen_ai.operation.name",
    "agent": "gen_ai.agent.name",
    "conversation": "gen_ai.conversation.id",
    "workflow": "gen_ai.workflow.name",
    "model": "gen_ai.request.model",
    "tokens_in": "gen_ai.usage.input_tokens",
    "tokens_out": "gen_ai.usage.output_tokens",
    "tokens_cached": "gen_ai.usage.cache_read.input_tokens",
    "tokens_written": "gen_ai.usage.cache_creation.input_tokens",
    "tokens_reasoning": "gen_ai.usage.reasoning.output_tokens",
    "finish_reasons": "gen_ai.response.finish_reasons",
    "prompt": "gen_ai.input.messages",
    "response": "gen_ai.output.messages",
    "tool": "gen_ai.tool.name",
    "tool_type": "gen_ai.tool.type",
    "call_id": "gen_ai.tool.call.id",
    "arguments": "gen_ai.tool.call.arguments",
    "result": "gen_ai.tool.call.result",
    "error": "error.type",
    "exit_code": "process.exit.code",
    "exception_type": "exception.type",
    "exception_message": "exception.message",
    "file": "code.file.path",
    "line": "code.line.number",
    "function": "code.function.name",
}
_OF_A_CALL = (
    "model",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "tokens_written",
    "tokens_reasoning",
    "prompt",
    "response",
)
SPANS_MAX = 500
TIMEOUT_MS = 10_000
_KINDS = {"internal": 1, "client": 3}
_ERROR = {"code": 2}


def request(connection: sqlite3.Connection, *, session_id: str = "") -> dict[str, Any]:
    """One ExportTraceServiceRequest in the JSON encoding of OTLP with all spans."""
    return _request(spans(connection, session_id=session_id), "holdfast")


def sync(
    connection: sqlite3.Connection,
    environ: Mapping[str, str],
    *,
    wait: Callable[[float], None] = time.sleep,
) -> Done:
    """Send all spans to the collector of the environment, 500 a request."""
    target, sent, waiting = _Target(environ), 0, spans(connection)
    if target.problem:
        return Done(0, target.problem)
    service = environ.get("OTEL_SERVICE_NAME") or "holdfast"
    try:
        while batch := list(islice(waiting, SPANS_MAX)):
            body = _request(batch, service)
            data = json.dumps(body).encode() if target.json else encode(body)
            post(target.url, data, target.headers, timeout_s=target.timeout_s, wait=wait)
            sent += len(batch)
    except PostFailed as error:
        return Done(sent, str(error))
    return Done(sent)


class _Target:
    """Where and how the environment wants traces to be sent."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        def setting(name: str) -> str:
            own = environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}")
            return own or environ.get(f"OTEL_EXPORTER_OTLP_{name}") or ""

        base = environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").rstrip("/")
        own = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
        self.url = own or (f"{base}/v1/traces" if base else "")
        protocol = setting("PROTOCOL") or "http/protobuf"
        self.json = protocol == "http/json"
        timeout = setting("TIMEOUT")
        self.timeout_s = (int(timeout) if timeout.isdecimal() else TIMEOUT_MS) / 1000
        pairs = [item.partition("=") for item in setting("HEADERS").split(",") if "=" in item]
        self.headers = {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}
        kind = "json" if self.json else "x-protobuf"
        self.headers["Content-Type"] = f"application/{kind}"
        self.problem = ""
        if not self.url:
            self.problem = "OTLP is off: OTEL_EXPORTER_OTLP_ENDPOINT not set"
        elif protocol not in ("http/protobuf", "http/json"):
            self.problem = f"OTLP over {protocol!r} is not supported; use http/protobuf"


# --- spans ----------------------------------------------------------------------------------------


def spans(connection: sqlite3.Connection, *, session_id: str = "") -> Iterator[dict[str, Any]]:
    """Spans in the JSON encoding of OTLP, session by session."""
    rows = read.oldest_first(connection)
    parents = {row["session_id"].rpartition("/")[0] for row in rows}
    for row in rows:
        if session_id not in ("", row["session_id"]):
            continue
        events = list(read.events(connection, session_id=row["session_id"]))
        yield _session(row, events, has_children=row["session_id"] in parents)
        for event in events:
            if event.kind == "llm_call":
                yield _llm_call(event)
            elif event.kind == "tool_output":
                yield _tool(event)


def _session(row: read.SessionRow, events: list[Event], *, has_children: bool) -> dict[str, Any]:
    session_id, operation = row["session_id"], "invoke_workflow" if has_children else "invoke_agent"
    last = max([row["start_ts"], *(event.ts for event in events)])
    span = _span(
        session_id,
        session_id,
        session_id.rpartition("/")[0],
        f"{operation} {row['agent_name']}",
        (row["start_ts"], row["end_ts"] if row["end_ts"] is not None else last),
        {
            "operation": operation,
            "workflow" if has_children else "agent": row["agent_name"],
            "conversation": session_id,
        },
    )
    span["events"] = [_span_event(e) for e in events if e.kind not in ("llm_call", "tool_output")]
    if any(event.kind == "failure" for event in events):
        span["status"] = _ERROR
    return span


def _llm_call(event: Event) -> dict[str, Any]:
    payload = event.payload
    operation = payload.get("operation", "chat")
    attributes = {"operation": operation, "conversation": event.session_id}
    attributes |= {name: payload[name] for name in _OF_A_CALL if name in payload}
    if "finish_reason" in payload:
        attributes["finish_reasons"] = (payload["finish_reason"],)  # of each choice, so a list
    return _call(event, f"{operation} {payload['model']}", attributes, "client")


def _tool(event: Event) -> dict[str, Any]:
    payload = event.payload
    attributes = {"operation": "execute_tool", "tool_type": "function"}
    names = ("tool", "call_id", "arguments", "exit_code")
    attributes |= {name: payload[name] for name in names if name in payload}
    output = "\n".join(payload[name] for name in ("stdout", "stderr") if name in payload)
    if output:
        attributes["result"] = output
    return _call(event, f"execute_tool {payload['tool']}", attributes, "internal")


def _call(event: Event, name: str, attributes: dict[str, Any], kind: str) -> dict[str, Any]:
    payload = event.payload
    failed = "error" in payload or payload.get("exit_code", 0) != 0 or "signal" in payload
    if "error" in payload:
        attributes["error"] = payload["error"]["type"]
    elif failed:
        attributes["error"] = "_OTHER"
    times = (event.ts - payload.get("duration_ms", 0), event.ts)
    span = _span(event.session_id, str(event.id), event.session_id, name, times, attributes, kind)
    if failed:
        span["status"] = _ERROR
    return span


def _span(
    session_id: str,
    own_id: str,
    parent_id: str,
    name: str,
    times: tuple[int, int],
    attributes: Mapping[str, Any],
    kind: str = "internal",
) -> dict[str, Any]:
    span = {
        "traceId": _hash(session_id.split("/")[0], 32),
        "spanId": _hash(own_id, 16),
        "name": name,
        "kind": _KINDS[kind],
        "startTimeUnixNano": str(times[0] * 1_000_000),
        "endTimeUnixNano": str(times[1] * 1_000_000),
        "attributes": _attributes(attributes),
    }
    return {**span, "parentSpanId": _hash(parent_id, 16)} if parent_id else span


def _span_event(event: Event) -> dict[str, Any]:
    payload = event.payload
    attributes: dict[str, Any]
    if event.kind == "failure":
        name, place = "exception", payload.get("location", {})
        attributes = {
            "exception_type": payload["error"]["type"],
            "exception_message": payload["error"]["msg"],
            **place,
        }
    else:
        name = f"agentlog.{event.kind}"
        attributes = {f"agentlog.{key}": value for key, value in payload.items()}
    return {
        "timeUnixNano": str(event.ts * 1_000_000),
        "name": name,
        "attributes": _attributes(attributes),
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": NAMES.get(name, name), "value": _any(value)} for name, value in values.items()]


def _any(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case tuple():
            return {"arrayValue": {"values": [_any(item) for item in value]}}
        case _:
            return {"stringValue": json.dumps(value, ensure_ascii=False)}


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def _request(found: Iterable[dict[str, Any]], service: str) -> dict[str, Any]:
    resource = [{"key": "service.name", "value": {"stringValue": service}}]
    scope = {"name": "holdfast.trace", "version": CONVENTIONS}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": resource},
                "scopeSpans": [{"scope": scope, "spans": list(found)}],
            }
        ]
    }
