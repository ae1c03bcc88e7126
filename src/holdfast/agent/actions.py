"""What a reply asks for: tool calls, an answer, or something that must be said again.

Pure: the same reply always gives the same actions, which the journal records beside it, so that a
changed parser shows in replay. Calls come natively or written into the text (`written`); a think
block is no answer. A call is repaired only where that cannot change its meaning; what is unknown,
unreadable, repeated or too much is answered with the error, never guessed and never dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from holdfast.agent.conversation import encode
from holdfast.agent.written import UNREADABLE, calls_in, decode_at, without_trailing_commas
from holdfast.domain.ports import ModelReply, ToolCall, ToolSpec

CALLS_MAX = 16

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```\w*[ \t]*\n(.*)\n```", re.DOTALL)
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}

Check = Callable[[ToolSpec, Mapping[str, Any]], list[str]]


class Call(Struct, frozen=True, kw_only=True):
    """One call, ready to be performed, or refused with `problem` before anything happened."""

    call: ToolCall
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


class Actions(Struct, frozen=True, kw_only=True):
    """`kind` says what the loop does next; `answer` is the text without think blocks."""

    kind: Literal["calls", "answer", "cut", "empty"]
    calls: tuple[Call, ...] = ()
    answer: str = ""


def parse(reply: ModelReply, tools: Mapping[str, ToolSpec], check: Check) -> Actions:
    """Read a reply. `check` lists what is wrong with a call's arguments."""
    text = _THINK.sub("", reply.text).strip()
    raw = list(reply.calls) or calls_in(text, tools)
    if reply.finish_reason == "length" and not reply.calls:
        return Actions(kind="cut", answer=text)
    if raw:
        return Actions(kind="calls", calls=_prepared(raw, tools, check), answer=text)
    return Actions(kind="answer" if text else "empty", answer=text)


def _prepared(raw: list[ToolCall], tools: Mapping[str, ToolSpec], check: Check) -> tuple[Call, ...]:
    """The calls in order, each with an id of its own; one beyond the limit says what became of it.

    A call that stands in the same reply already is not performed again when nothing but reading
    stands between the two: nothing it could see or do has changed.
    """
    ids: set[str] = set()
    done = [_prepare(_distinct(call, ids), tools, check) for call in raw[: CALLS_MAX + 1]]
    since: set[bytes] = set()
    for index, ready in enumerate(done if len(done) > 1 else ()):
        spec = tools.get(ready.call.name)
        same = encode([ready.call.name, ready.arguments])
        if index == CALLS_MAX:
            said = f"TOO_MANY_CALLS: {len(raw)} calls in one reply; the first {CALLS_MAX} are done"
            done[index] = Call(call=ready.call, problem=f"{said}. Ask again for the others.")
        elif not ready.problem and same in since:
            said = "REPEATED_CALL: the same call stands before in this reply and is done once"
            done[index] = Call(call=ready.call, problem=f"{said}. If you meant it, ask again.")
        elif not ready.problem and spec is not None:
            since = {*since, same} if spec.effect == "pure" else {same}
    return tuple(done)


def _distinct(call: ToolCall, ids: set[str]) -> ToolCall:
    """The call with an id no other call of the reply has: some servers number them all alike."""
    name, copies = call.id, 1
    while name in ids:
        copies += 1
        name = f"{call.id}_{copies}"
    ids.add(name)
    return call if name == call.id else replace(call, id=name)


def _prepare(call: ToolCall, tools: Mapping[str, ToolSpec], check: Check) -> Call:
    spec = tools.get(call.name) or tools.get(call.name.strip().removeprefix("functions."))
    if spec is None:
        return Call(
            call=call, problem=f"UNKNOWN_TOOL: there is no tool {call.name!r}; " + _list(tools)
        )
    if spec.name != call.name:
        call = replace(call, name=spec.name)
    arguments = read_object(call.arguments)
    if arguments is None:
        shown = call.arguments.removeprefix(UNREADABLE)[:200]
        return Call(
            call=call,
            problem="INVALID_ARGUMENTS: the arguments are not one whole JSON object, "
            f"cut off or garbled: {shown}",
        )
    arguments = _typed(arguments, spec)
    problems = check(spec, arguments)
    if problems:
        return Call(call=call, problem="INVALID_ARGUMENTS: " + "; ".join(problems))
    return Call(call=call, arguments=arguments)


def read_object(text: str) -> dict[str, Any] | None:
    """One JSON object, after the repairs that cannot change its meaning; None when it is not one.

    Repaired: prose or a fence around it, a trailing comma, raw newlines in strings, an object that
    was encoded twice. An object that is cut off, says a key twice, or holds what the journal could
    not store (an infinite number, half a character) is for the model to mend.
    """
    if text.startswith(UNREADABLE):
        return None
    stripped = text.strip() or "{}"
    for repair in (str, without_trailing_commas):  # as it is, then mended
        value = _whole(repair(stripped))
        if isinstance(value, str):
            value = _whole(value.strip())
        if isinstance(value, dict) and _storable(value):
            return value
    return None


def _whole(text: str) -> Any:
    """The one JSON value of a text that is nothing else, or that has prose or a fence around it."""
    decoded = decode_at(text, 0)
    if decoded is not None:
        return decoded[0] if not text[decoded[1] :].strip() else None
    if text.startswith(("{", "[", '"')):
        return None  # broken inside: a part of it would mean something else
    fenced = _FENCED.search(text)
    body = fenced[1].strip() if fenced else text[text.find("{") :]
    decoded = decode_at(body, 0) if body.startswith("{") else None
    return None if decoded is None or "{" in body[decoded[1] :] else decoded[0]


def _storable(value: dict[str, Any]) -> bool:
    try:
        return bool(msgspec.json.decode(encode(value)) == value)
    except (ValueError, OverflowError, RecursionError, TypeError):
        return False


def _typed(arguments: dict[str, Any], spec: ToolSpec) -> dict[str, Any]:
    """Values written as text where the schema wants none: `"10"` for an integer is 10."""
    properties = spec.parameters.get("properties", {})
    found = dict(arguments)
    for key, value in arguments.items():
        if not isinstance(value, str):
            continue
        wanted = properties.get(key)
        kind = _TYPES.get(str(wanted.get("type"))) if isinstance(wanted, Mapping) else None
        if kind is None:
            continue
        meant = _whole(value.strip())
        right = isinstance(meant, kind) and (kind is bool or not isinstance(meant, bool))
        if right and _storable({key: meant}):
            found[key] = meant
    return found


def _list(tools: Mapping[str, ToolSpec]) -> str:
    return "tools: " + ", ".join(sorted(tools))
