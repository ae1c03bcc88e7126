"""Calls that a model writes into its text: fenced or bare JSON, and the tags local models use.

Owns the finding of calls and where each one ends; whether a call can be performed is `actions`'.
Known forms: JSON objects with a tool's name, in a fence, bare, or in `<tool_call>`; one
`<function=NAME>` or `<invoke name="NAME">` with JSON or `<parameter>` elements inside; and
`<tool_call>` with `<arg_key>` and `<arg_value>` pairs. Invariants: pure, and it never raises;
what opens first owns everything up to its end, so a file's content is never read as a call; what
opens like a call and cannot be read becomes a call with `UNREADABLE` arguments, never a guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

from holdfast.domain.ports import ToolCall

# No JSON object begins so: the call is answered with what is wrong, and never performed.
UNREADABLE = "unreadable: "

_MARK = re.compile(
    r"(?P<json>\A(?=[{\[]))"
    r"|(?P<fence>^[ \t]*```(?P<label>[\w+.-]*)[^\n`]*\n)"
    r"|(?<!`)<(?:\w+:)?(?:"
    r"(?P<tagged>tool_call|function_call)"
    r"|(?P<named>function\s*=\s*|invoke\s+name\s*=\s*)[\"']?(?P<name>[^\s\"'<>]+)[\"']?\s*"
    r")>",
    re.MULTILINE,
)
_PARAMETER = re.compile(
    r"\s*<(?:\w+:)?parameter\s*(?:=\s*|\s+name\s*=\s*)[\"']?([^\s\"'<>]+)[\"']?[^>]*>"
)
_PAIR = re.compile(
    r"\s*<arg_key>\s*([^<]*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL
)
_GLM_NAME = re.compile(r"\s*([\w.-]+)\s*(?=<arg_key>|</(?:\w+:)?tool_call>)")
_CLOSE_PARAMETER = re.compile(r"</(?:\w+:)?parameter>")
_CLOSE = re.compile(r"\s*</(?:\w+:)?(?:tool_call|function_call|function|invoke)>")
_FENCE_END = re.compile(r"^[ \t]*```[ \t]*$", re.MULTILINE)
_NAMED = re.compile(r'"(?:tool|name)"\s*:\s*"([^"\\]+)"')


def calls_in(text: str, tools: Collection[str]) -> list[ToolCall]:
    """Every call in the text, in order; `tools` are the known names, for forms that need them.

    JSON without a tool's name or arguments is data and is left alone.
    """
    found: list[tuple[str, str]] = []
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        kind = mark.lastgroup if mark.lastgroup != "label" else "fence"
        match kind:
            case "json" | "fence":
                more, at = _from_json(text, mark, tools)
            case "tagged":
                more, at = _from_tag(text, mark.end(), tools)
            case _:
                more, at = _from_element(text, mark)
        at = max(at, mark.end(), mark.start() + 1)
        found += more
    return [
        ToolCall(id=f"text_{index}", name=name, arguments=arguments)
        for index, (name, arguments) in enumerate(found)
    ]


def decode_at(text: str, at: int) -> tuple[Any, int] | None:
    """One JSON value at `at` and where it ends; None when there is none that means one thing.

    Raw line ends in strings are allowed; a key given twice and numbers JSON does not have are not.
    """
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _from_json(
    text: str, mark: re.Match[str], tools: Collection[str]
) -> tuple[list[tuple[str, str]], int]:
    """The values of a fence, or of a text that is JSON from its first character."""
    start = mark.end()
    found: list[tuple[str, str]] = []
    at = start
    while (at := _skip_blank(text, at)) < len(text) and text[at] in "{[":
        decoded = decode_at(text, at)
        if decoded is None:
            end = _end_of_fence(text, at) if mark["fence"] else len(text)
            body = text[at:end].strip().removesuffix("```").rstrip()
            named = _NAMED.search(body)
            if named is not None and named[1] in tools:
                found.append(_repaired(body, tools) or (named[1], UNREADABLE + body))
            return found, end
        value, at = decoded
        found += _calls_of(value, tools)
    if mark["fence"] and not text.startswith("<", _skip_blank(text, start)):
        return found, _end_of_fence(text, at)
    return found, at  # a fence around tags: they are read next


def _from_tag(text: str, start: int, tools: Collection[str]) -> tuple[list[tuple[str, str]], int]:
    """What stands in `<tool_call>`: JSON, another element (read next), or keys and values."""
    at = _skip_blank(text, start)
    if text.startswith("<", at) and _MARK.match(text, at):
        return [], at
    if text[at : at + 1] in ("{", "["):
        decoded = decode_at(text, at)
        if decoded is not None:
            value, end = decoded
            calls = list(_calls_of(value, tools, tagged=True))
            closed = _CLOSE.match(text, end)
            if calls:
                return calls, closed.end() if closed else end
    glm = _GLM_NAME.match(text, start)
    if glm is not None:
        return _from_pairs(text, glm)
    close = _CLOSE.search(text, at)
    body = text[at : close.start() if close else len(text)]
    named = _NAMED.search(body)
    repaired = _repaired(body, tools) if close else None
    return (
        [repaired or (named[1] if named else "", UNREADABLE + body)],
        close.end() if close else len(text),
    )


def _from_pairs(text: str, name: re.Match[str]) -> tuple[list[tuple[str, str]], int]:
    values: dict[str, str] = {}
    at = name.end()
    repeated = False
    while (pair := _PAIR.match(text, at)) is not None:
        repeated |= pair[1] in values
        values[pair[1]] = _trimmed(pair[2])
        at = pair.end()
    close = _CLOSE.match(text, at)
    if close is None or repeated:
        return [(name[1], UNREADABLE + text[name.end() :])], len(text)
    return [(name[1], _json(values))], close.end()


def _from_element(text: str, mark: re.Match[str]) -> tuple[list[tuple[str, str]], int]:
    """`<function=NAME>` or `<invoke name="NAME">`: JSON, or parameters as elements, to its end."""
    name, at = mark["name"], mark.end()
    values: dict[str, str] = {}
    blank = _skip_blank(text, at)
    if text.startswith("{", blank):
        decoded = decode_at(text, blank)
        end = decoded[1] if decoded else blank
        close = _CLOSE.match(text, end)
        if decoded is not None and close is not None:
            return [(name, _json(decoded[0]))], close.end()
        return _unreadable(text, mark)
    while (parameter := _PARAMETER.match(text, at)) is not None:
        shut = _CLOSE_PARAMETER.search(text, parameter.end())
        if shut is None or parameter[1] in values:
            return _unreadable(text, mark)
        values[parameter[1]] = _trimmed(text[parameter.end() : shut.start()])
        at = shut.end()
    close = _CLOSE.match(text, at)
    if close is None:
        return _unreadable(text, mark)
    return [(name, _json(values))], close.end()


def _unreadable(text: str, mark: re.Match[str]) -> tuple[list[tuple[str, str]], int]:
    """An element that is cut off or holds something else; nothing after it can be trusted."""
    return [(mark["name"], UNREADABLE + text[mark.start() :])], len(text)


def _repaired(body: str, tools: Collection[str]) -> tuple[str, str] | None:
    """A whole object with trailing commas, which mean nothing, taken out of it."""
    text = without_trailing_commas(body.strip())
    decoded = decode_at(text, 0)
    if decoded is None or text[decoded[1] :].strip():
        return None
    return next(_calls_of(decoded[0], tools, tagged=True), None)


def without_trailing_commas(text: str) -> str:
    """`text` without commas before a closing bracket; strings are left as they are."""
    return _STRING_OR_COMMA.sub(lambda match: match[1] or "", text)


def _calls_of(
    value: Any, tools: Collection[str], *, tagged: bool = False
) -> Iterator[tuple[str, str]]:
    """The calls that a decoded value states, in its order."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield from _calls_of(item, tools, tagged=tagged)
        return
    if not isinstance(value, dict):
        return
    if isinstance(value.get("tool_calls"), list):
        yield from _calls_of(value["tool_calls"], tools, tagged=tagged)
        return
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = value.get("tool", value.get("name", value.get("function")))
    given = next((value[key] for key in _ARGUMENTS if key in value), None)
    if isinstance(name, str) and (given is not None or tagged or name in tools):
        yield name, given if isinstance(given, str) else _json({} if given is None else given)


def _end_of_fence(text: str, at: int) -> int:
    end = _FENCE_END.search(text, at)
    return end.end() if end else len(text)


def _skip_blank(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _trimmed(value: str) -> str:
    """A value on lines of its own: the line ends next to the tags are no part of it."""
    return value[1:].removesuffix("\n") if value.startswith("\n") else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text} is no number JSON has")
    return value


_ARGUMENTS = ("arguments", "parameters", "args", "input")
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_DECODER = json.JSONDecoder(
    strict=False, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite
)
