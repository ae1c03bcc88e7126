"""What `attempt show` says: how an attempt ended and why, turn by turn what it did and cost.

From the JSON that the verb prints with `--json`. The raw journal, request and result of every step,
is `--journal`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdfast.cli import look
from holdfast.cli.page import Page
from holdfast.cli.pages import (
    ANSWER_LINES_MAX,
    DETAIL_LINES_MAX,
    Json,
    check_row,
    next_steps,
    spend,
)

SHOWN_CHARS = 160
SAID_LINES_MAX = 4
CUT = ("length", "content_filter")  # a reply that its model did not end by itself


def attempt(page: Page, found: Json, now_ms: int) -> None:
    """One attempt: header, failure with its evidence, turns, checks, changed files, next steps."""
    _head(page, found, now_ms)
    _failure(page, found)
    for turn in found["turns"]:
        page.blank()
        _turn(page, turn)
    if found["commands"]:
        page.blank()
        for call in found["commands"]:
            _call(page, call, indent=2)
    _checks(page, found["check_runs"])
    if found["answer"]:
        page.blank()
        page.row(("answer", "bold"), indent=2)
        page.text(found["answer"], indent=4, lines_max=ANSWER_LINES_MAX)
    page.blank()
    files(page, found["changes"], indent=2)
    page.blank()
    next_steps(page, _after(found))


def journal(page: Page, found: Json) -> None:
    """Every step with its request and result, cut to a line."""
    for step in found["journal"]:
        said = f"{step['key']} ({step['kind']}, {step['effect']}) "
        page.row(page.mark(step["state"]), said, (step["state"], look.style(step["state"])))
        page.row(("asked ", "dim"), _short(step["request"]), indent=4)
        page.row(("gave  ", "dim"), _short(step["result"]), indent=4)


def files(page: Page, found: Sequence[Json] | None, *, indent: int) -> None:
    """Changed files with the lines added and removed; None when git lost them."""
    if found is None:
        page.row(("its files are gone from git", "dim"), indent=indent)
        return
    added = sum(each["added"] or 0 for each in found)
    removed = sum(each["removed"] or 0 for each in found)
    page.row(
        (f"{look.count(len(found), 'file')} changed", "bold"),
        (f", +{added:,}", "green"),
        (f" -{removed:,}", "red"),
        indent=indent,
    )
    styles = {"A": "green", "D": "red"}
    for each in found:
        lines = "binary" if each["added"] is None else f"+{each['added']:,} -{each['removed']:,}"
        page.row(
            (f"{each['status']} ", styles.get(each["status"], "yellow")),
            each["path"],
            (f"  {lines}", "dim"),
            indent=indent + 2,
        )


def _head(page: Page, found: Json, now_ms: int) -> None:
    title = "" if found["title"] == found["key"] else f": {found['title']}"
    page.row(
        (f"attempt {found['attempt']}", "bold"),
        f" of task {found['key']}{title} (goal {found['goal']})",
    )
    end = found["outcome"] or found["state"]
    took = look.span((found["ended_ms"] or now_ms) - found["started_ms"])
    page.row(page.mark(end), (end, look.style(end)), f", {took}", indent=2)
    page.row(spend(found), indent=2)
    page.row(("started  ", "dim"), look.moment(found["started_ms"]), indent=2)
    page.row(("model    ", "dim"), found["model"] or "none", indent=2)
    steps = look.count(found["steps"], "step")
    page.row(("journal  ", "dim"), f"take {found['take']}, {steps} by this attempt", indent=2)
    page.row(("worker   ", "dim"), found["worker"], indent=2)
    if found["bundle"]:
        bundle = found["bundle"]
        fates = ", ".join(f"{number} {fate}" for fate, number in bundle["fates"].items())
        said = f"{bundle['sha256'][:12]}, {look.count(bundle['items'], 'item')}"
        tokens = look.count(bundle["tokens"], "token")
        page.row(("bundle   ", "dim"), f"{said} ({fates}), {tokens}", indent=2)


def _failure(page: Page, found: Json) -> None:
    """Class, reason and evidence of an attempt that did not pass; what is done, what remains."""
    if found["outcome"] in ("", "passed", "unverified"):
        return
    page.blank()
    words = [found["failure"], found["reason"]]
    page.row((": ".join(word for word in words if word), "bold"), indent=2)
    page.text(found["detail"], indent=4, lines_max=DETAIL_LINES_MAX)
    for state, items in (("done", found["done"]), ("failed", found["remaining"])):
        for item in items:
            word = "" if state == "done" else "remains: "
            page.row(page.mark(state), f"{word}{item}", indent=4)


def _turn(page: Page, turn: Json) -> None:
    cost = look.cash(turn["cost_usd"])
    page.row(
        (f"turn {turn['turn']}", "bold"),
        ("" if turn.get("state", "done") == "done" else f"  {turn['state']}", "yellow"),
        (f"  ended by {turn['finish_reason']}" if turn["finish_reason"] in CUT else "", "yellow"),
        right=[(f"{turn['tokens']:>9,} tok  {cost:>8}  {look.span(turn['took_ms']):>7}", "dim")],
        indent=2,
    )
    page.text(turn["said"], style="dim", indent=4, lines_max=SAID_LINES_MAX)
    for note in turn["notes"]:
        page.row((note, "yellow"), indent=4)
    for call in turn["calls"]:
        _call(page, call, indent=4)


def _call(page: Page, call: Json, *, indent: int) -> None:
    state = "fail" if call["error"] else call["state"]
    error = f"  {call['error']}" + (f": {look.head(call['message'])}" if call["message"] else "")
    page.row(
        page.mark(state),
        (f"{call['tool']} ", ""),
        (call["target"], "cyan"),
        (error if call["error"] else "", "red"),
        right=[(look.span(call["took_ms"]), "dim")] if call["took_ms"] else [],
        indent=indent,
    )


def _checks(page: Page, found: Sequence[Json]) -> None:
    """Every round of checks; a failed one with the end of what it said."""
    rounds: dict[str, list[Json]] = {}
    for check in found:
        rounds.setdefault(check["round"], []).append(check)
    for name, checks in rounds.items():
        page.blank()
        number = name.removeprefix("v").lstrip("0")
        page.row(
            (f"checks, round {number}" if number.isdigit() else f"checks, {name}", "bold"), indent=2
        )
        for check in checks:
            check_row(page, check, indent=4)
            if check["verdict"] != "pass" and check["output"]:
                page.text("\n".join(check["output"].splitlines()[-5:]), style="dim", indent=8)


def _after(found: Json) -> list[tuple[str, str]]:
    name = found["attempt"]
    changed = [(f"holdfast diff {name}", "the changes in full")] if found["changes"] else []
    return [
        *changed,
        (f"holdfast why {name}", "what it was shown, and why"),
        (f"holdfast replay {name}", "run it again from its record, offline"),
        (f"holdfast attempt show {name} --journal", "every step, asked and given"),
        (f"holdfast undo {found['goal']} --dry-run", "what undoing its goal would walk back"),
    ]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"
