"""What an agent is told about a failure, within a budget of tokens.

Owns the choice and order of what is shown and the words that say what was left out. Does not own
queries (`read`) or the token estimate (`tokens`). Invariants: the whole text, header and
explanation included, stays within the budget; the same rows give the same bytes; whatever is left
out is counted in the last line; values are shown under readable names.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, assert_never

from holdfast.trace import read
from holdfast.trace.events import Event, Kind
from holdfast.trace.tokens import MARGIN, count, pieces

# The payload keys that a step's bytes hold and its event leaves out.
Step = Callable[[Event], Mapping[str, Any]]

TOKENS_MIN = 100
_LINE_CHARS_MIN = 24
_FOOTER_PIECES = 30


@dataclass
class _Section:
    """Lines about one thing; `share` of the budget is its own before the others may have it."""

    name: str
    share: float
    lines: list[str]
    unit: str = "lines"
    taken: list[str] = field(default_factory=list)
    cut: bool = False

    @property
    def left_out(self) -> int:
        return len(self.lines) - len(self.taken)


def context(
    connection: sqlite3.Connection,
    max_tokens: int,
    *,
    session_id: str = "",
    failure: Event | None = None,
    step: Step = lambda event: {},
) -> str:
    """The latest failure (of a session, if one is named) with all that explains it.

    At most `max_tokens` tokens; fewer than 100 give the beginning of what 100 would. Without any
    failure: the session's state.
    `step` gives what an event only points to, under the event's own keys, redacted.
    """
    if failure is None:
        found = read.last(connection, "failure", session_id=session_id)
        failure = found[0] if found else None
    if failure is not None:
        session_id = failure.session_id
    if not session_id:
        newest = read.sessions(connection, 1)
        session_id = newest[0]["session_id"] if newest else ""
    row = read.session(connection, session_id)
    if row is None:
        return "No session is recorded.\n"
    sections = _sections(connection, row, failure, step)
    text = _fit(_header(row), sections, max(max_tokens, TOKENS_MIN))
    return text if max_tokens >= TOKENS_MIN else _beginning(text, max_tokens)


def failures_at(connection: sqlite3.Connection, file: str, line: int | None) -> list[Event]:
    """The newest failures whose place is this file (a path or its end), newest first."""
    found = read.last(connection, "failure", limit=1000)
    places = [(event, event.payload.get("location", {})) for event in found]
    return [
        event
        for event, place in places
        if (place.get("file") == file or str(place.get("file", "")).endswith(f"/{file}"))
        and line in (None, place.get("line"))
    ]


def show(value: Mapping[str, Any]) -> str:
    """A descriptor as one line, close to how Python would write the value."""
    kind, size = value["type"], value.get("len")
    if "entries" in value:
        parts = [f"{json.dumps(key)}: {show(item)}" for key, item in value["entries"].items()]
        return _within("{", parts, "}", size)
    if "items" in value and size is not None:
        brackets = {"tuple": "()", "set": "{}"}.get(kind, "[]")
        return _within(brackets[0], [show(item) for item in value["items"]], brackets[1], size)
    if "attrs" in value or "items" in value:
        parts = [show(item) for item in value.get("items", [])]
        parts += [f"{name}={show(item)}" for name, item in value.get("attrs", {}).items()]
        return f"{kind}({', '.join(parts)})"
    if "value" not in value:
        return f"<{kind}>"
    if kind == "str":
        return json.dumps(value["value"], ensure_ascii=False)
    plain = kind in ("int", "float", "bool", "NoneType")
    shown = str(value["value"]) if plain else json.dumps(value["value"], ensure_ascii=False)
    return shown if plain else f"{kind}({shown})"


def when(ts: int) -> str:
    """A time in ms since the epoch, in UTC, as a person reads it."""
    return datetime.fromtimestamp(ts / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def line(event: Event) -> str:
    """One event in one line."""
    payload = event.payload
    match event.kind:
        case "failure":
            error, place = payload["error"], payload.get("location", {})
            where = f" at {place['file']}:{place['line']}" if place else ""
            return f"{error['type']}: {_one_line(error['msg'], 120)}{where}"
        case "llm_call":
            return f"{payload['model']}  {payload.get('tokens_total', 'unknown')} tokens"
        case "tool_output":
            return _tool(payload)[0].lines[0].removeprefix("## last tool: ")
        case "git_diff":
            return _diff(payload)[0].lines[0].removeprefix("## last change: ")
        case "decision":
            return _decision(payload)[0].lines[0].removeprefix("## decided: ")
    assert_never(event.kind)


def _within(opening: str, parts: list[str], closing: str, size: int | None) -> str:
    more, middle = (size or 0) - len(parts), (len(parts) + 1) // 2
    gap = [f"…{more} more…"] if more > 0 else []
    return opening + ", ".join([*parts[:middle], *gap, *parts[middle:]]) + closing


def _header(row: read.SessionRow) -> str:
    name = _one_line(row["agent_name"], 40)
    return f"# session {row['session_id']} · {name} · {row['total_tokens']} tokens in all"


def _sections(
    connection: sqlite3.Connection, row: read.SessionRow, failure: Event | None, step: Step
) -> list[_Section]:
    session_id = row["session_id"]
    sections = [] if failure is None else _failure(failure)
    before = None if failure is None else failure.id
    kinds: tuple[tuple[Kind, Callable[[Mapping[str, Any]], list[_Section]]], ...] = (
        ("tool_output", _tool),
        ("git_diff", _diff),
        ("decision", _decision),
        ("llm_call", _call),
    )
    for kind, make in kinds:
        found = read.last(connection, kind, session_id=session_id, before=before)
        sections += [
            section for event in found for section in make({**event.payload, **step(event)})
        ]
    return [*sections, _about(connection, row, failure)]


def _about(connection: sqlite3.Connection, row: read.SessionRow, failure: Event | None) -> _Section:
    """Where to look further; the first thing to go when the budget is small."""
    state = "ended" if row["end_ts"] is not None else "open"
    failures = read.count(connection, "failure", row["session_id"])
    plural = "" if failures == 1 else "s"
    lines = [f"started {when(row['start_ts'])}, {state}, {failures} failure{plural}"]
    if row["task"]:
        lines.append(f"task: {_one_line(row['task'], 200)}")
    if failure is not None:
        lines.append(f"this failure: {failure.id} at {when(failure.ts)}")
    return _Section("the session", 0.05, lines)


def _failure(event: Event) -> list[_Section]:
    payload = event.payload
    error, place = payload["error"], payload.get("location", {})
    what = [f"## {error['type']}: {_one_line(error['msg'], 300)}"]
    if place:
        what.append(f"at {place['file']}:{place['line']} in {place['function']}")
    if payload.get("source"):
        what.append(f"> {payload['source']}")
    values = [f"{name} = {show(value)}" for name, value in payload.get("locals", {}).items()]
    return [
        _Section("the error", 0.2, what),
        _Section("local values", 0.35, values, "values"),
        _Section("causes", 0.05, [f"caused by {text}" for text in payload.get("causes", [])]),
    ]


def _tool(payload: Mapping[str, Any]) -> list[_Section]:
    ended = [
        f"{name} {payload[key]}"
        for name, key in (("exit code", "exit_code"), ("signal", "signal"))
        if key in payload
    ]
    if "error" in payload:
        ended.append(f"{payload['error']['type']}: {_one_line(payload['error']['msg'], 200)}")
    head = f"## last tool: {payload['tool']} ({', '.join(ended) or 'ended'})"
    streams = []
    for name in ("stderr", "stdout"):
        if payload.get(name):
            # The end of an output says most, so it is offered from its end.
            streams.append(_Section(name, 0.1, _tail_first(name, payload[name])))
    return [_Section("the last tool", 0.05, [head]), *streams]


def _diff(payload: Mapping[str, Any]) -> list[_Section]:
    head = (
        f"## last change: turn {payload['turn_number']}, {payload['files_changed']} files,"
        f" +{payload['lines_added']} -{payload['lines_removed']}"
    )
    return [_Section("the last diff", 0.15, [head, *payload["diff"].splitlines()])]


def _decision(payload: Mapping[str, Any]) -> list[_Section]:
    reason = f" because {_one_line(payload['reason'], 200)}" if payload.get("reason") else ""
    question, answer = (_one_line(payload[name], 200) for name in ("question", "answer"))
    return [_Section("the last decision", 0.05, [f"## decided: {question} -> {answer}{reason}"])]


def _call(payload: Mapping[str, Any]) -> list[_Section]:
    lines = [f"## last model call: {payload['model']}"]
    lines += [
        f"{name}: {show(payload[name])}" for name in ("prompt", "response") if name in payload
    ]
    return [_Section("the last model call", 0.05, lines)]


def _tail_first(name: str, text: str) -> list[str]:
    return [f"{name}: {line}" for line in reversed(text.splitlines())]


def _fit(header: str, sections: list[_Section], max_tokens: int) -> str:
    """Two rounds: every section takes its share, then what is left goes by order."""
    budget = int(max_tokens / MARGIN)
    header = _cut(header, budget - _FOOTER_PIECES) + "\n"
    left = budget - pieces(header) - _FOOTER_PIECES
    whole = left
    for section in sections:
        left -= _take(section, min(left, int(whole * section.share)), may_cut=False)
    for section in sections:
        left -= _take(section, left, may_cut=True)
    body = "".join(f"{line}\n" for section in sections for line in _in_order(section))
    text = header + body + _footer(sections)
    assert count(text) <= max_tokens
    return text


def _take(section: _Section, room: int, *, may_cut: bool) -> int:
    """Lines from the front of what the section still has, as many as fit; returns their pieces."""
    spent = 0
    while section.left_out and not section.cut:
        line = section.lines[len(section.taken)]
        size = pieces(line + "\n")
        if spent + size > room:
            shorter = _cut(line, room - spent - 1) if may_cut else ""
            if len(shorter) < _LINE_CHARS_MIN:
                break
            line, size, section.cut = shorter, pieces(shorter + "\n"), True
        section.taken.append(line)
        spent += size
    return spent


def _in_order(section: _Section) -> list[str]:
    return section.taken[::-1] if section.name in ("stdout", "stderr") else section.taken


def _cut(text: str, room: int) -> str:
    """The longest beginning, by halving, that fits into `room` pieces; ends in … if it was cut."""
    if pieces(text + "\n") <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if pieces(text[:middle] + "…\n") <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low] + "…" if low else ""


def _beginning(text: str, max_tokens: int) -> str:
    cut = _cut(text.removesuffix("\n"), int(max_tokens / MARGIN))
    return f"{cut}\n" if cut else ""


def _footer(sections: list[_Section]) -> str:
    parts = [
        f"{section.left_out} {section.unit} of {section.name}"
        if section.left_out
        else f"the end of {section.name}"
        for section in sections
        if section.left_out or section.cut
    ]
    if not parts:
        return "(complete)\n"
    text = f"(left out for the budget: {', '.join(parts)})"
    return _cut(text, _FOOTER_PIECES - 1) + "\n"


def _one_line(text: str, chars_max: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= chars_max else flat[: chars_max - 1] + "…"
