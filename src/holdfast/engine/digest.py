"""A journal told short: turns with what was said and called, rounds of checks, the bundle's sizes.

Pure functions over the JSON of an attempt's journal. They read recorded results by their fields and
say nothing where a field is missing, because a journal may be older than this code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
SAID_CHARS_MAX = 400
_PLACE = re.compile(r"/call:(\d+)")


def turns(journal: Sequence[Mapping[str, Any]]) -> list[Json]:
    """The turns of an attempt in order: what the model said and cost, and what its calls gave.

    Calls stand in the order of the reply, also those that were answered and not performed.
    """
    found: dict[str, Json] = {}
    for step in journal:
        name, _, _ = step["key"].partition("/")
        number = name.removeprefix("t")
        if name == number or not number.isdigit():
            continue
        turn = found.setdefault(name, _silent(int(number)))
        match step["kind"]:
            case "model":
                _spoken(turn, step)
            case "tool":
                turn["calls"].append(call(step))
            case "decision":
                turn["notes"].append(_note(step))
    for turn in found.values():
        turn["calls"].sort(key=_place)
    return list(found.values())


def call(step: Mapping[str, Any]) -> Json:
    """One tool call: what, on what, and how it ended."""
    request, result = _object(step["request"]), _object(step["result"])
    arguments = _object(request.get("arguments"))
    error = _object(result.get("error"))
    target = arguments.get("path") or arguments.get("command") or request.get("command") or ""
    return {
        "step": step["key"],
        "tool": request.get("tool", "command"),
        "target": str(target),
        "state": step["state"],
        "error": error.get("code", "") or _exit(result),
        "message": error.get("message", ""),
        "took_ms": step["took_ms"],
    }


def checks(journal: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Every check that ran, round by round."""
    unsaid = {"command": "", "exit_code": None, "output": "", "note": "", "duration_ms": 0}
    return [
        {
            "round": step["key"].partition("/")[0],
            "took_ms": step["took_ms"],
            **unsaid,
            **step["result"],
        }
        for step in journal
        if step["kind"] == "check" and isinstance(step["result"], Mapping)
    ]


def bundle_sizes(sha256: str, bundle: Mapping[str, Any]) -> Json:
    """How many items a bundle shows, cut or left out, and how many tokens they take."""
    items = bundle.get("items", ())
    tokens = sum(item["tokens"] for item in items if item["fate"] != "out")
    fates = dict(Counter(item["fate"] for item in items))
    return {"sha256": sha256, "items": len(items), "tokens": tokens, "fates": fates}


def _silent(number: int) -> Json:
    """A turn before anything of it is known. Reasoning is text; its tokens are of `tokens`."""
    counts = dict.fromkeys(("tokens", "tokens_cached", "tokens_reasoning", "took_ms"), 0)
    texts = dict.fromkeys(("said", "thinking", "finish_reason"), "")
    return {"turn": number, **texts, **counts, "cost_usd": 0.0, "calls": [], "notes": []}


def _spoken(turn: Json, step: Mapping[str, Any]) -> None:
    result = _object(step["result"])
    reply = _object(result.get("reply"))
    usage = _object(reply.get("usage"))
    turn["said"] = str(reply.get("text", ""))[:SAID_CHARS_MAX]
    turn["thinking"] = str(reply.get("thinking", ""))[:SAID_CHARS_MAX]
    turn["finish_reason"] = reply.get("finish_reason", "")
    turn["tokens"] += step["tokens"]
    for name in ("tokens_cached", "tokens_reasoning"):
        turn[name] += usage.get(name, 0)
    known = turn["cost_usd"] is not None and step["cost_usd"] is not None
    turn["cost_usd"] = turn["cost_usd"] + step["cost_usd"] if known else None
    turn["took_ms"] += step["took_ms"]
    turn["state"] = step["state"]
    turn["model"] = reply.get("model", "")
    asked = _object(result.get("actions")).get("calls", ())
    turn["calls"] += [
        _refused(f"t{turn['turn']:03}/call:{place}", one)
        for place, one in enumerate(asked)
        if one.get("problem")
    ]


def _refused(key: str, asked: Mapping[str, Any]) -> Json:
    """A call that was answered and not performed: there is no step of it."""
    code, _, message = asked["problem"].partition(": ")
    name = _object(asked.get("call")).get("name", "")
    said = {"error": code, "message": message, "took_ms": 0}
    return {"step": key, "tool": name, "target": "", "state": "refused", **said}


def _place(one: Json) -> int:
    found = _PLACE.search(one["step"])
    return int(found[1]) if found else 0


def _note(step: Mapping[str, Any]) -> str:
    """A decision in a few words: a move to another model, a stop, a change of edit format."""
    result = _object(step["result"])
    if "target" in result and "source" in result:
        return f"{result['source']} → {result['target']}: {result.get('reason', '')}"
    return ": ".join(str(result[key]) for key in ("reason", "detail") if result.get(key))


def _exit(result: Mapping[str, Any]) -> str:
    """How a bare command failed; "" when it did not."""
    code = result.get("exit_code", 0)
    if code is None:
        return "did not start" if result.get("missing_program") else "was ended"
    return "" if code == 0 else f"exit {code}"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
