"""How a scripted reply looks on the wire, in each dialect the server speaks.

Owns the shapes of answers, whole and streamed. It decides nothing. Invariant: the frames are a pure
function of the reply and the request, with real UTF-8 in them so that a split can hit a character.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.adapters.models.replies import canonical_json
from holdfast.adapters.models.script import ScriptedReply, scripted_usage

FRAGMENT_CHARS = 5
# A fixed moment, so that equal requests get equal bytes.
CREATED_S = 1_767_225_600
CREATED_AT = "2026-01-01T00:00:00Z"


def request_messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(role, content) of each message; structured content counts with its text parts."""
    return [(each["role"], _plain(each.get("content"))) for each in body["messages"]]


def anthropic_messages(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """As `request_messages`; a user's message that only holds tool results is a tool's."""
    found = []
    for each in body["messages"]:
        parts = each["content"] if isinstance(each["content"], list) else []
        answers = {part["type"] for part in parts} == {"tool_result"}
        found.append(("tool" if answers else each["role"], _plain(each["content"])))
    return found


def ollama_frames(reply: ScriptedReply, body: Mapping[str, Any], turn: int = 0) -> list[bytes]:
    """The NDJSON lines of a streamed reply, or the one object of a whole one."""
    if body.get("stream", True):
        frames = [_ollama(body, {"thinking": each, "content": ""}) for each in _cut(reply.thinking)]
        frames += [_ollama(body, {"content": each}) for each in _cut(reply.text)]
        if reply.calls:
            frames.append(_ollama(body, {"content": "", "tool_calls": _ollama_calls(reply)}))
        frames.append(_ollama(body, {"content": ""}, _ollama_end(reply, body)))
    else:
        message: dict[str, Any] = {"content": reply.text}
        if reply.thinking:
            message["thinking"] = reply.thinking
        if reply.calls:
            message["tool_calls"] = _ollama_calls(reply)
        frames = [_ollama(body, message, _ollama_end(reply, body))]
    return [_bytes(frame) + b"\n" for frame in frames]


def openai_frames(reply: ScriptedReply, body: Mapping[str, Any], turn: int) -> list[bytes]:
    """The server-sent events of a streamed reply, or the one object of a whole one."""
    if not body.get("stream"):
        return [_bytes(_completion(reply, body, turn))]
    head = {"id": f"chatcmpl-{turn}", "object": "chat.completion.chunk", "created": CREATED_S}
    head["model"] = body["model"]

    def frame(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    frames = [frame({"role": "assistant", "content": ""})]
    frames += [frame({"reasoning_content": each}) for each in _cut(reply.thinking)]
    frames += [frame({"content": each}) for each in _cut(reply.text)]
    for at, call in enumerate(_openai_calls(reply, turn)):
        name, text = call["function"]["name"], call["function"]["arguments"]
        first = {**call, "index": at, "function": {"name": name, "arguments": ""}}
        frames.append(frame({"tool_calls": [first]}))
        frames += [
            frame({"tool_calls": [{"index": at, "function": {"arguments": each}}]})
            for each in _cut(text)
        ]
    frames.append(frame({}, reply.finish))
    wanted = (body.get("stream_options") or {}).get("include_usage")
    if wanted and reply.usage.reported:
        frames.append({**head, "choices": [], "usage": _openai_usage(reply, body)})
    return [b"data: " + _bytes(each) + b"\n\n" for each in frames] + [b"data: [DONE]\n\n"]


def anthropic_frames(reply: ScriptedReply, body: Mapping[str, Any], turn: int) -> list[bytes]:
    """The server-sent events of a streamed message, or the one object of a whole one."""
    blocks = _anthropic_blocks(reply, turn)
    end = {"stop_reason": _ANTHROPIC_STOP[reply.finish], "stop_sequence": None}
    head: dict[str, Any] = {"id": f"msg_{turn}", "type": "message", "role": "assistant"}
    head["model"] = body["model"]
    usage = _anthropic_usage(reply, body)
    if not body.get("stream"):
        content = [_whole_block(block) for block in blocks]
        return [_bytes({**head, "content": content, **end, "usage": usage})]
    nothing = {"stop_reason": None, "stop_sequence": None}
    opening = {**head, "content": [], **nothing, "usage": {**usage, "output_tokens": 0}}
    frames: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
    for at, block in enumerate(blocks):
        empty, deltas = _anthropic_deltas(block)
        frames.append({"type": "content_block_start", "index": at, "content_block": empty})
        frames += [{"type": "content_block_delta", "index": at, "delta": each} for each in deltas]
        frames.append({"type": "content_block_stop", "index": at})
    frames.append({"type": "message_delta", "delta": end, "usage": usage})
    frames.append({"type": "message_stop"})
    return [f"event: {each['type']}\ndata: ".encode() + _bytes(each) + b"\n\n" for each in frames]


MESSAGES = {
    "ollama": request_messages,
    "openai": request_messages,
    "anthropic": anthropic_messages,
}
FRAMES = {"ollama": ollama_frames, "openai": openai_frames, "anthropic": anthropic_frames}


def ollama_tags(models: tuple[str, ...]) -> dict[str, Any]:
    return {"models": [_ollama_model(name) for name in models]}


def ollama_ps(models: tuple[str, ...], context_tokens: int) -> dict[str, Any]:
    loaded = {"expires_at": CREATED_AT, "size_vram": 0, "context_length": context_tokens}
    return {"models": [{**_ollama_model(name), **loaded} for name in models]}


def ollama_show(context_tokens: int) -> dict[str, Any]:
    window = {"scripted.context_length": context_tokens}
    return {
        **dict.fromkeys(("modelfile", "parameters", "template"), ""),
        "details": _DETAILS,
        "model_info": {"general.architecture": "scripted", **window},
        "capabilities": ["completion", "tools", "thinking"],
    }


def openai_models(models: tuple[str, ...]) -> dict[str, Any]:
    row = {"object": "model", "created": CREATED_S, "owned_by": "holdfast"}
    return {"object": "list", "data": [{"id": name, **row} for name in models]}


def anthropic_models(models: tuple[str, ...]) -> dict[str, Any]:
    row = {"type": "model", "lifecycle": "active", "created_at": CREATED_AT}
    rows = [{"id": name, "display_name": name, **row} for name in models]
    ends = {"first_id": models[0], "last_id": models[-1]} if models else {}
    return {"data": rows, "has_more": False, **ends}


def error_body(dialect: str, status: int, message: str) -> bytes:
    """An error as the dialect words it."""
    if dialect == "anthropic":
        kind = _ANTHROPIC_ERRORS.get(
            status, "api_error" if status >= 500 else "invalid_request_error"
        )
        return _bytes({"type": "error", "error": {"type": kind, "message": message}})
    if dialect == "ollama":
        return _bytes({"error": message})
    codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return _bytes(
        {"error": {"message": message, "type": kind, "param": None, "code": codes.get(status)}}
    )


_ANTHROPIC_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_ANTHROPIC_ERRORS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "scripted",
    "families": ["scripted"],
    "parameter_size": "0B",
    "quantization_level": "none",
}


def _ollama_model(name: str) -> dict[str, Any]:
    full = name if ":" in name else f"{name}:latest"
    row = {"name": full, "model": full, "modified_at": CREATED_AT, "size": 0, "digest": "0" * 64}
    return {**row, "details": _DETAILS}


def _ollama(
    body: Mapping[str, Any], message: Mapping[str, Any], end: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "model": body["model"],
        "created_at": CREATED_AT,
        "message": {"role": "assistant", **message},
        **(end or {"done": False}),
    }


def _ollama_end(reply: ScriptedReply, body: Mapping[str, Any]) -> dict[str, Any]:
    reason = "length" if reply.finish == "length" else "stop"
    end: dict[str, Any] = {"done": True, "done_reason": reason, "total_duration": 1_000_000}
    if reply.usage.reported:
        tokens_in, tokens_out = scripted_usage(reply, _texts(body))
        end |= {"prompt_eval_count": tokens_in, "eval_count": tokens_out}
    return end


def _ollama_calls(reply: ScriptedReply) -> list[dict[str, Any]]:
    calls = []
    for call in reply.calls:
        try:
            arguments = json.loads(call.arguments_text)
        except ValueError:
            arguments = call.arguments_text
        calls.append({"function": {"name": call.name, "arguments": arguments}})
    return calls


def _anthropic_blocks(reply: ScriptedReply, turn: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for at, call in enumerate(reply.calls):
        block = {"type": "tool_use", "id": f"toolu_{turn}_{at}", "name": call.name}
        blocks.append({**block, "input": call.arguments_text})
    return blocks


def _whole_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block outside a stream, where a call's input is an object and never a text."""
    if block["type"] != "tool_use":
        return block
    try:
        value = json.loads(block["input"])
    except ValueError:
        value = None
    return {
        **block,
        "input": value if isinstance(value, dict) else {"INVALID_JSON": block["input"]},
    }


def _anthropic_deltas(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it opens, and the deltas that fill it."""
    match block["type"]:
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": x} for x in _cut(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case "text":
            deltas = [{"type": "text_delta", "text": each} for each in _cut(block["text"])]
            return {**block, "text": ""}, deltas
        case _:
            deltas = [{"type": "input_json_delta", "partial_json": x} for x in _cut(block["input"])]
            return {**block, "input": {}}, deltas


def _anthropic_usage(reply: ScriptedReply, body: Mapping[str, Any]) -> dict[str, Any]:
    """Anthropic counts what came from and went to its cache apart from the rest of the input."""
    tokens_in, tokens_out = scripted_usage(reply, _texts(body))
    cached, written = reply.usage.tokens_cached, reply.usage.tokens_written
    return {
        "input_tokens": tokens_in - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": tokens_out,
    }


def _openai_calls(reply: ScriptedReply, turn: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{turn}_{at}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_text},
        }
        for at, call in enumerate(reply.calls)
    ]


def _completion(reply: ScriptedReply, body: Mapping[str, Any], turn: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = _openai_calls(reply, turn)
    choice = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
    whole: dict[str, Any] = {
        "id": f"chatcmpl-{turn}",
        "object": "chat.completion",
        "created": CREATED_S,
        "model": body["model"],
        "choices": [choice],
    }
    if reply.usage.reported:
        whole["usage"] = _openai_usage(reply, body)
    return whole


def _openai_usage(reply: ScriptedReply, body: Mapping[str, Any]) -> dict[str, Any]:
    tokens_in, tokens_out = scripted_usage(reply, _texts(body))
    return {
        "prompt_tokens": tokens_in,
        "completion_tokens": tokens_out,
        "total_tokens": tokens_in + tokens_out,
        "prompt_tokens_details": {"cached_tokens": reply.usage.tokens_cached},
        "completion_tokens_details": {"reasoning_tokens": reply.usage.tokens_reasoning},
    }


def _texts(body: Mapping[str, Any]) -> list[str]:
    calls = [each["tool_calls"] for each in body["messages"] if each.get("tool_calls")]
    tools = [body["tools"]] if body.get("tools") else []
    return [text for _, text in request_messages(body)] + [
        canonical_json(each) for each in [*calls, *tools]
    ]


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), FRAGMENT_CHARS):
        yield text[start : start + FRAGMENT_CHARS]


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
