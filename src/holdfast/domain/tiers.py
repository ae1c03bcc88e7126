"""How hard a task is, and the loop's numbers that follow from it.

Owns the heuristic and the numbers of each tier. What a person or a planner said wins; the heuristic
always runs, explains itself and is recorded beside it, so that the two can be compared. It reads
the task's words alone: deterministic, and no model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from holdfast.domain.model import TaskSpec, Tier
from holdfast.frozen import frozen

# Round trips and seconds of one attempt. What nobody can judge gets the room of a complex task.
TURNS: Mapping[Tier, int] = {"trivial": 5, "standard": 10, "complex": 20, "unknown": 20}
ATTEMPT_S: Mapping[Tier, float] = {
    "trivial": 600.0,
    "standard": 1800.0,
    "complex": 1800.0,
    "unknown": 1800.0,
}

_ASKS = ("agent", "model")

# Compiled by the first task that is judged: it takes longer than loading the rest of this module.
_SMALL = (
    r"\b(typos?|spelling|misspell\w*|rename|bump|reword|rephrase|whitespace|indent\w*"
    r"|unused imports?|comments?|docstrings?|copyright|licen[cs]e header|gitignore|changelog"
    r"|version number|read ?me|badge|log (?:message|line)|error message|punctuation"
    r"|capitali[sz]e)\b"
)
_LARGE = (
    r"\b(refactor\w*|migrat\w*|re-?architect\w*|redesign\w*|re-?write|rewrite|design|architecture"
    r"|concurren\w*|race conditions?|deadlocks?|thread-?safe\w*|distributed|protocol|parser"
    r"|compiler|scheduler|encrypt\w*|authenticat\w*|authori[sz]\w*|oauth\w*|performance"
    r"|optimi[sz]\w*|memory leaks?|backwards?[- ]compatib\w*|end[- ]to[- ]end|subsystem"
    r"|plugin system|from scratch|investigat\w*|intermittent\w*|flak(?:y|iness)|port .{1,30} to)\b"
)
_WIDE = (
    r"\b(all|every|each|across|throughout|entire|whole|everywhere|multiple|several)\b"
    r"[^.\n]{0,40}?\b(files?|modules?|packages?|services?|endpoints?|tests?|code ?base|project"
    r"|repository|layers?|callers?|components?|tables?)\b"
)
_LONG_WORDS = 120
_SHORT_WORDS = 25
_LARGE_FROM = 2


@frozen
class Guess:
    """What the heuristic says of a task, and by which signs."""

    tier: Tier
    reason: str


def tier_of(task: TaskSpec) -> Tier:
    """The tier in force: what was said, else what the heuristic says."""
    return task.tier if task.tier != "unknown" else guess(task).tier


def guess(task: TaskSpec) -> Guess:
    """Judge a task by its words and by how much it names. Never reads `task.tier`."""
    if task.kind not in _ASKS:
        return Guess(tier="unknown", reason=f"a {task.kind} task's words do not tell its size")
    text = f"{task.title}\n{task.prompt}" if task.title not in task.prompt else task.prompt
    words = len(text.split())
    if words == 0:
        return Guess(tier="unknown", reason="it says nothing")
    large, small = _large_signs(task, text, words), _found(_SMALL, text)
    if len(large) >= _LARGE_FROM or (large and not small):
        return Guess(tier="complex", reason="; ".join(large))
    if small and not large and words <= _SHORT_WORDS and _named(task) <= 1:
        return Guess(tier="trivial", reason=f"says {', '.join(small)}; {words} words, one place")
    if large:
        return Guess(tier="standard", reason=f"{'; '.join(large)}, but says {', '.join(small)}")
    return Guess(tier="standard", reason=f"{words} words without a sign of a small or large task")


def with_limits(task: TaskSpec) -> TaskSpec:
    """The task with its loop's numbers and model: a `max_turns` or `attempt_s` of 0 is the tier's.

    A model that the task names wins over its tier's; without either it is the goal's. A planning
    task keeps its zeros: the tasks it asks for take over its policy, each by its tier.
    """
    if task.kind == "plan":
        return task
    tier, policy = tier_of(task), task.policy
    return replace(
        task,
        model=task.model or (policy.models.get(tier, "") if task.kind in _ASKS else ""),
        policy=replace(
            policy,
            max_turns=policy.max_turns or TURNS[tier],
            attempt_s=policy.attempt_s or ATTEMPT_S[tier],
        ),
    )


def _large_signs(task: TaskSpec, text: str, words: int) -> list[str]:
    signs = [f"says {', '.join(found)}"] if (found := _found(_LARGE, text)) else []
    if wide := _found(_WIDE, text):
        signs.append(f"is about {', '.join(wide)}")
    if words > _LONG_WORDS:
        signs.append(f"takes {words} words to say")
    if _named(task) > 3:
        signs.append(f"names {_named(task)} files")
    if len(task.success_criteria) + len(task.checks) + len(task.postconditions) > 5:
        signs.append("has more than 5 criteria and checks")
    return signs


def _named(task: TaskSpec) -> int:
    return len({*task.files, *(hint.path for hint in task.file_hints)})


def _found(pattern: str, text: str) -> list[str]:
    """What a pattern finds, each once, as one line."""
    hits = re.finditer(pattern, text, re.IGNORECASE)
    return list(dict.fromkeys(" ".join(hit[0].lower().split()) for hit in hits))
