"""The frozen nouns: what a goal, plan, task and outcome are, as plain values.

Rows of the store and JSON of the wire are read into these and written from them (msgspec reads
and writes frozen dataclasses directly). They carry no behaviour beyond what follows from a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Literal

from holdfast.domain.checks import Check, CheckKind
from holdfast.domain.ports import Usage
from holdfast.errors import FailureClass
from holdfast.frozen import frozen

TaskKind = Literal["agent", "model", "shell", "plan", "verify", "compensate"]
PlanSource = Literal["single", "person", "planning", "model", "undo"]
LinkKind = Literal["requires", "refers", "duplicates", "relates_to"]
Strategy = Literal["dag", "bfs"]
OutcomeKind = Literal[
    "passed", "unverified", "partial", "failed", "expired", "waiting", "cancelled"
]
Verdict = Literal["pass", "fail", "absent"]
OnFailure = Literal["keep", "undo"]
Clause = Literal["check", "precondition", "postcondition"]
Tier = Literal["trivial", "standard", "complex", "unknown"]
Priority = Literal["urgent", "high", "normal", "low"]
_RANKS: Mapping[Priority, int] = {"urgent": 2, "high": 1, "normal": 0, "low": -1}


@frozen
class Budget:
    """Limits of a goal; 0 is no limit. `usd` is in US dollars."""

    tokens: int = 0
    usd: float = 0.0

    @property
    def nusd(self) -> int:
        return round(self.usd * 1_000_000_000)


@frozen
class ContextOptions:
    """What a task asks of its context; empty and 0 leave it to the settings of the same name.

    `mode` is the setting `context`, `summary` the setting `context_summary`, `tokens` the size of
    the bundle, `k` how many past outputs are retrieved. `manual` names sources that are pinned
    whatever else is decided. `include_deps` and `include_plan` keep out what the task requires or
    refers to, and the plan.
    """

    mode: Literal["", "plain", "curated"] = ""
    include_plan: bool = True
    include_deps: bool = True
    k: int = 5
    manual: tuple[str, ...] = ()
    tokens: int = 0
    summary: Literal["", "extract", "model"] = ""


@frozen
class Policy:
    """The numbers an attempt runs under, fixed in the bundle of its take so that replay sees them.

    Meanings are those of the settings of the same name; a `max_turns` or `attempt_s` of 0 becomes
    that of the task's tier when the task is submitted, and so does a task's model: `models` are the
    chains of tiers that have their own.
    """

    max_turns: int = 20
    max_attempts: int = 3
    max_takes: int = 2
    max_verification_retries: int = 2
    repeat_limit: int = 3
    stall_limit: int = 6
    attempt_s: float = 1800.0
    check_s: float = 120.0
    checks_s: float = 600.0
    backoff_ms: int = 500
    backoff_ms_max: int = 30_000
    calls: Literal["native", "json"] = "native"
    models: Mapping[Tier, str] = field(default_factory=dict)
    on_failure: OnFailure = "keep"
    context: ContextOptions = field(default_factory=ContextOptions)


@frozen
class Planning:
    """How a planning task plans: the sizes its answer must keep, fixed so that replay sees them.

    A goal becomes `tasks_min` to `tasks_max` tasks. One that is called big, or is over a unit's
    size, is split into units of its own when there are two `levels`, and is refused when there is
    one. `review` leaves the plan for a person; `rounds` bounds the follow-ups of a goal's checks;
    `strategy` is that of the plan it makes.
    """

    tasks_min: int = 3
    tasks_max: int = 8
    levels: int = 2
    unit_files_max: int = 6
    unit_chars_max: int = 4000
    rounds: int = 2
    review: bool = False
    strategy: Strategy = "dag"


@frozen
class FileHint:
    """A file that is likely to matter, and why; it need not exist yet."""

    path: str
    reason: str = ""


@frozen
class TaskSpec:
    """The smallest schedulable unit with its contract, as a plan states it.

    `key` is unique in the plan and stable over its revisions. `preconditions` hold before the first
    model call, `checks` and `postconditions` prove the end; each is a line of `domain.checks`.
    `inputs` are names of what must be there before: a file of the base, or `task:KEY`, the output
    of a requirement. `effects` are globs of what may be written; None is anything, () nothing.
    `files` are there when the task begins, `creates` when it ends. An int as `priority` is a rank,
    as stores wrote it before there were lanes.

    `command` is for kind shell, `planning` for kind plan (whose `checks` are the goal's own),
    `compensates` for kind compensate; `merges` is the task whose conflicting work this one merges.
    The checks of a `provisional` task guide it, but a task after it judges: it cannot fail by them.
    """

    key: str
    prompt: str
    title: str = ""
    kind: TaskKind = "agent"
    context: str = ""
    success_criteria: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    refers: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    preconditions: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    postconditions: tuple[str, ...] = ()
    effects: tuple[str, ...] | None = None
    files: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()
    file_hints: tuple[FileHint, ...] = ()
    command: str = ""
    model: str = ""
    tier: Tier = "unknown"
    priority: Priority | int = "normal"
    policy: Policy = field(default_factory=Policy)
    compensates: int = 0
    merges: int = 0
    provisional: bool = False
    planning: Planning | None = None

    @property
    def label(self) -> str:
        return self.title or self.key

    @property
    def promises(self) -> tuple[str, ...]:
        """What holds at the end beside the checks: the postconditions, and what it creates."""
        made = (Check(kind="file_exists", subject=path).line for path in self.creates)
        return tuple(dict.fromkeys((*self.postconditions, *made)))

    @property
    def rank(self) -> int:
        """Its lane as a number: higher goes first."""
        return self.priority if isinstance(self.priority, int) else _RANKS[self.priority]


@frozen
class PlanSpec:
    """One revision of a goal's task graph, before the store gives it ids.

    `strategy` is only the order in which ready tasks start: `dag` by priority, then place in the
    plan; `bfs` level by level. Neither starts a task before what it requires.
    """

    tasks: tuple[TaskSpec, ...]
    source: PlanSource = "single"
    strategy: Strategy = "dag"


@frozen
class GoalSpec:
    """What someone wants. `repository` is an absolute path, `base_commit` where work starts.

    `branch` empty asks for `holdfast/goal-N`, numbered on where `branches` has that name already.
    """

    text: str
    repository: str
    base_commit: str
    base_tree: str
    branch: str = ""
    branches: frozenset[str] = frozenset()
    budget: Budget = field(default_factory=Budget)
    model: str = ""
    seed: int = 0


@frozen
class CheckResult:
    """What one check proved, with the output that shows it. Absent never means pass.

    `command` is the check's line; `note` says in a sentence what an exit code cannot.
    """

    command: str
    verdict: Verdict
    kind: CheckKind = "command_succeeds"
    clause: Clause = "check"
    note: str = ""
    exit_code: int | None = None
    output: str = ""
    duration_ms: int = 0


@frozen
class Outcome:
    """The typed end of an attempt, the only thing `decide` looks at.

    `reason` is one word the guard or the failure names; `detail` is for a person. `commit` and
    `tree` hold the work, also when it failed; `parent` is the tip that `commit` builds on. `fresh`
    asks for a new take although the class alone would join the old one (a recorded request that
    the code no longer reproduces). `tasks` are what it asks for: a plan, a follow-up, a merge.
    """

    kind: OutcomeKind
    failure: FailureClass | None = None
    reason: str = ""
    detail: str = ""
    answer: str = ""
    checks: tuple[CheckResult, ...] = ()
    done: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    tree: str = ""
    commit: str = ""
    parent: str = ""
    retry_after_s: float | None = None
    fresh: bool = False
    tasks: tuple[TaskSpec, ...] = ()


@frozen
class Fence:
    """Proof of ownership: the attempt number is the fencing token of its task."""

    task: int
    attempt: int
    take: int
    goal: int

    @cached_property
    def session(self) -> str:
        """The attempt's public name, `TASK.ATTEMPT`; its session id in the trace."""
        return f"{self.task}.{self.attempt}"


@frozen
class StepRow:
    """One memoised effect as stored. `request` and `result` are canonical JSON bytes.

    `request` never changes once intended, `result` and the trees never change once done.
    """

    key: str
    generation: int
    position: int
    kind: str
    effect: str
    state: str
    attempt: int
    request: bytes
    result: bytes | None = None
    tree_before: str = ""
    tree_after: str = ""
    usage: Usage = field(default_factory=Usage)
    result_sha256: str = ""


@frozen
class Claim:
    """A granted lease: what a worker needs to run the current attempt of one task."""

    fence: Fence
    spec: TaskSpec
    goal_text: str
    repository: str
    branch: str
    model: str
    base_commit: str
    base_tree: str
    bundle_sha256: str
    seed: int
    budget: Budget
    lease_s: float
    steps: tuple[StepRow, ...] = ()
