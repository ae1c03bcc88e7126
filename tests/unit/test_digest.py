"""A journal told short: turns, calls and decisions, whatever a step does not say."""

from typing import Any

from holdfast.engine.digest import bundle_sizes, call, checks, turns


def step(key: str, kind: str = "tool", result: Any = None, **values: Any) -> dict[str, Any]:
    fields = {"state": "done", "request": {}, "tokens": 0, "cost_usd": 0.0, "took_ms": 0}
    return {"key": key, "kind": kind, "result": result, **fields, **values}


def test_turns_stand_in_order_with_every_model_that_was_asked() -> None:
    move = {"source": "openai:a", "target": "ollama:b", "reason": "away"}
    reply = {"reply": {"text": "x" * 900, "model": "b"}}
    found = turns(
        [
            step("t001/move.0", "decision", move),
            step("t001/model.1", "model", reply, tokens=7, cost_usd=0.5, took_ms=3),
            step("t002/model", "model", None, state="intended", cost_usd=None),
            step("t002/stop", "decision", {"reason": "tokens", "detail": "9 of 9 is spent"}),
            step("v01/check:0", "check", {"verdict": "pass"}),
            step("command", "tool"),
            step("tx/odd", "tool"),
        ]
    )
    assert [turn["turn"] for turn in found] == [1, 2]
    assert found[0]["notes"] == ["openai:a → ollama:b: away"]
    assert len(found[0]["said"]) == 400
    assert (found[0]["tokens"], found[0]["cost_usd"], found[0]["took_ms"]) == (7, 0.5, 3)
    assert (found[1]["state"], found[1]["cost_usd"]) == ("intended", None)
    assert found[1]["notes"] == ["tokens: 9 of 9 is spent"]


def test_a_call_that_was_not_performed_is_told_in_its_place_with_how_the_reply_ended() -> None:
    asked = [
        {"call": {"name": "read_file"}, "problem": ""},
        {"call": {"name": "fly"}, "problem": "UNKNOWN_TOOL: there is no tool 'fly'; tools: a"},
        {"call": {"name": "read_file"}, "problem": ""},
    ]
    usage = {"tokens_cached": 64, "tokens_reasoning": 7}
    reply = {"usage": usage, "thinking": "y" * 900, "finish_reason": "length"}
    (turn,) = turns(
        [
            step("t001/model", "model", {"reply": reply, "actions": {"calls": asked}}, tokens=9),
            step("t001/call:2", request={"tool": "read_file"}),
            step("t001/call:0", request={"tool": "read_file"}),
        ]
    )
    assert [(one["step"], one["state"], one["error"]) for one in turn["calls"]] == [
        ("t001/call:0", "done", ""),
        ("t001/call:1", "refused", "UNKNOWN_TOOL"),
        ("t001/call:2", "done", ""),
    ]
    assert turn["calls"][1]["message"] == "there is no tool 'fly'; tools: a"
    assert (turn["finish_reason"], turn["tokens_cached"], turn["tokens_reasoning"]) == (
        *("length", 64, 7),
    )
    assert len(turn["thinking"]) == 400


def test_a_call_says_on_what_it_was_and_how_it_failed() -> None:
    path = step("k", request={"tool": "read_file", "arguments": {"path": "a", "command": "b"}})
    assert (call(path)["tool"], call(path)["target"], call(path)["error"]) == ("read_file", "a", "")
    bare = step("command", result={"exit_code": 3}, request={"command": "make"})
    assert (call(bare)["tool"], call(bare)["target"], call(bare)["error"]) == (
        *("command", "make", "exit 3"),
    )
    killed = step("command", result={"exit_code": None}, request={"command": "make"})
    assert call(killed)["error"] == "was ended"
    absent = step("command", result={"exit_code": None, "missing_program": True})
    assert call(absent)["error"] == "did not start"
    assert call(step("k", result={"exit_code": 0}))["error"] == ""
    error = {"error": {"code": "OUTSIDE", "message": "no"}}
    assert (call(step("k", result=error))["error"], call(step("k", result=error))["message"]) == (
        *("OUTSIDE", "no"),
    )
    assert call(step("k", result="odd", request="odd"))["target"] == ""


def test_checks_and_bundles_are_counted() -> None:
    found = checks([step("v02/check:0", "check", {"verdict": "fail"}, took_ms=5)])[0]
    assert (found["round"], found["took_ms"], found["verdict"]) == ("v02", 5, "fail")
    assert found["note"] == "", "a journal from before there were notes can be shown"
    assert checks([step("v01/check:0", "check", None), step("a/b")]) == []
    items = [{"fate": "whole", "tokens": 5}, {"fate": "out", "tokens": 9}]
    assert bundle_sizes("ab", {"items": items}) == {
        "sha256": "ab",
        "items": 2,
        "tokens": 5,
        "fates": {"whole": 1, "out": 1},
    }
    assert bundle_sizes("ab", {})["items"] == 0
