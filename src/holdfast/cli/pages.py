"""What `show` and `list` say about goals, plans, tasks and attempts.

Each function writes one noun on a page, from the JSON that the same verb prints with `--json`: who
reads the page and who parses the object are told the same. Times, tokens and money are never
missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.cli import look
from holdfast.cli.page import Page, Part

Json = Mapping[str, Any]
PROMPT_LINES_MAX = 12
PROPOSED_LINES_MAX = 6
DETAIL_LINES_MAX = 12
ANSWER_LINES_MAX = 20

# The tables of nouns: what stands in each column.
_GOALS: Mapping[str, Callable[[Json], Part | str]] = {
    ">goal": lambda row: str(row["goal"]),
    "state": lambda row: (row["state"] + ", undone" * row["undone"], look.style(row["state"])),
    ">tasks": lambda row: f"{row['tasks_done']}/{row['tasks_total']}",
    ">tokens": lambda row: f"{row['usage']['tokens']:,}",
    ">money": lambda row: look.cash(row["usage"]["cost_usd"]),
    ">took": lambda row: look.span(row["ended_ms"] - row["created_ms"]) if row["ended_ms"] else "",
    "started": lambda row: (look.moment(row["created_ms"]), "dim"),
    "text": lambda row: str(row["text"]),
}
_PLANS: Mapping[str, Callable[[Json], Part | str]] = {
    ">plan": lambda row: str(row["plan"]),
    ">goal": lambda row: str(row["goal"]),
    "revision": lambda row: str(row["revision"]),
    "source": lambda row: str(row["source"]),
    "state": lambda row: _state(row),
    ">tasks": lambda row: (
        f"{len([t for t in row['tasks'] if t['state'] == 'succeeded'])}/{len(row['tasks'])}"
    ),
    ">tokens": lambda row: _totals(_tries(row))[0],
    ">money": lambda row: _totals(_tries(row))[1],
}
_TASKS: Mapping[str, Callable[[Json], Part | str]] = {
    ">task": lambda row: str(row["task"]),
    ">goal": lambda row: str(row["goal"]),
    "state": lambda row: _state(row),
    ">attempts": lambda row: str(len(row["attempts"])),
    ">tokens": lambda row: _totals(row["attempts"])[0],
    ">money": lambda row: _totals(row["attempts"])[1],
    ">took": lambda row: _totals(row["attempts"])[2],
    "key: title": lambda row: _name(row),
}


def goals(page: Page, rows: Sequence[Json]) -> None:
    """All goals as a table."""
    if rows:
        page.table(_GOALS, rows)
    else:
        page.row('no goal yet; start with: holdfast run "what you want"')


def goal(page: Page, found: Json, now_ms: int) -> None:
    """One goal: header, plans with their tasks, attempts and checks, and what to do next."""
    number = found["goal"]
    page.row((f"goal {number}", "bold"), f"  {found['text']}")
    words = dict.fromkeys((found["state"], found["outcome"], found["reason"]))
    took = look.span((found["ended_ms"] or now_ms) - found["created_ms"])
    style = look.style(found["outcome"])
    page.row(
        page.mark(found["outcome"]), (", ".join(filter(None, words)), style), f", {took}", indent=2
    )
    if found["undone"]:
        page.row(("undone", "yellow"), ": its branch holds the tree it began with", indent=2)
    page.row(spend(found["usage"]), indent=2)
    if allowed := budget(found["budget"]):
        page.row(("budget   ", "dim"), allowed, indent=2)
    page.row(("started  ", "dim"), look.moment(found["created_ms"]), indent=2)
    base = found["base_commit"][:12] or "nothing"
    page.row(("branch   ", "dim"), f"{found['branch']} from {base}", indent=2)
    page.whole(("in       ", "dim"), found["repository"], indent=2)
    page.row(("model    ", "dim"), found["model"] or "named by each task", indent=2)
    for each in found["plans"]:
        page.blank()
        why = f" ({each['reason']})" if each["reason"] else ""
        line = f"plan {each['revision']} ({each['source']}): {each['state']}{why}"
        page.row(page.mark(each["state"]), (line, "bold"), indent=2)
        for one in each["tasks"]:
            task_tree(page, one, indent=4)
        if not each["tasks"]:
            page.row(("reopened: its tasks went into the next plan", "dim"), indent=4)
    page.blank()
    next_steps(page, _after_goal(found))


def plans(page: Page, rows: Sequence[Json]) -> None:
    """All plans as a table."""
    page.table(_PLANS, rows)


def plan(page: Page, found: Json) -> None:
    """One plan with its tasks."""
    number = found["plan"]
    page.row(
        (f"plan {number}", "bold"),
        f" of goal {found['goal']}, revision {found['revision']} ({found['source']})",
    )
    why = f": {found['reason']}" if found["reason"] else ""
    tokens, money, took = _totals(_tries(found))
    page.row(page.mark(found["state"]), (found["state"], look.style(found["state"])), why, indent=2)
    page.row(f"{tokens} tokens, {money}, {took} of work", indent=2)
    page.blank()
    for one in found["tasks"]:
        task_tree(page, one, indent=2)
        if found["state"] == "proposed":
            _contract(page, one, indent=6)
    page.blank()
    more = {
        "paused": [(f"holdfast plan resume {number}", "let it go on")],
        "running": [
            (f"holdfast resume {found['goal']}", "work on it, unless somebody does"),
            (f"holdfast plan pause {number}", "stop before the next effect"),
        ],
        "proposed": [
            (f"holdfast plan approve {number}", "let it run; then holdfast resume"),
            (
                f"holdfast plan reject {number} --reason …",
                "have it proposed anew" if found["source"] == "model" else "end the goal",
            ),
        ],
    }.get(found["state"], [])
    next_steps(page, [*more, (f"holdfast plan export {number}", "as a file for --plan")])


def _contract(page: Page, task: Json, *, indent: int) -> None:
    """What a person approves: after what a task comes, what it touches, its proof, its words."""
    rows = (("after", "requires"), ("files", "files"), ("makes", "creates"), ("check", "checks"))
    for label, name in rows:
        if task[name]:
            page.row((f"{label} ", "dim"), ", ".join(task[name]), indent=indent)
    page.text(task["prompt"], indent=indent, lines_max=PROPOSED_LINES_MAX)


def tasks(page: Page, rows: Sequence[Json]) -> None:
    """Tasks as a table."""
    page.table(_TASKS, rows)


def task(page: Page, found: Json) -> None:
    """One task: contract, state, what blocks it, its attempts."""
    number = found["task"]
    page.row((f"task {number}", "bold"), f" of goal {found['goal']}: {_name(found)}")
    state = found["state"]
    why = f" ({found['reason']})" if found["reason"] and not found["blocked_by"] else ""
    page.row(page.mark(state), (state, look.style(state)), f"{why}, kind {found['kind']}", indent=2)
    tokens, money, took = _totals(found["attempts"])
    page.row(f"{tokens} tokens, {money}, {took} of work", indent=2)
    if found["undone"]:
        page.row(("undone", "yellow"), indent=2)
    for name in ("requires", "files", "creates"):
        if found[name]:
            page.row((f"{name:<9}", "dim"), ", ".join(found[name]), indent=2)
    for name in ("model", "command"):
        if found[name]:
            page.row((f"{name:<9}", "dim"), found[name], indent=2)
    _terms(page, found, indent=2)
    blocked(page, found, indent=2)
    page.blank()
    page.text(found["prompt"], indent=2, lines_max=PROMPT_LINES_MAX)
    if found["checks"] or found["attempts"]:
        page.blank()
    for clause in ("precondition", "check", "postcondition"):
        for line in found[f"{clause}s"]:
            page.row(f"{clause} {line}", indent=2)
    for one in found["attempts"]:
        attempt_row(page, one, indent=2)
    page.blank()
    next_steps(page, _after_task(found))


def _terms(page: Page, found: Json, *, indent: int) -> None:
    """How hard a task is held to be, what it is given and what it may write."""
    if found["kind"] in ("agent", "model"):
        limits = f"{found['policy']['max_turns']} turns, {found['policy']['attempt_s']:g} s"
        guess = f"; the heuristic says {found['tier_guess']}: {found['tier_reason']}"
        page.row(("tier     ", "dim"), f"{found['tier']} ({limits}){guess}", indent=indent)
    page.row(("priority ", "dim"), str(found["priority"]), indent=indent)
    for name, source in found["inputs"].items():
        page.row(("input    ", "dim"), f"{name} = {source}", indent=indent)
    if found["effects"] is not None:
        allowed = ", ".join(found["effects"]) or "nothing"
        page.row(("effects  ", "dim"), f"may write {allowed}", indent=indent)


def task_tree(page: Page, found: Json, *, indent: int) -> None:
    """One task of a tree: its line, what blocks it, its attempts, the newest verdicts."""
    state = found["state"]
    told = found["reason"] in ("", "passed") or found["blocked_by"]
    why = "" if told else f"  {found['reason']}"
    page.row(
        page.mark(state),
        (f"{found['task']:>3} ", "dim"),
        (_name(found), ""),
        (f"  {state}", look.style(state)),
        (why, "dim"),
        right=[(_spent(found["attempts"]), "dim")] if len(found["attempts"]) > 1 else [],
        indent=indent,
    )
    blocked(page, found, indent=indent + 6)
    for one in found["attempts"]:
        attempt_row(page, one, indent=indent + 6)
    if found["attempts"]:
        for check in found["attempts"][-1]["checks"]:
            check_row(page, check, indent=indent + 6)


def blocked(page: Page, found: Json, *, indent: int) -> None:
    for other in found["blocked_by"]:
        page.row(
            ("blocked by ", "dim"),
            f"{other['key']} ({other['task']})",
            (f", which is {other['state']}", look.style(other["state"])),
            indent=indent,
        )


def attempts(page: Page, rows: Sequence[Json]) -> None:
    """Attempts, one line each."""
    for row in rows:
        attempt_row(page, row, indent=0)


def attempt_row(page: Page, found: Json, *, indent: int) -> None:
    """An attempt in one line, and the reason why it did not pass in a second one."""
    end = found["outcome"] or found["state"]
    when = time.strftime("%H:%M:%S", time.localtime(found["started_ms"] / 1000))
    page.row(
        page.mark(end),
        (found["attempt"], "bold"),
        (" " if page.narrow else f" {when} ", "dim"),
        (end, look.style(end)),
        f", {look.count(found['steps'], 'step')}",
        right=[(_spent([found]), "dim")],
        indent=indent,
    )
    if found["outcome"] not in ("", "passed", "unverified"):
        words = [found["failure"], found["reason"], look.head(found["detail"])]
        page.row((": ".join(word for word in words if word), "dim"), indent=indent + 6)


def check_row(page: Page, found: Json, *, indent: int) -> None:
    """A check with its verdict, exit code and time."""
    verdict = found["verdict"]
    code = f", exit {found['exit_code']}" if verdict == "fail" and not found["note"] else ""
    note = f" ({found['note']})" if found["note"] else ""
    page.row(
        page.mark(verdict),
        (f"check {verdict}", look.style(verdict)),
        f": {found['command']}{code}{note}",
        right=[(look.span(found["duration_ms"]), "dim")],
        indent=indent,
    )


def spend(usage: Json) -> str:
    """`13,269 tokens (12,800 in, 469 out), $0.0123`."""
    split = f" ({usage['tokens_in']:,} in, {usage['tokens_out']:,} out"
    cached = usage.get("tokens_cached")
    split += f", {cached:,} cached)" if cached else ")"
    return f"{look.count(usage['tokens'], 'token')}{split}, {look.money(usage['cost_usd'])}"


def budget(found: Json) -> str:
    """What may be spent; "" without a limit."""
    parts = [look.count(found["tokens"], "token")] if found["tokens"] else []
    return ", ".join([*parts, *([look.money(found["usd"])] if found["usd"] else [])])


def next_steps(page: Page, steps: Sequence[tuple[str, str]]) -> None:
    """Commands to try, with what each is for: behind them, or below on a narrow terminal."""
    width = max((len(command) for command, _ in steps), default=0)
    for command, purpose in steps:
        if page.narrow:
            page.whole((command, "cyan"), indent=2)
            page.row((purpose, "dim"), indent=6)
        else:
            page.whole((f"{command:<{width}}", "cyan"), (f"  {purpose}", "dim"), indent=2)


def _totals(found: Sequence[Json]) -> tuple[str, str, str]:
    """Tokens, money and time of attempts together; an open one counts what it has spent so far."""
    costs = [one["cost_usd"] for one in found]
    usd = None if None in costs else sum(costs)
    took = sum((one["ended_ms"] or one["started_ms"]) - one["started_ms"] for one in found)
    tokens = sum(one["tokens"] for one in found)
    return f"{tokens:,}", look.cash(usd), look.span(took)


def _spent(found: Sequence[Json]) -> str:
    tokens, money, took = _totals(found)
    return f"{tokens:>9} tok  {money:>8}  {took:>7}"


def _name(found: Json) -> str:
    key, title = found["key"], found["title"]
    return key if title == key else f"{key}: {title}"


def _state(found: Json) -> Part:
    return found["state"], look.style(found["state"])


def _tries(plan: Json) -> list[Json]:
    return [one for task in plan["tasks"] for one in task["attempts"]]


def _after_goal(found: Json) -> list[tuple[str, str]]:
    number = found["goal"]
    proposed = [each["plan"] for each in found["plans"] if each["state"] == "proposed"]
    if proposed:
        return [
            (f"holdfast plan show {proposed[-1]}", "the plan that waits for you"),
            (f"holdfast plan approve {proposed[-1]}", f"then: holdfast resume {number}"),
        ]
    done = [each for each in found["plans"] if each["source"] != "undo"]
    broken = done == found["plans"] and done[-1]["state"] == "failed"
    last = [one for each in done for task in each["tasks"] for one in task["attempts"]][-1:]
    steps = {
        "interrupted": [(f"holdfast resume {number}", "go on at the first step that is missing")],
        "waiting": [("holdfast approval", "what waits for your answer")],
    }.get(found["outcome"], [])
    if broken:
        steps = [(f"holdfast goal reopen {number}", f"try again; then: holdfast resume {number}")]
    if last:
        name = last[0]["attempt"]
        steps = [*steps, (f"holdfast attempt show {name}", "its turns, calls and checks")]
        steps.append((f"holdfast diff {number}", "what it changed"))
        if not found["undone"]:
            steps.append((f"holdfast undo {number} --dry-run", "what undoing it would walk back"))
    return steps


def _after_task(found: Json) -> list[tuple[str, str]]:
    if not found["attempts"]:
        return [(f"holdfast context preview {found['task']}", "what its attempt will be shown")]
    name = found["attempts"][-1]["attempt"]
    return [
        (f"holdfast attempt show {name}", "its turns, calls and checks"),
        (f"holdfast why {name}", "what it was shown, and why"),
    ]
