"""The types that the language, its outer wall and its host agree on.

Owns: `Limits`, `LangError`, the `Host` protocol with `Hit` and `Miss`, `Tool`, and `Result` with
its parts. Owns no behaviour but a host's with nothing behind it: `run` runs, `recorder` records,
`wire` encodes. Everything here is immutable except the exception, and nothing here knows Python's
own errors: a `LangError` never carries a host traceback, path or type name.

Values of the language: nil `None`, booleans `bool`, numbers `int` and `float`, strings `str`,
keywords and symbols `values.Keyword` and `values.Symbol`, vectors `tuple`, maps `dict` (keys made
by `values.as_key`, never mutated), sets `frozenset` of such keys, functions plain Python functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Value = Any  # a value of the language; see the module's docstring
_MESSAGE_CHARS = 2_000  # names and values in it may be of any length


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The policy of one run. Every number may be raised or lowered by the host; units come last.

    Sources: requirements §2.8, where the later generation wins. `fuel` counts loop rounds, function
    entries and the elements that built-ins touch. `alloc_bytes` is what collections, strings and
    big integers made by the program take in sum over the run; the live heap, `memory_bytes`, is
    measured by the outer wall. `memory_bytes_kept` bounds definitions between turns,
    `history_bytes` the values behind `*1 *2 *3`, `result_bytes` what a program may answer and
    `tool_result_bytes` what goes into and comes out of one call of a tool.
    """

    wall_s: float = 30.0
    compile_s: float = 5.0
    fuel: int = 20_000_000
    depth: int = 2_000
    loop_iterations: int = 1_000
    alloc_bytes: int = 2_000_000_000
    output_bytes: int = 1_000_000
    print_chars: int = 2_000
    prints: int = 10_000
    int_digits: int = 10_000
    literal_digits: int = 100
    string_chars: int = 10_000_000
    range_items: int = 1_000_000
    format_width: int = 10_000
    regex_pattern_bytes: int = 256
    regex_input_bytes: int = 32_768
    json_nesting: int = 64
    value_nesting: int = 200
    combinations: int = 1_000_000
    program_bytes: int = 1_000_000
    nesting: int = 64
    symbols: int = 10_000
    pmap_workers: int = 8
    pmap_s: float = 60.0
    memory_bytes: int = 64_000_000
    memory_bytes_kept: int = 2_097_152
    history_bytes: int = 1_048_576
    tool_result_bytes: int = 1_000_000
    result_bytes: int = 16_000_000


class LangError(Exception):
    """The one shape of every refusal and failure of a program.

    `code` is a stable word such as `unbound_var`; `line` and `column` count from 1 and are 0 only
    where no source exists; `form` is the innermost form as text; `hint` says what to do next.
    `details` holds extra plain values, such as the problems that were found together.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        line: int = 0,
        column: int = 0,
        source_line: str = "",
        form: str = "",
        hint: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        message = message if len(message) <= _MESSAGE_CHARS else f"{message[:_MESSAGE_CHARS]}…"
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.source_line = source_line
        self.form = form
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        where = f" at {self.line}:{self.column}" if self.line else ""
        return f"{self.code}: {self.message}{where}"

    def render(self) -> str:
        """Message, place, source line with a caret and hint, for the reader who must mend it."""
        lines = [str(self)]
        if self.source_line:
            lead = self.source_line[: max(self.column - 1, 0)]
            pad = "".join("\t" if char == "\t" else " " for char in lead)
            lines += [f"  {self.source_line}", f"  {pad}^"]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """A plain, JSON-safe record; `from_dict` is its inverse."""
        names = ("code", "message", "line", "column", "source_line", "form", "hint")
        return {**{name: getattr(self, name) for name in names}, "details": dict(self.details)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> LangError:
        rest = {key: record[key] for key in ("line", "column", "source_line", "form", "hint")}
        return cls(record["code"], record["message"], details=record.get("details"), **rest)


def over_limit(
    limit: str, message: str, *, code: str = "memory_exceeded", hint: str = ""
) -> LangError:
    """The refusal of what goes beyond a limit, which its details name."""
    return LangError(code, message, hint=hint, details={"limit": limit})


@dataclass(frozen=True)
class Hit:
    """A recorded value answers. `warning` is set when it was recorded for another expression."""

    value: Value
    warning: str = ""


@dataclass(frozen=True)
class Miss:
    """Nothing is recorded: evaluate, then report with `task_done`.

    `generation` counts the resets of the id; it is part of the path of what the task calls.
    """

    generation: int = 0


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What the analyser and `doc` need to know about a tool; the parent keeps the callable."""

    name: str
    doc: str = ""
    signature: str = ""


class Host(Protocol):
    """All that a program may reach, on the parent's side of every wall.

    `path` is the deterministic position in the program ("12:3/0/b2/…": line and column of the form,
    how often this form has called, branch indices of `pmap`), never completion order. Calls are
    synchronous, come from the program's threads at the same time, and raise `LangError`. What
    stands here is a host with nothing behind it.
    """

    def recorded(self) -> Mapping[str, Mapping[str, Any]]:
        """What `call_tool` would answer from its record, by path: rows of tool, args and value as
        `wire` encodes them. A worker is told them at once; an empty mapping is always right."""
        return {}

    def call_tool(self, path: str, name: str, args: dict[str, Value]) -> Value:
        """The tool's result, recorded before it is returned; a recorded one is not called again."""
        raise LangError("unknown_tool", f"there is no tool {name}")

    def task_begin(self, path: str, id: str, source: str) -> Hit | Miss:
        return Miss()

    def task_done(self, path: str, id: str, source: str, value: Value) -> None:
        """Record the value of a task that missed. Returns after it is safe."""
        return

    def task_reset(self, path: str, id: str) -> None:
        """Open a new generation of the id; the old row stays."""
        return

    def step_done(self, id: str, text: str) -> None:
        return None

    def budget(self) -> Value:
        """What `(budget/remaining)` answers; an empty map outside an agent."""
        return {}

    def printed(self, text: str) -> None:
        return None


@dataclass(frozen=True, kw_only=True)
class ToolRecord:
    """One tool call as it happened. `error` is empty on success; `ms` is wall time."""

    path: str
    name: str
    args: Mapping[str, Value]
    value: Value = None
    error: str = ""
    ms: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ParallelRecord:
    """One `pmap` or `pcalls`: how many branches, how they ended, and how long all took."""

    path: str
    type: Literal["pmap", "pcalls"]
    count: int
    success_count: int
    error_count: int
    ms: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a run used, in the units of `Limits`."""

    fuel: int = 0
    alloc_bytes: int = 0
    output_bytes: int = 0
    wall_ms: float = 0.0


Ending = Literal["value", "returned", "failed", "error"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a program ended and what it left.

    `ending` is `value` (last expression), `returned` or `failed` (the program said so; `value` is
    what it gave) or `error` (`error` is set). `memory` and `history` are what the next turn gets:
    unchanged after `error` and `failed`, and history is unchanged after `returned`. `history` is
    newest first. `prints` and `summaries` survive every ending.
    """

    ending: Ending
    value: Value = None
    error: LangError | None = None
    memory: Mapping[str, Value] = field(default_factory=dict)
    history: Sequence[Value] = ()
    prints: Sequence[str] = ()
    tool_calls: Sequence[ToolRecord] = ()
    pmap_calls: Sequence[ParallelRecord] = ()
    warnings: Sequence[str] = ()
    summaries: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @property
    def ok(self) -> bool:
        return self.ending in ("value", "returned")
