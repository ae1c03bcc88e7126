"""The five kinds of event, their payloads, and the short keys under which payloads are stored.

Owns the vocabulary: what a payload may hold and how it is written (`compact`) and read back
(`readable`). Does not own where events go (`store`), nor how values are described (`describe`).

Invariants: `readable(kind, compact(kind, payload)) == payload` for every payload without None
values; an unknown key is refused, so that the table below is complete; `tokens_total` is computed,
never stored. A descriptor of a plain scalar is stored as the scalar itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, assert_never

Kind = Literal["failure", "llm_call", "tool_output", "git_diff", "decision"]
KINDS: tuple[Kind, ...] = ("failure", "llm_call", "tool_output", "git_diff", "decision")

Shape = Literal["plain", "error", "location", "value", "values"]


class Session(NamedTuple):
    """One agent's run: times in ms since the epoch. A nested session's id is `parent/child`."""

    session_id: str
    start_ts: int
    agent_name: str
    task: str = ""


class Event(NamedTuple):
    """One immutable fact. `payload` has readable keys and is redacted; `ts` is ms since the epoch.

    Values of None mean that there is nothing to say. `tokens` is what the event adds to its
    session's total.
    """

    id: str
    session_id: str
    ts: int
    kind: Kind
    payload: Mapping[str, Any]
    tokens: int = 0

    def as_json(self) -> dict[str, Any]:
        """The object that every JSON output writes."""
        return {
            "type": "event",
            "id": self.id,
            "session_id": self.session_id,
            "ts": self.ts,
            "event_type": self.kind,
            "payload": self.payload,
        }


class Sink(Protocol):
    """Where the library writes: alone a file of two tables, inside Holdfast the engine's log.

    None of these raises towards the program that is traced; what cannot be written now is kept for
    the next call, up to a bound that the sink states.
    """

    def open_session(self, session: Session) -> None: ...

    def close_session(self, session_id: str, end_ts: int) -> None:
        """Idempotent: the first end stands."""
        ...

    def write(self, event: Event) -> None: ...


class Field(NamedTuple):
    """A payload key as it is stored, and the shape of what it holds."""

    short: str
    shape: Shape = "plain"


FIELDS: dict[Kind, dict[str, Field]] = {
    "failure": {
        "error": Field("e", "error"),
        "location": Field("l", "location"),
        "source": Field("s"),  # the text of the failing line
        "locals": Field("v", "values"),  # of the bottom frame, names on the failing line first
        "causes": Field("c"),  # chained exceptions, one line of text each
        "origin": Field("o"),  # main, thread, unraisable, asyncio, tool, handled
        "step": Field("p"),  # inside Holdfast: the step whose bytes this is about
    },
    "llm_call": {
        "call_id": Field("c"),  # left out where it is the event's own id
        "model": Field("m"),
        "operation": Field("a"),  # chat unless said
        "tokens_in": Field("i"),
        "tokens_out": Field("o"),
        "tokens_cached": Field("k"),  # of tokens_in, read from a provider's cache
        "tokens_written": Field("w"),  # of tokens_in, written to one
        "tokens_reasoning": Field("t"),  # of tokens_out
        "estimated": Field("s"),  # true where the provider did not report these counts
        "finish_reason": Field("f"),  # why the model stopped
        "cost_nusd": Field("n"),  # 10^-9 US dollars
        "duration_ms": Field("d"),
        "prompt": Field("q", "value"),
        "response": Field("r", "value"),
        "error": Field("e", "error"),
        "step": Field("p"),
    },
    "tool_output": {
        "call_id": Field("c"),
        "tool": Field("t"),
        "arguments": Field("a", "values"),
        "stdout": Field("o"),
        "stderr": Field("e"),
        "stdout_bytes": Field("ob"),  # sizes and hashes only where a stream was cut
        "stderr_bytes": Field("eb"),
        "stdout_sha256": Field("oh"),
        "stderr_sha256": Field("eh"),
        "exit_code": Field("x"),
        "signal": Field("g"),
        "duration_ms": Field("d"),
        "error": Field("r", "error"),
        "step": Field("p"),
    },
    "git_diff": {
        "turn_number": Field("t"),
        "files_changed": Field("f"),
        "lines_added": Field("a"),
        "lines_removed": Field("r"),
        "diff": Field("d"),
        "truncated": Field("x"),
        "step": Field("p"),
    },
    "decision": {
        "question": Field("q"),
        "answer": Field("a"),
        "reason": Field("r"),
        "context": Field("c", "value"),
        "step": Field("p"),
    },
}
_ERROR = {"type": "t", "msg": "m"}
_LOCATION = {"file": "f", "line": "n", "function": "c"}
_VALUE = {"type": "t", "value": "v", "len": "n", "items": "i", "entries": "e", "attrs": "a"}
_ERROR_BACK, _LOCATION_BACK, _VALUE_BACK = (
    dict(zip(names.values(), names, strict=True)) for names in (_ERROR, _LOCATION, _VALUE)
)
_SCALARS = {"str": str, "int": int, "float": float, "bool": bool, "NoneType": type(None)}
_SHORT_KEYS = {
    kind: {"tokens_total": "", **{name: own.short for name, own in fields.items()}}
    for kind, fields in FIELDS.items()
}
_SHAPED = {k: [own for own in of.values() if own.shape != "plain"] for k, of in FIELDS.items()}
_BY_SHORT = {
    kind: {field.short: (name, field.shape) for name, field in fields.items()}
    for kind, fields in FIELDS.items()
}


def compact(kind: Kind, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The payload under its stored keys; None values are left out. Unknown keys raise KeyError."""
    short = _SHORT_KEYS[kind]
    stored = {short[name]: value for name, value in payload.items() if value is not None}
    stored.pop("", None)
    for key, shape in _SHAPED[kind]:
        if key in stored:
            stored[key] = _reshape(shape, stored[key], _SHORT)
    return stored


def readable(kind: Kind, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The payload as an agent reads it; the inverse of `compact`. Unknown keys stay as they are."""
    names = _BY_SHORT[kind]
    payload: dict[str, Any] = {}
    for short, value in stored.items():
        name, shape = names.get(short, (short, "plain"))
        payload[name] = value if shape == "plain" else _reshape(shape, value, _LONG)
    if payload.keys() >= {"tokens_in", "tokens_out"}:
        payload["tokens_total"] = payload["tokens_in"] + payload["tokens_out"]
    return payload


def _reshape(shape: Shape, value: Any, to: _Spelling) -> Any:
    match shape:
        case "error":
            return _rename(value, to.error)
        case "location":
            return _rename(value, to.location)
        case "value":
            return to.value(value)
        case "values":
            return {name: to.value(item) for name, item in value.items()}
        case "plain":
            return value
    assert_never(shape)


def _shorten_value(one: Mapping[str, Any]) -> Any:
    if len(one) == 2 and "value" in one and type(one["value"]) is _SCALARS.get(one.get("type", "")):
        return one["value"]
    return _within(_rename(one, _VALUE), _shorten_value)


def _lengthen_value(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return _within(_rename(value, _VALUE_BACK), _lengthen_value)
    return {"type": type(value).__name__, "value": value}


def _rename(value: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: item for name, item in value.items()}


def _within(value: dict[str, Any], inner: Callable[[Any], Any]) -> dict[str, Any]:
    for name, item in value.items():
        if isinstance(item, list):
            value[name] = [inner(part) for part in item]
        elif isinstance(item, dict):
            value[name] = {key: inner(part) for key, part in item.items()}
    return value


class _Spelling(NamedTuple):
    """How the parts of a payload are renamed in one direction."""

    error: Mapping[str, str]
    location: Mapping[str, str]
    value: Callable[[Any], Any]


_SHORT = _Spelling(_ERROR, _LOCATION, _shorten_value)
_LONG = _Spelling(_ERROR_BACK, _LOCATION_BACK, _lengthen_value)
