"""Runs a cases file: programs with expected values or errors, in the documented encoding.

Owns the comparison: integers and floats are distinct, sets and maps are unordered, NaN equals NaN,
an error matches when one of the expected texts occurs in its code or message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.lang import wire
from holdfast.lang.api import LangError, Limits, Result, Value
from holdfast.lang.compiler import CodeCache
from holdfast.lang.machine import Ending
from holdfast.lang.meter import ACTIVE, Meter
from holdfast.lang.printer import readable
from holdfast.lang.recorder import Recorder, ToolFunction
from holdfast.lang.run import run

Case = Mapping[str, Any]


def _add(args: dict[str, Any]) -> Any:
    return args["a"] + args["b"]


def _boom(args: dict[str, Any]) -> Any:
    raise ValueError("boom")


TOOLS: Mapping[str, ToolFunction] = {"echo": dict, "add": _add, "boom": _boom}


def run_cases(cases: Iterable[Any], *, limits: Limits | None = None) -> dict[str, Any]:
    """`{"passed": n, "failed": [{"expr", "expected", "got"}…], "skipped": n}`.

    A case marked `optional` that fails counts as skipped.
    """
    passed = skipped = 0
    failed: list[dict[str, Any]] = []
    cache = CodeCache()
    for case in cases:
        problem = _judged(case, limits or Limits(), cache)
        if problem is None:
            passed += 1
        elif isinstance(case, Mapping) and case.get("optional"):
            skipped += 1
        else:
            failed.append(problem)
    return {"passed": passed, "failed": failed, "skipped": skipped}


def _judged(case: Any, limits: Limits, cache: CodeCache) -> dict[str, Any] | None:
    """`run_case`, where a case that breaks it is one failed case and not the end of the file."""
    if not isinstance(case, Mapping) or type(case.get("expr")) is not str:
        broken = {"broken": "a case is an object with an expr, which is a text"}
        return {"expr": None, "expected": None, "got": broken}
    try:
        return run_case(case, limits, cache)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"[:200]
        expected = case.get("expect", case.get("error"))
        return {"expr": case["expr"], "expected": expected, "got": {"broken": got}}


def run_case(case: Case, limits: Limits, cache: CodeCache | None = None) -> dict[str, Any] | None:
    """What is wrong with one case; None when it passes."""
    token = ACTIVE.set(Meter(limits))
    try:
        return _run_case(case, limits, cache)
    finally:
        ACTIVE.reset(token)


def _run_case(case: Case, limits: Limits, cache: CodeCache | None) -> dict[str, Any] | None:
    memory = wire.decode_all(_named(case.get("memory")), limits)
    journal: dict[str, Any] = wire.decode_all(case.get("journal") or {})
    names = case.get("tools") or ()
    recorder = Recorder(journal, {name: TOOLS.get(name, dict) for name in names})
    context = {_plain(key): wire.decode(item) for key, item in (case.get("ctx") or {}).items()}
    result = run(
        case["expr"],
        context=context,
        memory=memory,
        # The file lists results as they happened; `*1` is the last.
        history=tuple(wire.decode(item) for item in reversed(case.get("history") or ())),
        host=recorder,
        limits=limits,
        tools=tuple(names),
        cache=cache,
    )
    wrong = _wrong_ending(case, result) or _wrong_effects(case, result, journal)
    if wrong is None:
        return None
    expected, got = wrong
    return {"expr": case["expr"], "expected": expected, "got": got}


def _plain(key: str) -> str:
    return key.removeprefix(":") if len(key) > 1 else key


def _named(data: Any) -> dict[str, Any]:
    return {_plain(key): item for key, item in (data or {}).items()}


def _wrong_ending(case: Case, result: Result) -> tuple[Any, Any] | None:
    if "error" in case:
        wanted = str(case["error"]).lower()
        if result.error is None:
            return f"error {wanted}", shown(result)
        text = f"{result.error.code} {result.error.render()}".lower()
        text += " " + text.replace("_", " ").replace("-", " ")
        if not wanted or any(part.strip() in text for part in wanted.split("|")):
            return None
        return f"error {wanted}", shown(result)
    if "expect" not in case:
        return None if result.error is None else ("no error", shown(result))
    if result.error is not None:
        return case["expect"], shown(result)
    value = result.value
    if result.ending in ("returned", "failed"):
        value = Ending(result.ending, value)
    if same(wire.decode(case["expect"]), value):
        return None
    return case["expect"], shown(result)


def _wrong_effects(case: Case, result: Result, journal: dict[str, Any]) -> tuple[Any, Any] | None:
    if "prints" in case:
        got = list(result.prints)
        if got != list(case["prints"]):
            return {"prints": case["prints"]}, {"prints": got}
    if "journal_after" in case:
        left = {key: item for key, item in journal.items() if not key.startswith("@")}
        wanted = {key: wire.decode(item) for key, item in case["journal_after"].items()}
        if left.keys() != wanted.keys() or not all(same(wanted[k], left[k]) for k in wanted):
            return {"journal_after": case["journal_after"]}, {"journal_after": encoded(left)}
    if "memory_after" in case:
        after = {name: result.memory.get(name) for name in _named(case["memory_after"])}
        if not same(wire.decode(_named(case["memory_after"])), after):
            return {"memory_after": case["memory_after"]}, {"memory_after": encoded(after)}
    return None


def same(expected: Value, got: Value) -> bool:
    """Equal with integers and floats told apart; functions are never equal to data."""
    if isinstance(expected, tuple) and isinstance(got, tuple):
        return len(expected) == len(got) and all(map(same, expected, got))
    if type(expected) is not type(got):
        return False
    if isinstance(expected, float):
        return bool(expected == got or (expected != expected and got != got))
    if isinstance(expected, dict):
        return expected.keys() == got.keys() and all(same(expected[k], got[k]) for k in expected)
    if isinstance(expected, Ending):
        return expected.kind == got.kind and same(expected.value, got.value)
    if hasattr(expected, "compiled"):
        return bool(expected.source == got.source)
    return bool(expected == got)


def encoded(value: Value) -> Any:
    try:
        return wire.encode(value)
    except LangError:
        return readable(value)


def shown(result: Result) -> Any:
    """What a result is in a report: the encoded value or the error."""
    if result.error is not None:
        return {"error": str(result.error)}
    value = result.value
    if result.ending in ("returned", "failed"):
        value = Ending(result.ending, value)
    return encoded(value)


def load(text: str) -> list[Case]:
    """The cases of a file: a JSON list, or an object with a list under `cases`, or JSON lines.

    ValueError for anything else.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        found = [json.loads(line) for line in text.split("\n") if line.strip()]
    if isinstance(found, dict):
        found = found.get("cases", [found])
    if not isinstance(found, list):
        raise ValueError("a list of cases is expected")
    return found
