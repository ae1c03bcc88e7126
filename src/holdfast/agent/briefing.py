"""Brief: a task, what it builds on and a budget become the bundle of a take, rendered once.

Owns which candidates a task has; `context.bundle` decides what fits. Deterministic: the same task,
outputs, files and settings give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace

from holdfast.adapters.tools.paths import shown
from holdfast.agent import prompts
from holdfast.agent.chain import chain
from holdfast.agent.conversation import encode
from holdfast.agent.edits import format_of
from holdfast.agent.edits import offered as edit_offers
from holdfast.context import tokens
from holdfast.context.bundle import INDEX_RULES, PLAIN, Bundle, Candidate, Rules, fit
from holdfast.context.steer import Steer, steered, unseen
from holdfast.domain.checks import read_check
from holdfast.domain.contract import TASK, required_by
from holdfast.domain.model import Claim, Outcome, Planning, TaskKind, TaskSpec
from holdfast.domain.ports import ToolSpec
from holdfast.errors import Refused
from holdfast.frozen import frozen

TEMPLATES = ("corrective", "cut", "empty")
MORE_TEMPLATES: Mapping[TaskKind, tuple[str, ...]] = {
    "plan": ("plan_again", "plan_split"),
    "verify": ("follow_up",),
}
FILES_LISTED_MAX = 400


@frozen
class Related:
    """Another task: how it relates, and what came of it. `outside` is one of another plan."""

    key: str
    kind: str
    title: str
    state: str
    answer: str
    id: int = 0
    outside: bool = False


@frozen
class Conflict:
    """What a merge could not join: in which files, and the work that stands on either side."""

    files: tuple[str, ...]
    ours: str
    theirs: str
    said: str


@frozen
class Surroundings:
    """What a task can be shown beside its own text.

    `files` are the names in the base tree; `read` gives one's text, or None when there is none or
    it is binary. `reflection` says how the take before failed. `undo` are the trees to walk back.
    `more` was found beside what the task names: its index, past outputs, a map. `find` gives the
    text of a pinned source that is none of these, or None. `index_rules` bind the task's output.
    """

    files: Sequence[str] = ()
    read: Callable[[str], str | None] = lambda path: None
    related: Sequence[Related] = ()
    reflection: str = ""
    undo: tuple[str, ...] = ()
    rules: Rules = PLAIN
    steers: Sequence[Steer] = ()
    more: Sequence[Candidate] = ()
    find: Callable[[str], str | None] = lambda source: None
    index_rules: str = ""
    conflict: Conflict | None = None


def brief(
    claim: Claim,
    around: Surroundings,
    *,
    model: str,
    tools: Sequence[ToolSpec],
    budget_tokens: int,
    conversation_tokens: int = 0,
    counter: str = "pieces",
) -> Bundle:
    """The bundle of a new take; `counter` counts what its `budget_tokens` allow.

    Raises `Refused` when a file or an input that the task names is not there, or when the task's
    own text and what must be shown beside it are over the budget.
    """
    task = claim.spec
    missing = [path for path in task.files if path not in set(around.files)]
    if missing:
        raise Refused(
            f"task {task.key!r} names {missing[0]!r}, which is not in the repository",
            code="missing_file",
        )
    for name, source in task.inputs.items():
        if not _input(around, source):
            raise Refused(
                f"task {task.key!r} needs its input {name!r}, but {source} gives no text",
                hint="a file of the base, or task:KEY with an output",
                code="missing_input",
            )
    count = tokens.counter(counter)
    text, items = fit(
        _head(claim, around),
        [*_candidates(claim, around), *_unseen(claim, around)],
        budget_tokens=budget_tokens,
        rules=_framed(around.rules),
        count=count,
    )
    names = (*TEMPLATES, *MORE_TEMPLATES.get(task.kind, ()))
    templates = {name: prompts.load(name) for name in names}
    if around.index_rules:
        templates[INDEX_RULES] = around.index_rules
    format = format_of(chain(model)[0]) if model else "search_replace"
    offered = edit_offers(tools, format) if task.kind == "agent" else ()
    return Bundle(
        task=task,
        goal=claim.goal_text,
        model=model,
        seed=claim.seed,
        system=_system(task, offered),
        user=text,
        tools=offered,
        templates=templates,
        items=items,
        budget_tokens=budget_tokens,
        tokens=count(text),
        counter=counter,
        conversation_tokens=conversation_tokens,
        undo=around.undo,
    )


def _system(task: TaskSpec, tools: Sequence[ToolSpec]) -> str:
    system = prompts.load("planner" if task.kind == "plan" else "system")
    if task.policy.calls != "json" or not tools:
        return system
    listing = "\n".join(
        encode(
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        ).decode()
        for tool in tools
    )
    return f"{system}\n\n{prompts.fill(prompts.load('calls_json'), tools=listing)}"


def _framed(rules: Rules) -> Rules:
    """Fenced items stand between what they are and how to use them."""
    frame = prompts.load("context"), prompts.load("context_use")
    return replace(rules, frame=frame) if rules.fenced else rules


def _head(claim: Claim, around: Surroundings) -> str:
    task, conflict = claim.spec, around.conflict
    if task.planning is not None:
        return f"# Task: {task.label}\n\n{_plan_request(claim.goal_text, task, task.planning)}"
    wanted = task.prompt.strip() or claim.goal_text.strip()
    if conflict is not None:
        sides = {"ours": conflict.ours, "theirs": conflict.theirs, "said": conflict.said}
        wanted = prompts.fill(prompts.load("merge"), **sides)
    parts = [f"# Task: {task.label}", wanted]
    if claim.goal_text.strip() not in task.prompt:
        parts.append(f"It is part of this goal: {claim.goal_text.strip()}")
    parts += [*_background(task), *_proofs(task)]
    if around.index_rules:  # what fails an output is never left to the budget of a page
        rules = "\n".join(f"- {rule}" for rule in around.index_rules.splitlines())
        parts.append(f"Your answer is checked by these rules of INDEX.md:\n{rules}")
    return "\n\n".join(parts)


def _plan_request(goal: str, task: TaskSpec, rules: Planning) -> str:
    sizes = {name: str(value) for name, value in asdict(rules).items() if isinstance(value, int)}
    bigger = prompts.load("plan_big") if rules.levels > 1 else ""
    parts = [prompts.fill(prompts.load("plan"), goal=goal.strip(), bigger=bigger, **sizes)]
    if task.checks:
        lines = "\n".join(f"- {read_check(line).words}" for line in task.checks)
        parts.append(f"When all tasks are done, all of this must hold:\n{lines}")
    return "\n\n".join(parts)


def _background(task: TaskSpec) -> list[str]:
    """What a task says of itself beside its prompt; each part whole, as it was written."""
    parts = []
    if task.context:
        parts.append(f"Context: {task.context}")
    if task.success_criteria:
        parts.append(
            "It succeeds when:\n" + "\n".join(f"- {each}" for each in task.success_criteria)
        )
    if task.file_hints:
        hints = (
            f"- {hint.path}" + (f": {hint.reason}" if hint.reason else "")
            for hint in task.file_hints
        )
        parts.append("Files that are likely to matter:\n" + "\n".join(hints))
    if task.effects is not None:
        allowed = ", ".join(f"`{pattern}`" for pattern in task.effects)
        parts.append(
            f"You may write only {allowed}; any other change is refused or taken back."
            if allowed
            else "You may write nothing; any change is refused or taken back."
        )
    return parts


def _proofs(task: TaskSpec) -> list[str]:
    """What proves the task, in words; commands alone are listed as they are."""
    checks = [read_check(line) for line in (*task.checks, *task.promises)]
    if not checks:
        return []
    if all(check.kind == "command_succeeds" for check in checks):
        lines = "\n".join(f"- `{check.subject}`" for check in checks)
        return [f"The task is done when each of these commands succeeds:\n{lines}"]
    lines = "\n".join(f"- {check.words}" for check in checks)
    return [f"The task is done when all of this holds:\n{lines}"]


def _candidates(claim: Claim, around: Surroundings) -> list[Candidate]:
    """Everything that could be shown, with what people decided about it."""
    found = [
        replace(item, excluded=item.excluded or "nobody asked for it")
        if item.kind in around.rules.without
        else item
        for item in [*_named(claim, around), *around.more]
    ]
    return steered(found, around.steers)


def _unseen(claim: Claim, around: Surroundings) -> list[Candidate]:
    """Steers of what is no candidate by itself; one that changes nothing is explained, not lost."""
    found = []
    for steer in unseen(_candidates(claim, around), around.steers):
        text = around.find(steer.source) if steer.verb == "pin" else None
        there = text is not None or steer.source in around.files
        gone = "it has no text" if there else "there is no such file or task output"
        found.append(
            Candidate(
                source=steer.source,
                kind="pin",
                reason="pinned " + steer.words if steer.verb == "pin" else "named by a person",
                text=text or "",
                excluded=("" if text else gone)
                if steer.verb == "pin"
                else "excluded " + steer.words,
            )
        )
    return found


def _input(around: Surroundings, source: str) -> str:
    """The text of an input: a required task's output, or a file of the base; empty for neither."""
    key = required_by(source)
    if not key:
        return (around.read(source) or "") if source in set(around.files) else ""
    return next(
        (other.answer for other in around.related if other.key == key and other.kind == "requires"),
        "",
    )


def _named(claim: Claim, around: Surroundings) -> list[Candidate]:
    inputs = _by_source(claim.spec.inputs)
    paths = [source for source in inputs if not required_by(source)]
    found = [
        Candidate(
            source=path,
            kind="file",
            reason=f"input {inputs[path]}" if path in inputs else "named by the task",
            text=around.read(path) or "(empty or not text)",
        )
        for path in dict.fromkeys([*claim.spec.files, *paths])
    ]
    if around.rules.fenced:
        found += _hinted(claim, around, {item.source for item in found})
    if around.reflection:
        found.append(
            Candidate(
                source="Last try",
                kind="reflection",
                reason="how it failed; do it differently",
                text=around.reflection,
            )
        )
    for other in around.related:
        if other.kind in ("requires", "refers"):
            found.append(
                Candidate(
                    source=f"Task {other.id}" if other.outside else f"Task {other.key}",
                    kind="requires" if other.kind == "requires" else "refers",
                    reason=f"{_role(other, inputs)}: {other.title}{_doubt(other, around)}",
                    text=other.answer,
                    cite=f"task {other.id}",
                    excluded="" if other.answer else f"it is {other.state} and has no output",
                )
            )
    plan = [other for other in around.related if not other.outside]
    if len(plan) > 1:
        lines = "\n".join(f"- {other.key}: {' '.join(other.title.splitlines())}" for other in plan)
        found.append(Candidate(source="The plan", kind="plan", reason="other tasks", text=lines))
    if around.files:
        found.append(_tree(around.files))
    return found


def _hinted(claim: Claim, around: Surroundings, named: Collection[str]) -> list[Candidate]:
    """The files that are likely to matter, behind those that the task names."""
    return [
        Candidate(
            source=hint.path,
            kind="file",
            reason=f"likely to matter{': ' if hint.reason else ''}{hint.reason}",
            text=around.read(hint.path) or "",
            rank=1,
            excluded="" if around.read(hint.path) else "it does not exist yet, or has no text",
        )
        for hint in {hint.path: hint for hint in claim.spec.file_hints}.values()
        if hint.path not in named
    ]


def _by_source(inputs: Mapping[str, str]) -> dict[str, str]:
    """The names that each source has as an input."""
    names: dict[str, str] = {}
    for name, source in sorted(inputs.items()):
        names[source] = f"{names[source]}, {name}" if source in names else name
    return names


def _role(other: Related, inputs: Mapping[str, str]) -> str:
    name = inputs.get(f"{TASK}{other.key}", "")
    return f"{other.kind}, input {name}" if name and other.kind == "requires" else other.kind


def _doubt(other: Related, around: Surroundings) -> str:
    """What an output that nobody accepted says about itself; plain prompts stay as they were."""
    sound = not around.rules.fenced or not other.answer or other.state == "succeeded"
    return "" if sound else f"; not accepted: the task is {other.state}"


def _tree(files: Sequence[str]) -> Candidate:
    """The repository's files, shallow ones first, so that a cut listing still shows the shape."""
    ranked = sorted(files, key=lambda path: (path.count("/"), path))
    more = len(files) - FILES_LISTED_MAX
    lines = [*map(shown, ranked[:FILES_LISTED_MAX]), *([f"… and {more} more"] if more > 0 else [])]
    return Candidate(
        source="Files", kind="tree", reason="names in the repository", text="\n".join(lines)
    )


def reflection(before: Outcome) -> str:
    """What the next take is told about the one that failed: its answer and what was not proven."""
    parts = [f"What was said: {before.answer}" if before.answer else "", before.detail]
    for result in before.checks:
        if result.verdict != "pass":
            prompt = "$ " if result.kind == "command_succeeds" else ""
            said = (f"{prompt}{result.command}", result.note, result.output)
            parts.append("\n".join(part for part in said if part))
    return "\n\n".join(part for part in parts if part)
