"""How a model edits files: a format per model from one table, and the way out when edits fail.

Owns the table, what of `edit_file` a model is shown, and the counting of refused edits. The format
is chosen when a take is briefed and stays in its bundle. Invariant: everything follows from the
bundle and recorded observations, so a resumed or replayed attempt falls back at the same call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from holdfast.domain.ports import Observation, ToolSpec
from holdfast.frozen import frozen

Format = Literal["whole", "search_replace", "diff"]
EDIT, WRITE = "edit_file", "write_file"
REFUSED_MAX = 2
_REFUSALS = frozenset({"EDIT_NOT_FOUND", "EDIT_AMBIGUOUS", "INVALID_ARGUMENTS"})

# The first pattern that matches `provider:model` wins. Small models garble a search text and count
# hunk lines wrong, so they write files whole; the gpt-4.1 and o series were trained on patches.
TABLE: tuple[tuple[str, Format], ...] = (
    ("ollama:*:0.[0-9]b*", "whole"),
    ("ollama:*:[1-4]b*", "whole"),
    ("ollama:*:[1-3].[0-9]b*", "whole"),
    ("openai:gpt-4.1*", "diff"),
    ("openai:o[0-9]*", "diff"),
    ("*", "search_replace"),
)


@frozen
class Fallback:
    """From the format a model was given to whole files, for one file, and how often it failed."""

    path: str
    source: Format
    refused: int
    code: str


def format_of(model: str) -> Format:
    """The format for a `provider:model`."""
    return next(format for pattern, format in TABLE if fnmatchcase(model.lower(), pattern))


def offered(tools: Sequence[ToolSpec], format: Format) -> tuple[ToolSpec, ...]:
    """The tools as a model is told of them: `edit_file` takes its format only, or is left out."""
    kept = [tool for tool in tools if tool.name != EDIT or format != "whole"]
    return tuple(_narrowed(tool, format) if tool.name == EDIT else tool for tool in kept)


def shown_format(tools: Sequence[ToolSpec]) -> Format:
    """The format that offered tools were narrowed to."""
    edit = next((tool for tool in tools if tool.name == EDIT), None)
    if edit is None:
        return "whole"
    return "diff" if "edits" not in edit.parameters.get("properties", {}) else "search_replace"


class Edits:
    """Counts refused edits of each file in one take; a success of any tool on it clears the count.

    `note` returns a fallback exactly when a file's count reaches `REFUSED_MAX`.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._format = shown_format(tools)
        self._refused: Counter[str] = Counter()

    def note(self, tool: str, path: str, observation: Observation) -> Fallback | None:
        if tool not in (EDIT, WRITE) or not path:
            return None
        if observation.error is None:
            del self._refused[path]
            return None
        if tool != EDIT or observation.error.code not in _REFUSALS:
            return None
        self._refused[path] += 1
        if self._refused[path] != REFUSED_MAX:
            return None
        code = observation.error.code
        return Fallback(path=path, source=self._format, refused=REFUSED_MAX, code=code)


def advice(fallback: Fallback) -> str:
    """What the model is told beside the last refusal."""
    return (
        f"{fallback.refused} edits of {fallback.path} were refused. "
        f"Read it again and write the whole file with {WRITE}."
    )


def _narrowed(tool: ToolSpec, format: Format) -> ToolSpec:
    shown, hidden = ("diff", "edits") if format == "diff" else ("edits", "diff")
    parameters: dict[str, Any] = dict(tool.parameters)
    properties = dict(parameters.get("properties", {}))
    if shown not in properties:
        return tool
    properties.pop(hidden, None)
    required = [*parameters.get("required", ()), shown]
    return replace(
        tool,
        description=_DESCRIPTIONS[shown],
        parameters={**parameters, "properties": properties, "required": required},
    )


_DESCRIPTIONS = {
    "edits": (
        "Change parts of a file. Each search text must stand exactly once in it; copy it without "
        "line numbers. All edits are applied or none."
    ),
    "diff": "Change parts of a file by a unified diff of it. All hunks are applied or none.",
}
