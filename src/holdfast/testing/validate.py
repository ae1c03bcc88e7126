"""Whether a request is one the official client could have sent, judged by that client's types.

Owns the judgement of chat requests in each dialect. The packages are asked for late: they cost up
to half a second and `ollama` is no dependency of an installed Holdfast. With `strict` a missing one
is an error; without, the shape is checked as far as the standard library goes. Invariant: a request
that passes has no field its dialect does not know.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.errors import Unavailable

Check = Callable[[Mapping[str, Any]], str]


def openai_check(*, strict: bool) -> Check:
    """A check that gives the reason a body is no chat completion request, or an empty text."""
    try:
        from openai.types.chat import completion_create_params as types  # noqa: PLC0415  late
    except ImportError as error:
        return _without(error, strict)
    whole, streamed = (
        types.CompletionCreateParamsNonStreaming,
        types.CompletionCreateParamsStreaming,
    )
    return _typed(whole, streamed, _unanswered_calls)


def ollama_check(*, strict: bool) -> Check:
    """A check that gives the reason a body is no `/api/chat` request, or an empty text."""
    try:
        from ollama import Message, Options  # noqa: PLC0415  late on purpose
        from ollama._types import ChatRequest  # noqa: PLC0415  late on purpose
        from pydantic import ValidationError  # noqa: PLC0415  late on purpose
    except ImportError as error:
        return _without(error, strict)

    def check(body: Mapping[str, Any]) -> str:
        try:
            ChatRequest.model_validate(body)
            Options.model_validate(body.get("options") or {})
            messages = body.get("messages") or []
            for message in messages:
                Message.model_validate(message)
        except ValidationError as error:
            return _first_lines(error)
        parts = [
            ("the request", body, ChatRequest.model_fields),
            ("options", body.get("options") or {}, Options.model_fields),
            *((f"message {at}", each, Message.model_fields) for at, each in enumerate(messages)),
        ]
        for where, part, known in parts:
            if unknown := sorted(part.keys() - known.keys()):
                return f"{where} has unknown fields {unknown}"
        return basic_check(body)

    return check


def anthropic_check(*, strict: bool) -> Check:
    """A check that gives the reason a body is no message request, or an empty text.

    The beta types, because pydantic-ai speaks to that route; it takes the same bodies.
    """
    try:
        from anthropic.types.beta import message_create_params as types  # noqa: PLC0415  late
    except ImportError as error:
        return _without(error, strict)
    whole, streamed = types.MessageCreateParamsNonStreaming, types.MessageCreateParamsStreaming
    return _typed(whole, streamed, _anthropic_rules)


def basic_check(body: Mapping[str, Any]) -> str:
    """What must hold in either dialect, without any package."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model is missing"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages must be a list that is not empty"
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ("system", "developer", "user", "assistant", "tool"):
            return f"message {at} has no role a model knows"
    return ""


MAKERS: Mapping[str, Callable[..., Check]] = {
    "ollama": ollama_check,
    "openai": openai_check,
    "anthropic": anthropic_check,
}


def _anthropic_rules(body: Mapping[str, Any]) -> str:
    """The provider's own rules that its types cannot say: texts, pairs and distinct ids."""
    open_ids: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(body["messages"]):
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if not parts or any(part["type"] == "text" and not part["text"] for part in parts):
            return f"message {at} has an empty text"
        answers = [part["tool_use_id"] for part in parts if part["type"] == "tool_result"]
        if sorted(answers) != sorted(open_ids):
            return f"message {at} answers {answers}, and {open_ids} were called"
        open_ids = [part["id"] for part in parts if part["type"] == "tool_use"]
        if seen.intersection(open_ids) or len(set(open_ids)) != len(open_ids):
            return f"message {at} uses a call id again: {open_ids}"
        seen.update(open_ids)
        if open_ids and not body.get("tools"):
            return f"message {at} calls a tool, and no tools are offered"
    return f"the calls {open_ids} have no answers" if open_ids else ""


def _typed(whole: Any, streamed: Any, rules: Check) -> Check:
    """A check by the types of a client, for each of its two kinds of request, then by `rules`."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError  # noqa: PLC0415  late on purpose

    # A list around the type, because pydantic takes no config for a bare TypedDict.
    config = ConfigDict(extra="forbid")
    with warnings.catch_warnings():
        # One of the types says itself that it takes more fields, and pydantic says that it knows.
        warnings.filterwarnings("ignore", message=".*allows extra items.*")
        types = [
            TypeAdapter(list[kind], config=config)  # type: ignore[valid-type]  # known when it runs
            for kind in (whole, streamed)
        ]

    def check(body: Mapping[str, Any]) -> str:
        try:
            _exhaust(types[bool(body.get("stream"))].validate_python([body]))
        except ValidationError as error:
            return _first_lines(error)
        return basic_check(body) or rules(body)

    return check


def _without(error: ImportError, strict: bool) -> Check:
    if strict:
        raise Unavailable(
            f"strict validation needs a package that is not installed: {error}",
            hint="install the extra `dev`, or leave out strict",
        ) from error
    return basic_check


def _unanswered_calls(body: Mapping[str, Any]) -> str:
    """The provider's own rule that its types cannot say: calls and their answers pair up."""
    open_ids: list[str] = []
    for at, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                return f"message {at} answers {message['tool_call_id']!r}, which nobody called"
            open_ids.remove(message["tool_call_id"])
            continue
        if open_ids:
            return f"message {at} comes before the answers to {open_ids}"
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
    return f"the calls {open_ids} have no answers" if open_ids else ""


def _exhaust(value: Any) -> None:
    """Walk a validated value: pydantic checks what is declared `Iterable` only when iterated."""
    if isinstance(value, Mapping):
        for item in value.values():
            _exhaust(item)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for item in value:
            _exhaust(item)


def _first_lines(error: Exception) -> str:
    return " ".join(str(error).splitlines()[:4])
