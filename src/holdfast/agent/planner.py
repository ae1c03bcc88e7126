"""The planner: a goal becomes tasks that a model proposed and this code accepted.

Owns what is asked and what an answer must be: read by the reader of `--plan FILE`, sized by the
task's `Planning`, grounded in the files of the base tree, acyclic. A wrong answer goes back once
with the exact error; a second one ends the goal with that error, never with an empty plan. Tasks
that are too big for one sitting are split in the same conversation. The model decides nothing else:
models, policies and the goal's own checks are not its to write.
"""

from __future__ import annotations

import asyncio
import json
import re
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from holdfast.adapters.plan_file import goal_checks, plan_tasks
from holdfast.adapters.tools.paths import Refusal, place
from holdfast.agent import loop, prompts
from holdfast.agent.actions import read_object
from holdfast.agent.chain import chain
from holdfast.agent.conversation import Conversation, encode
from holdfast.agent.journal import Effectful, Performed
from holdfast.agent.loop import Job, Reply
from holdfast.domain import graph
from holdfast.domain.model import CheckResult, Outcome, Planning, TaskSpec
from holdfast.domain.ports import Workspace
from holdfast.errors import Refused
from holdfast.frozen import frozen

TEMPLATES = ("plan_again", "plan_split")
UNITS_MIN = 2
WHOLE = "whole"  # of a task that was split: checks it where several units end
_ANSWER = Path("plan.json")  # how an answer's positions are named
_KEY = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_FENCED = re.compile(r"\A```\w*[ \t]*\n(.*)\n```\Z", re.DOTALL)
_NOT_THEIRS = {"model", "policy"}  # what a task costs and may take is the goal's
_KINDS = ("agent", "model", "shell")


@frozen
class Draft:
    """A plan so far, and the keys of its tasks that are still to be split."""

    tasks: tuple[TaskSpec, ...]
    big: frozenset[str] = frozenset()


class Unusable(Exception):
    """The second answer was wrong too; says how."""

    def __init__(self, error: Refused) -> None:
        super().__init__(str(error))
        self.error = error


async def plan(job: Job) -> Outcome:
    """Ask for a plan and for the units of its big tasks; the outcome asks for these tasks."""
    task = job.bundle.task
    try:
        tasks = await _decomposed(job, task)
    except Unusable as wrong:
        await job.journal.flush()
        return Outcome(
            kind="failed",
            failure="policy",
            reason=wrong.error.code,
            detail=f"no usable plan was proposed: {wrong}",
            tree=job.journal.tree,
        )
    if task.checks:
        rounds = _rules(task).rounds
        tasks = (*tasks, goal_checks(tasks, task.checks, task.policy, rounds=rounds))
    await job.journal.flush()
    proof = CheckResult(
        command="the plan is acyclic, within its sizes and grounded in files",
        verdict="pass",
        output=f"{len(tasks)} tasks",
    )
    return Outcome(
        kind="passed",
        answer="\n".join(_line(each) for each in tasks),
        checks=(proof,),
        done=(proof.command,),
        tree=job.journal.tree,
        tasks=tasks,
    )


async def _decomposed(job: Job, task: TaskSpec) -> tuple[TaskSpec, ...]:
    talk = Conversation(
        model=chain(job.bundle.model)[0],
        seed=job.bundle.seed,
        tools=(),
        system=job.bundle.system,
        user=job.bundle.user,
    )
    draft = await _proposed(job, talk, "plan", lambda text: read_plan(text, task))
    for at, whole in enumerate((each for each in draft.tasks if each.key in draft.big), start=1):
        name = f"split:{at:02}"
        talk.user(_split_request(job, whole), name)
        draft = await _proposed(
            job, talk, name, partial(read_units, draft=draft, whole=whole, planning=task)
        )
    return draft.tasks


def read_plan(text: str, planning: TaskSpec) -> Draft:
    """The tasks of a model's answer for the whole goal; `Refused` says what is wrong with it."""
    rules = _rules(planning)
    tasks, big = _tasks(text, planning)
    _count(tasks, rules.tasks_min, rules.tasks_max)
    graph.validate({task.key: task.requires for task in tasks})
    if rules.levels < 2:
        _all_small(tasks, big, rules)
    else:
        big |= {task.key for task in tasks if _over(task, rules)}
    return Draft(tasks=tuple(tasks), big=frozenset(big))


def read_units(text: str, *, draft: Draft, whole: TaskSpec, planning: TaskSpec) -> Draft:
    """The draft with its task `whole` replaced by the units of a model's answer."""
    rules = _rules(planning)
    units, big = _tasks(text, planning)
    _count(units, UNITS_MIN, rules.tasks_max)
    graph.validate({unit.key: unit.requires for unit in units})
    _all_small(units, big, rules)
    if any(unit.key == WHOLE for unit in units):
        raise Refused(f"the key {WHOLE!r} is taken", code="plan_duplicate")
    return replace(draft, tasks=split(draft.tasks, whole, units))


def split(
    tasks: Sequence[TaskSpec], whole: TaskSpec, units: Sequence[TaskSpec]
) -> tuple[TaskSpec, ...]:
    """The plan with one task replaced by its units: who required it requires their ends.

    What proves the whole is proven where they meet: by the last unit, or by a task after the last
    ones when there are several.
    """
    named = {unit.key: f"{whole.key}.{unit.key}" for unit in units}
    required = {key for unit in units for key in unit.requires}
    last = [named[unit.key] for unit in units if unit.key not in required]
    made = [_unit(unit, whole, named) for unit in units]
    if len(last) > 1:
        meeting = TaskSpec(
            key=f"{whole.key}.{WHOLE}",
            title=f"Check {whole.label}",
            prompt="",
            kind="shell",
            command="true",
            requires=tuple(last),
            priority=whole.priority,
            policy=whole.policy,
        )
        made, last = [*made, meeting], [meeting.key]
    made = [_proving(unit, whole) if unit.key in last else unit for unit in made]
    found: list[TaskSpec] = []
    for task in tasks:
        found += made if task.key == whole.key else [_after(task, whole.key, last)]
    return tuple(found)


def _unit(unit: TaskSpec, whole: TaskSpec, named: Mapping[str, str]) -> TaskSpec:
    """A unit by its name in the plan; the first ones begin where their task would have begun."""
    first = not unit.requires
    return replace(
        unit,
        key=named[unit.key],
        requires=whole.requires if first else tuple(named[key] for key in unit.requires),
        refers=tuple(named[key] for key in unit.refers),
        inputs={name: _renamed(source, named) for name, source in unit.inputs.items()},
        preconditions=_flat((whole.preconditions if first else (), unit.preconditions)),
        priority=whole.priority,
    )


def _proving(unit: TaskSpec, whole: TaskSpec) -> TaskSpec:
    return replace(
        unit,
        checks=_flat((unit.checks, whole.checks)),
        postconditions=_flat((unit.postconditions, whole.promises)),
    )


def _after(task: TaskSpec, key: str, last: Sequence[str]) -> TaskSpec:
    """A task of the plan with one that it names replaced by the ends of its units."""
    return replace(
        task,
        requires=_flat(last if other == key else [other] for other in task.requires),
        refers=_flat(last if other == key else [other] for other in task.refers),
        inputs={name: _renamed(source, {key: last[0]}) for name, source in task.inputs.items()},
    )


def _renamed(source: str, named: Mapping[str, str]) -> str:
    """An input that is a task's output, by the task's name now."""
    kind, colon, key = source.partition(":")
    return f"task:{named[key]}" if kind == "task" and colon and key in named else source


async def _proposed(job: Job, talk: Conversation, name: str, read: Callable[[str], Draft]) -> Draft:
    """An answer that can be used, asked for at most twice; raises `Unusable` after the second."""
    for key in (name, f"{name}/again"):
        said = await loop.ask(job, talk, key)
        try:
            draft = read(_answer(said))
            await _grounded(job, draft.tasks, f"{key}/files")
            return draft
        except Refused as error:
            if key != name:
                raise Unusable(error) from error
            talk.user(prompts.fill(job.bundle.templates["plan_again"], error=str(error)), key)
    raise AssertionError("the second answer is used or Unusable")


def _answer(said: Reply) -> str:
    match said.actions.kind:
        case "cut":
            raise Refused("it was cut off at the length limit: answer shorter", code="plan_cut")
        case "calls":
            raise Refused("it calls a tool: answer with the JSON object alone", code="plan_no_json")
        case "answer" | "empty":
            return said.actions.answer


def _tasks(text: str, planning: TaskSpec) -> tuple[list[TaskSpec], set[str]]:
    """What the answer says, strictly read; fields that are not a model's to write are refused."""
    body, document = _document(text)
    rows = document.get("tasks")
    big: set[str] = set()
    if isinstance(rows, list):
        for index, row in enumerate(rows):
            if isinstance(row, dict):
                _theirs(row, f"tasks[{index}]")
                called = row.pop("big", False)
                if not isinstance(called, bool):
                    raise Refused(f"tasks[{index}]: 'big' is true or false, not {called!r}")
                if called:
                    big.add(str(row.get("key")))
    if "policy" in document:
        raise Refused("'policy' is not yours to write", code="plan_not_yours")
    tasks = plan_tasks(document, body, _ANSWER, policy=planning.policy)
    for index, task in enumerate(tasks):
        if not _KEY.fullmatch(task.key):
            raise Refused(
                f"tasks[{index}]: the key {task.key!r} is not lower-case letters, digits, - and _"
            )
        if not (task.checks or task.promises or task.kind == "shell"):
            raise Refused(f"tasks[{index}]: task {task.key!r} has no check", code="plan_no_check")
        for other in task.refers:
            if other not in {each.key for each in tasks}:
                raise Refused(f"task {task.key!r} refers to {other!r}, which is not in the plan")
    return [_without_own(task) for task in tasks], big


def _document(text: str) -> tuple[str, dict[str, Any]]:
    """The one JSON object of an answer; what cannot be read is refused with its position."""
    found = _FENCED.match(text.strip())
    body = found[1] if found else text.strip()
    document = read_object(body) if body else None
    if document is not None:
        return body, document
    try:
        json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(f"it is no JSON object: {error}", code="plan_unreadable") from error
    raise Refused("it is not one JSON object, or says a key twice", code="plan_unreadable")


def _theirs(row: Mapping[str, Any], where: str) -> None:
    for name in sorted(_NOT_THEIRS & row.keys()):
        raise Refused(f"{where}: {name!r} is not yours to write", code="plan_not_yours")
    if row.get("kind", "agent") not in _KINDS:
        raise Refused(f"{where}: kind is one of {', '.join(_KINDS)}", code="plan_not_yours")


def _without_own(task: TaskSpec) -> TaskSpec:
    """A file the task makes is not one it begins with, although models like to name it twice."""
    return replace(task, files=tuple(path for path in task.files if path not in task.creates))


def _all_small(tasks: Sequence[TaskSpec], big: Collection[str], rules: Planning) -> None:
    problems = [problem for task in tasks if (problem := _over(task, rules))]
    problems += [f"task {key!r} is called big" for key in sorted(big)]
    if problems:
        raise Refused(f"{problems[0]}, and it cannot be split again", code="plan_size")


def _over(task: TaskSpec, rules: Planning) -> str:
    """In which way a task is over the size of a unit; empty when it is not."""
    paths = len(task.files) + len(task.creates)
    if paths > rules.unit_files_max:
        return f"task {task.key!r} names {paths} files, over the {rules.unit_files_max} of a unit"
    if len(task.prompt) > rules.unit_chars_max:
        most = rules.unit_chars_max
        return f"the prompt of {task.key!r} has {len(task.prompt)} characters, over {most}"
    return ""


def _count(tasks: Sequence[TaskSpec], least: int, most: int) -> None:
    if not least <= len(tasks) <= most:
        raise Refused(f"it has {len(tasks)} tasks; {least} to {most} are wanted", code="plan_size")


async def _grounded(job: Job, tasks: Sequence[TaskSpec], key: str) -> None:
    """Refuse a file that is nowhere; what the base tree holds is looked up once, as a step."""
    paths = sorted({path for task in tasks for path in (*task.files, *task.creates)})

    async def perform() -> Performed:
        found = await asyncio.to_thread(_existing, job.workspace, paths)
        return Performed(result=encode(found))

    content = await job.journal.step(
        Effectful(
            key=key,
            kind="checkpoint",
            effect="pure",
            request=encode({"files": paths}),
            perform=perform,
        )
    )
    ground(tasks, msgspec.json.decode(content, type=dict[str, str]))


def ground(tasks: Sequence[TaskSpec], found: Mapping[str, str]) -> None:
    """Every named file exists, or a task before makes it; every new one is new.

    `found` says of each path what is there: `file`, `nothing`, or why it cannot be one.
    """
    made: dict[str, set[str]] = {}
    requires = {task.key: task.requires for task in tasks}
    by_key = {task.key: task for task in tasks}
    for key in graph.order(requires):
        task = by_key[key]
        before = set().union(*(made[other] for other in task.requires)) if task.requires else set()
        for path in task.files:
            if found[path] != "file" and path not in before:
                what = "does not exist" if found[path] == "nothing" else found[path]
                raise Refused(
                    f"task {key!r} names the file {path!r}, which {what}",
                    hint="name files of the listing, or put new ones under 'creates'",
                    code="missing_file",
                )
        for path in task.creates:
            if found[path] != "nothing":
                what = "exists already" if found[path] == "file" else found[path]
                raise Refused(
                    f"task {key!r} creates {path!r}, which {what}",
                    hint="a file that is there belongs under 'files'",
                    code="plan_file_exists",
                )
        made[key] = before | set(task.creates)


def _existing(workspace: Workspace, paths: Iterable[str]) -> dict[str, str]:
    """What is at each path of the checkout; looked up without leaving it."""
    found = {}
    for path in paths:
        try:
            with place(workspace.root, path) as at:
                kind, there = at.kind(), at.relative
        except Refusal as refusal:
            gone = refusal.code == "FILE_NOT_FOUND"
            found[path] = "nothing" if gone else f"is refused: {refusal.message}"
            continue
        if there != path:
            found[path] = f"is written {there!r}"
        elif kind is None:
            found[path] = "nothing"
        else:
            found[path] = "file" if kind == stat.S_IFREG else "is no regular file"
    return found


def _split_request(job: Job, whole: TaskSpec) -> str:
    rules = _rules(job.bundle.task)
    return prompts.fill(
        job.bundle.templates["plan_split"],
        key=whole.key,
        title=whole.label,
        units_min=str(UNITS_MIN),
        tasks_max=str(rules.tasks_max),
        unit_files_max=str(rules.unit_files_max),
        unit_chars_max=str(rules.unit_chars_max),
    )


def _line(task: TaskSpec) -> str:
    after = f" (after {', '.join(task.requires)})" if task.requires else ""
    return f"{task.key}: {task.label}{after}"


def _flat(keys: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for part in keys for key in part))


def _rules(task: TaskSpec) -> Planning:
    assert task.planning is not None, "a planning task says how it plans"
    return task.planning
