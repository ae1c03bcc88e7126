"""What a reply asks for: tool calls, an answer, or something that must be said again.

Pure: the same reply always gives the same actions, which the journal records beside it, so that a
changed parser shows in replay. Calls come natively or as JSON in the text; a think block is no
answer. What looks like a call but cannot be read is answered with the error, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.domain.ports import ModelReply, ToolCall, ToolSpec

CALLS_MAX = 16

_THINK = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```(?:json|tool_call|tool)?[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call, ready to be performed, or refused with `problem` before anything happened."""

    call: ToolCall
    arguments: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Actions:
    """`kind` says what the loop does next; `answer` is the text without think blocks."""

    kind: Literal["calls", "answer", "cut", "empty"]
    calls: tuple[Call, ...] = ()
    answer: str = ""


def parse(
    reply: ModelReply,
    tools: Mapping[str, ToolSpec],
    check: Callable[[ToolSpec, Mapping[str, Any]], list[str]],
) -> Actions:
    """Read a reply. `check` lists what is wrong with a call's arguments."""
    text = _THINK.sub("", reply.text).strip()
    raw = list(reply.calls) or _calls_in_text(text, tools)
    if reply.finish_reason == "length" and not reply.calls:
        return Actions(kind="cut", answer=text)
    if raw:
        calls = tuple(_prepare(call, tools, check) for call in raw[:CALLS_MAX])
        return Actions(kind="calls", calls=calls, answer=text)
    return Actions(kind="answer" if text else "empty", answer=text)


def _prepare(
    call: ToolCall,
    tools: Mapping[str, ToolSpec],
    check: Callable[[ToolSpec, Mapping[str, Any]], list[str]],
) -> Call:
    spec = tools.get(call.name)
    if spec is None:
        return Call(
            call=call, problem=f"UNKNOWN_TOOL: there is no tool {call.name!r}; " + _list(tools)
        )
    arguments = read_object(call.arguments)
    if arguments is None:
        return Call(
            call=call,
            problem="INVALID_ARGUMENTS: the arguments are not one JSON object: "
            + call.arguments[:200],
        )
    problems = check(spec, arguments)
    if problems:
        return Call(call=call, problem="INVALID_ARGUMENTS: " + "; ".join(problems))
    return Call(call=call, arguments=arguments)


def read_object(text: str) -> dict[str, Any] | None:
    """One JSON object, after the repairs that cannot change its meaning; None when it is not one.

    Repaired: surrounding prose and fences, a trailing comma, raw newlines in strings, an object
    that was encoded twice. Anything else is for the model to mend.
    """
    for candidate in _candidates(text.strip() or "{}"):
        try:
            value = json.loads(candidate, strict=False)
            if isinstance(value, str):
                value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _candidates(text: str) -> list[str]:
    inner = [match.group(1) for match in _FENCE.finditer(text)]
    start, end = text.find("{"), text.rfind("}")
    if 0 <= start < end:
        inner.append(text[start : end + 1])
    tried = [text, *inner]
    return [*tried, *(re.sub(r",(\s*[}\]])", r"\1", one) for one in tried)]


def _calls_in_text(text: str, tools: Mapping[str, ToolSpec]) -> list[ToolCall]:
    """Calls written as JSON: a fenced block, or the whole reply; several in a list or in blocks."""
    sources = [match.group(1) for match in _FENCE.finditer(text)]
    if text.startswith(("{", "[")):
        sources.append(text)
    found: list[ToolCall] = []
    for source in sources:
        for value in _values(source):
            call = _as_call(value, len(found), tools)
            if call is not None:
                found.append(call)
        if found and source is text:
            break
    return found


def _values(source: str) -> list[Any]:
    try:
        value = json.loads(source, strict=False)
    except (ValueError, RecursionError):
        value = read_object(source)
    return value if isinstance(value, list) else [value]


def _as_call(value: Any, index: int, tools: Mapping[str, ToolSpec]) -> ToolCall | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("tool", value.get("name"))
    arguments = value.get("arguments", value.get("parameters", value.get("args")))
    if not isinstance(name, str) or (arguments is None and name not in tools):
        return None
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False, sort_keys=True)
    return ToolCall(id=f"text_{index}", name=name, arguments=arguments)


def _list(tools: Mapping[str, ToolSpec]) -> str:
    return "tools: " + ", ".join(sorted(tools))
