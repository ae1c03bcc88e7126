"""A plan as text: a TOML or JSON file read into a `PlanSpec`, or refused with the position.

A person's file and a model's answer pass the same reader; nothing here knows who wrote it.

Shape: an optional `[policy]` for all tasks, and `[[tasks]]` with `key`, `prompt` and any other
field of `TaskSpec`; a task may override single fields of the policy in a `policy` table of its own.
A check is a text, as for `--check`, or a table `{kind = "file_exists", path = "a.txt"}`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import msgspec

from holdfast.domain import graph
from holdfast.domain.checks import read_check
from holdfast.domain.contract import validate
from holdfast.domain.model import PlanSpec, Policy, Priority, TaskSpec, Tier
from holdfast.errors import Refused

TASKS_MAX = 1000
FILE_BYTES_MAX = 1_000_000
FORMAT = 1
_OURS = {"compensates", "merges", "planning", "provisional"}  # what only Holdfast says about a task
_TASK_FIELDS = {item.name for item in fields(TaskSpec)} - _OURS
_CHECKS = {"checks", "preconditions", "postconditions"}
_POLICY_FIELDS = {item.name for item in fields(Policy)}


def read_plan(path: Path, *, policy: Policy, checks: Sequence[str] = ()) -> PlanSpec:
    """Read and validate a plan file.

    `policy` gives the defaults. `checks` prove the whole: they become a last task that requires all
    others, so they run on the finished branch.
    """
    text = _text(path)
    document = _parse(path, text)
    tasks = plan_tasks(document, text, path, policy=policy)
    if checks:
        common = _policy(document.get("policy", {}), policy, path.name)
        tasks.append(goal_checks(tasks, checks, common, rounds=0))
    return PlanSpec(tasks=tuple(tasks), source="person")


def plan_tasks(
    document: Mapping[str, Any], text: str, path: Path, *, policy: Policy
) -> list[TaskSpec]:
    """The tasks of a plan's document; `text` and `path` are where its refusals point to."""
    where = _Positions(path, text)
    _known(document, {"tasks", "policy", "version"}, where.file())
    if document.get("version", FORMAT) != FORMAT:
        raise Refused(f"{where.file()}: version {document['version']} is newer than this Holdfast")
    rows = document.get("tasks")
    if not isinstance(rows, list) or not rows:
        raise Refused(f"{where.file()}: there are no tasks", hint="add a [[tasks]] table")
    if len(rows) > TASKS_MAX:
        raise Refused(f"{where.file()}: {len(rows)} tasks; at most {TASKS_MAX} are allowed")
    common = _policy(document.get("policy", {}), policy, where.file())
    tasks = [_task(row, common, where.task(index)) for index, row in enumerate(rows)]
    _unique(tasks, where)
    try:
        graph.validate({task.key: task.requires for task in tasks})
    except Refused as error:
        keys = [task.key for task in tasks]
        named = next((index for index, key in enumerate(keys) if repr(key) in error.message), 0)
        with _placed(where.task(named)):
            raise
    return tasks


def goal_checks(
    tasks: Sequence[TaskSpec], checks: Sequence[str], policy: Policy, *, rounds: int
) -> TaskSpec:
    """The last task of a plan, which proves the whole: its takes are the rounds of verification.

    Each of `rounds` takes that fails asks for a follow-up; with none the goal fails with the first.
    """
    key = "verify"
    while any(task.key == key for task in tasks):
        key += "-goal"
    return TaskSpec(
        key=key,
        title="Check the finished branch",
        prompt="",
        kind="verify",
        requires=tuple(task.key for task in tasks),
        checks=tuple(checks),
        policy=replace(policy, max_takes=1 + rounds),
    )


def plan_document(tasks: Sequence[TaskSpec]) -> dict[str, Any]:
    """A plan as `read_plan` reads it: reading it back gives the same tasks.

    Merges and follow-ups are left out: a plan that runs again makes its own.
    """
    rows = []
    for task in tasks:
        if not task.merges and not task.provisional:
            row = msgspec.to_builtins(task)
            rows.append({name: value for name, value in row.items() if name not in _OURS})
    return {"version": FORMAT, "tasks": rows}


class _Positions:
    """Names places of the file: `plan.toml:12 tasks[2]`."""

    def __init__(self, path: Path, text: str) -> None:
        self._name = path.name
        header = re.compile(r"^\s*\[\[\s*tasks\s*\]\]" if path.suffix == ".toml" else r'"key"\s*:')
        lines = enumerate(text.splitlines(), start=1)
        self._lines = [number for number, line in lines if header.search(line)]

    def file(self) -> str:
        return self._name

    def task(self, index: int) -> str:
        line = f":{self._lines[index]}" if index < len(self._lines) else ""
        return f"{self._name}{line} tasks[{index}]"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:  # a device and a pipe have no size
            content = file.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            raise Refused(f"{path} is larger than {FILE_BYTES_MAX} bytes")
        return content.decode("utf-8")
    except OSError as error:
        raise Refused(f"cannot read the plan {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Refused(f"the plan {path} is not UTF-8: byte {error.start}") from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path.name} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise Refused(f"{path.name} holds no object", hint='{"tasks": [...]}')
    return document


def _task(row: Any, policy: Policy, where: str) -> TaskSpec:
    if not isinstance(row, dict):
        raise Refused(f"{where} is not a table")
    _known(row, _TASK_FIELDS, where)
    for name in ("key",) if row.get("kind") in ("shell", "verify") else ("key", "prompt"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            raise Refused(f"{where} needs a {name!r}", hint=f'{name} = "…"')
    for kind, verb in (("compensate", "undo"), ("plan", "run")):
        if row.get("kind") == kind:
            raise Refused(f"{where}: kind {kind!r} is made by `holdfast {verb}` alone")
    values = {"prompt": "", **row, "policy": _policy(row.get("policy", {}), policy, where)}
    _known_word(row, "priority", get_args(Priority), where)
    _known_word(row, "tier", get_args(Tier), where)
    values |= {name: _checks(row[name], name, where) for name in _CHECKS & row.keys()}
    with _placed(where):
        task = msgspec.convert(values, TaskSpec)
        if task.kind == "shell" and not task.command:
            raise Refused("a shell task needs a 'command'")
        if task.kind == "verify" and not task.checks:
            raise Refused("a verify task needs 'checks'")
        validate(task)
    return task


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """A refusal inside is told with its place."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{where}: {error.message}", hint=error.hint, code=error.code) from error
    except msgspec.ValidationError as error:
        raise Refused(f"{where}: {error}") from error


def _known_word(row: Mapping[str, Any], name: str, words: Sequence[str], where: str) -> None:
    if name in row and row[name] not in words:
        raise Refused(f"{where}: {name} is {row[name]!r}", hint=f"known: {', '.join(words)}")


def _checks(rows: Any, name: str, where: str) -> Any:
    """Checks as their lines; what is no list of texts and tables is left to the schema."""
    if not isinstance(rows, list) or not all(isinstance(row, str | dict) for row in rows):
        return rows
    lines = []
    for index, row in enumerate(rows):
        with _placed(f"{where}: {name}[{index}]"):
            lines.append(read_check(row).line)
    return lines


def _policy(row: Any, base: Policy, where: str) -> Policy:
    if not isinstance(row, dict):
        raise Refused(f"{where}: policy is not a table")
    _known(row, _POLICY_FIELDS, f"{where} policy")
    with _placed(f"{where} policy"):
        return msgspec.convert({**asdict(base), **row}, Policy)


def _unique(tasks: Sequence[TaskSpec], where: _Positions) -> None:
    seen: dict[str, int] = {}
    for index, task in enumerate(tasks):
        if task.key in seen:
            said = f"the key {task.key!r} is taken by {where.task(seen[task.key])}"
            raise Refused(f"{where.task(index)}: {said}", code="plan_duplicate")
        seen[task.key] = index


def _known(row: Mapping[str, Any], names: set[str], where: str) -> None:
    for key in row:
        if key not in names:
            close = get_close_matches(str(key), sorted(names), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(sorted(names))
            raise Refused(f"{where}: unknown key {key!r}", hint=hint, code="plan_unknown_key")
