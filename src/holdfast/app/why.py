"""Why a line or an attempt is as it is: goal, task, attempt, step, prompt, bundle, model and cost.

A line is followed by blame on the goal's branch to the commit, by the commit's trailers to the
attempt, and by the attempt's trees to the step that wrote it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from holdfast.adapters.git import Git, GitFailed
from holdfast.adapters.repository import BlamedLine, Repository
from holdfast.agent.chain import Move
from holdfast.app import STORE_NAME, App
from holdfast.context.bundle import Bundle
from holdfast.engine.attempts import AttemptRecord, attempt_record
from holdfast.engine.outlook import usage
from holdfast.engine.rows import need
from holdfast.errors import NotFound, Refused
from holdfast.store import Tx, open_reader
from holdfast.trace.report import context

_TRAILER = re.compile(r"^Holdfast-Attempt: (\d+\.\d+)$", re.MULTILINE)


def why_line(app: App, path: str, line: int, *, goal: int = 0, rev: str = "") -> dict[str, Any]:
    """Who wrote line `line` of `path`, on the newest goal's branch unless another is named."""
    row = app.engine.read(_goal, goal)
    repository = Repository.open(Path(row["repository"]))
    blamed = repository.blame(rev or row["branch_commit"], _clean(path), line)
    if blamed is None:
        raise NotFound(
            f"{path} has no line {line} on {row['branch']}", hint="PATH is relative to the top"
        )
    trailers = _TRAILER.findall(repository.commit_message(blamed.commit))
    text = app.redact(blamed.text)
    found = {"path": path, "line": line, "text": text, "commit": blamed.commit}
    if not trailers:
        return {**found, "attempt": None, "note": "this line is older than the goal"}
    record = app.engine.read(attempt_record, trailers[-1])  # the text above may say anything
    return {**found, **_described(record), "step": _step_of(app, record, blamed)}


def why_attempt(app: App, name: str) -> dict[str, Any]:
    """What an attempt was given, did and cost."""
    record = app.engine.read(attempt_record, name)
    steps = [
        {
            "key": step.key,
            "kind": step.kind,
            "state": step.state,
            "attempt": f"{record.fence.task}.{step.attempt}" if step.attempt else "person",
            "tokens": step.usage.tokens,
        }
        for step in record.steps
    ]
    moves = [
        msgspec.to_builtins(msgspec.json.decode(step.result, type=Move))
        for step in record.steps
        if step.kind == "decision" and "/move." in step.key and step.result is not None
    ]
    return {**_described(record), "steps": steps, "moves": moves}


def for_an_agent(app: App, session: str, tokens: int) -> str:
    """The evidence of an attempt (of the latest failure for "") in at most `tokens` tokens.

    Header and what was left out are inside the budget, which is at least 100.
    """
    connection = open_reader(app.home / STORE_NAME)
    try:
        return context(connection, tokens, session_id=session)
    finally:
        connection.close()


def _described(record: AttemptRecord) -> dict[str, Any]:
    bundle = msgspec.json.decode(record.bundle, type=Bundle)
    outcome = record.outcome
    return {
        "goal": record.fence.goal,
        "goal_text": bundle.goal,
        "task": bundle.task.key,
        "task_title": bundle.task.label,
        "attempt": record.fence.session,
        "prompt": bundle.task.prompt,
        "bundle": record.bundle_sha256,
        "prompt_hash": record.bundle_sha256,  # as the view `runs` calls it
        "bundle_items": msgspec.to_builtins(bundle.items),
        "model": bundle.model,
        "seed": bundle.seed,
        "parameters": msgspec.to_builtins(bundle.task.policy),
        "context_options": msgspec.to_builtins(bundle.options),
        "worker": record.worker,
        "outcome": outcome.kind if outcome else "open",
        "reason": outcome.reason if outcome else "",
        "answer": outcome.answer if outcome else "",
        "checks": msgspec.to_builtins(outcome.checks) if outcome else [],
        "usage": usage(record.usage),
    }


def _step_of(app: App, record: AttemptRecord, blamed: BlamedLine) -> str | None:
    """The step whose tree first held the line and kept it; None when its trees are gone."""
    git_dir = app.home / "tasks" / str(record.fence.task) / "git"
    if not git_dir.is_dir():
        return None
    git = Git(git_dir=git_dir)
    writer: str | None = None
    before = _copies(git, record.base_tree, blamed)
    for step in record.steps:
        if step.state == "done" and step.tree_after and step.tree_after != step.tree_before:
            now = _copies(git, step.tree_after, blamed)
            writer = step.key if now > before else writer
            before = now
    return writer


def _copies(git: Git, tree: str, blamed: BlamedLine) -> int:
    try:
        content = git.run("cat-file", "blob", f"{tree}:{blamed.path}")
    except GitFailed:
        return 0
    return content.decode(errors="replace").split("\n").count(blamed.text)


def _goal(tx: Tx, goal: int) -> Any:
    if goal:
        return need(tx, "goal", id=goal)
    rows = tx.all("goal.list")
    if not rows:
        raise NotFound("there is no goal yet")
    return rows[-1]


def _clean(path: str) -> str:
    if path.startswith("/") or ".." in Path(path).parts:
        raise Refused(f"{path} is no path below the repository's top")
    return path.removeprefix("./")
