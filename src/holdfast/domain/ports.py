"""The seams to a world that is nondeterministic or remote, and the values that cross them.

Owns: Model, Tool, Sandbox, Workspace, Clock, Entropy, Sink. The store is deliberately no port:
real SQLite is fast enough to be the test double. Everything that crosses a port is a frozen
dataclass of plain values, so the journal can store it byte for byte and replay can compare it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from holdfast.frozen import frozen

Effect = Literal["pure", "idempotent", "compensable", "irreversible"]
Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "unknown"]
Wall = Literal["bubblewrap", "landlock", "none"]


# --- models ---------------------------------------------------------------------------------------


@frozen
class ToolSpec:
    """What a model is told about a tool, and what the engine must know to journal a call of it.

    `parameters` is a JSON Schema object. `effect` decides what resume does with a call that was
    intended but not known to be done. `writes` is true when a call may change the workspace.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    writes: bool = False


@frozen
class ToolCall:
    """One call a model asks for. `arguments` is the raw JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@frozen
class Message:
    """One entry of a conversation. `call_id` and `tool` are set on role `tool` only."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""


@frozen
class ModelRequest:
    """A canonical request: what the journal stores and replay compares, never an SDK's wire bytes.

    `model` is the provider's own name, without the provider prefix. `seed` and `temperature` are
    passed on where the provider takes them. `output_tokens_max` None leaves it to the provider.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    seed: int | None = None
    output_tokens_max: int | None = None


@frozen
class Usage:
    """Tokens and money of one or more model calls.

    `cost_nusd` is in 10⁻⁹ US dollars so that sums are exact; None means the price is unknown, which
    is not zero. `reported` is false when the provider sent no counts and these are an estimate.
    Of `tokens_in`, `tokens_cached` were read from a provider's prompt cache and `tokens_written`
    written to one; of `tokens_out`, `tokens_reasoning` were spent on thinking.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_written: int = 0
    tokens_reasoning: int = 0
    cost_nusd: int | None = 0
    reported: bool = True

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        unknown = self.cost_nusd is None or other.cost_nusd is None
        return Usage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            tokens_cached=self.tokens_cached + other.tokens_cached,
            tokens_written=self.tokens_written + other.tokens_written,
            tokens_reasoning=self.tokens_reasoning + other.tokens_reasoning,
            cost_nusd=None if unknown else (self.cost_nusd or 0) + (other.cost_nusd or 0),
            reported=self.reported and other.reported,
        )


@frozen
class ModelReply:
    """A completed reply. `text` excludes what the provider itself marks as `thinking`."""

    text: str
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason = "stop"
    model: str = ""


class Model(Protocol):
    """Something that completes a conversation and reports usage, reached at an endpoint.

    One call is one request: no retries inside, so that the journal sees every call. Raises
    `ModelError` with a failure class. The reply is redacted before it is returned.
    """

    @property
    def name(self) -> str:
        """`provider:model`, as a person would write it."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """The window the endpoint really uses; None when unknown."""
        ...

    async def probe(self) -> None:
        """Raise `Refused` or `Unavailable` within 5 s when this model cannot be reached or used."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply: ...

    async def aclose(self) -> None: ...


# --- tools and commands ---------------------------------------------------------------------------


@frozen
class ObservationError:
    code: str
    message: str


@frozen
class Observation:
    """What a tool saw. `output` is what the model reads; `data` is structured."""

    tool: str
    success: bool
    output: str
    error: ObservationError | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class Tool(Protocol):
    """A named, typed, capability-checked function over one workspace.

    `arguments` were checked against `spec.parameters` by the caller. Failures are observations with
    a code, never exceptions. The observation is redacted before it is returned.
    """

    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, arguments: Mapping[str, Any], workspace: Workspace) -> Observation: ...


@frozen
class CommandResult:
    """How a sandboxed command ended. Streams keep head and tail; `*_bytes` is the full size.

    `exit_code` is None when the command never started (`missing_program`) or a signal ended it.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    missing_program: bool
    stdout: str
    stderr: str
    stdout_bytes: int
    stderr_bytes: int
    duration_ms: int
    wall: Wall


class Sandbox(Protocol):
    """Runs commands behind the strongest wall this machine has. Never falls back to no wall."""

    @property
    def wall(self) -> Wall: ...

    async def run(
        self,
        command: Sequence[str] | str,
        *,
        root: Path,
        timeout_s: float,
        network: bool = False,
    ) -> CommandResult:
        """Run in the workspace `root`. A string is one unchanged argument of `/bin/sh -c`."""
        ...

    def describe(self) -> Mapping[str, Any]:
        """The wall in force and every directory a command can see, for `doctor` and events."""
        ...


@frozen
class Diff:
    """A change for a reader: totals of the whole, its first lines, redacted and bounded."""

    files_changed: int
    lines_added: int
    lines_removed: int
    text: str
    truncated: bool


class Workspace(Protocol):
    """One task's private checkout with its private git directory, which no sandbox mounts.

    Trees are git tree ids. `stage` records the working files durably (objects fsynced) and returns
    their tree; `restore` makes the working files equal a tree, keeping ignored files.
    """

    @property
    def root(self) -> Path: ...

    @property
    def sandbox(self) -> Sandbox: ...

    def stage(self) -> str: ...

    def restore(self, tree: str) -> None: ...

    def diff(self, before: str, after: str) -> Diff:
        """The unified diff of two trees; binary files are only named."""
        ...

    def changed(self, before: str, after: str) -> list[tuple[str, str]]:
        """Sorted (status, name) of what differs between two trees."""
        ...


# --- time and chance ------------------------------------------------------------------------------


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go back, for measuring and for leases' local deadlines."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Embedder(Protocol):
    """Texts as vectors of one model; `id` names it wherever a vector is kept."""

    @property
    def id(self) -> str: ...

    @property
    def size(self) -> int:
        """Numbers in a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of length 1 a text, in order."""
        ...


class Entropy(Protocol):
    def token(self) -> str:
        """A fresh unguessable identifier, 32 hex digits."""
        ...

    def seed(self) -> int:
        """A fresh 32-bit seed."""
        ...


class Progress(NamedTuple):
    """One line of live progress: `attempt`, at its `turn` (0 outside the loop), did or does `text`.

    `asking`, `calling` and `checking` say what is about to be waited for, `indexing` how far a tree
    is that nobody has read before; `attempt`, `turn`, `tool` and `check` what came of it; `note`,
    `model`, `branch` and `lease` are for a person to keep. Nothing stores it, and a turn tells four
    times: so a tuple, which takes a third of the time to make.
    """

    kind: str
    goal: int
    task: str
    text: str
    attempt: str = ""
    turn: int = 0


class Sink(Protocol):
    """Where progress goes: a terminal, a stream, nowhere. Lossy by design, never evidence."""

    def show(self, progress: Progress) -> None: ...
