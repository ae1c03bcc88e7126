"""The bundle: the exact, budgeted, immutable context a take was given, with a reason for each item.

A bundle is everything an attempt's conversation begins with and depends on: rendered prompts, tool
specs, model, seed and the task with its policy. It is stored once, by content; nothing of it is
rendered again, so new prompt files or settings never change a take that has begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from holdfast.context.tokens import count_tokens
from holdfast.domain.model import TaskSpec
from holdfast.domain.ports import ToolSpec

FORMAT = 1
ItemKind = Literal["task", "reflection", "file", "requires", "refers", "plan", "tree"]

# Who gets budget first; a floor keeps a big tier from starving the others.
TIERS: tuple[ItemKind, ...] = ("reflection", "requires", "file", "refers", "plan", "tree")
FLOOR_TOKENS = 150


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Something that could be shown: where it comes from, why, and its full text."""

    source: str
    kind: ItemKind
    reason: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Item:
    """What became of a candidate: shown whole, cut, or left out, and why."""

    source: str
    kind: ItemKind
    reason: str
    tokens: int
    fate: Literal["whole", "cut", "out"]


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """See the module. `templates` are prompts that later turns need, by name.

    `undo` is for a compensating task: the trees to walk back, from the newest to the oldest.
    """

    task: TaskSpec
    goal: str
    model: str
    seed: int
    system: str
    user: str
    tools: tuple[ToolSpec, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    budget_tokens: int = 0
    undo: tuple[str, ...] = ()
    format: int = FORMAT


def fit(
    head: str, candidates: Sequence[Candidate], *, budget_tokens: int
) -> tuple[str, tuple[Item, ...]]:
    """Render `head` and as many candidates as fit, headings included; returns text and fates.

    Tiers are served in order, each first up to its floor, then with what is left. The same input
    gives the same bytes. `head` is mandatory and is never cut.
    """
    ordered = sorted(candidates, key=lambda item: (TIERS.index(item.kind), item.source, item.text))
    left = budget_tokens - count_tokens(head)
    granted: dict[int, int] = {}
    for floor in (True, False):
        for index, item in enumerate(ordered):
            cost = _cost(_section(item, item.text))
            wish = min(cost, FLOOR_TOKENS) if floor else cost
            extra = max(0, min(wish - granted.get(index, 0), left))
            granted[index] = granted.get(index, 0) + extra
            left -= extra
    parts, fates = [head], []
    for index, item in enumerate(ordered):
        text, fate = _trim(item, granted[index])
        tokens = count_tokens(text)
        if fate != "out":
            parts.append(text)
        fates.append(
            Item(source=item.source, kind=item.kind, reason=item.reason, tokens=tokens, fate=fate)
        )
    return "\n\n".join(parts), tuple(fates)


def _cost(section: str) -> int:
    """What a section takes of the budget, with the blank line that sets it off."""
    return count_tokens(f"\n\n{section}")


def _section(item: Candidate, text: str) -> str:
    return f"## {item.source} ({item.reason})\n\n{text}"


def _trim(item: Candidate, tokens: int) -> tuple[str, Literal["whole", "cut", "out"]]:
    """The item within its grant: whole, its head with a line that says so, or nothing."""
    whole = _section(item, item.text)
    if _cost(whole) <= tokens:
        return whole, "whole"
    lines = item.text.splitlines()
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if _cost(_cut(item, lines, middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    return (_cut(item, lines, low), "cut") if low else ("", "out")


def _cut(item: Candidate, lines: Sequence[str], keep: int) -> str:
    note = f"[… {len(lines) - keep} more lines left out]"
    return _section(item, "\n".join([*lines[:keep], note]))
