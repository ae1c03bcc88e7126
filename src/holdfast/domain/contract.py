"""A task's contract, judged before anything runs: every clause well-formed, else refused by name.

Owns the words of `effects` and `inputs` and what they allow. Does not own checks as such
(`domain.checks`), tiers (`domain.tiers`) nor when a clause is enforced (`agent.verify`,
`agent.briefing`, `adapters.tools.bounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from holdfast.config import NUMBER_MAX
from holdfast.domain.checks import read_check
from holdfast.domain.model import TaskSpec
from holdfast.errors import Refused

EFFECTS_MAX = 100
PATTERN_CHARS_MAX = 300
TASK = "task:"


def validate(task: TaskSpec) -> None:
    """Refuse a contract with a clause that could never hold or be judged; names the clause."""
    for clause in ("preconditions", "checks", "postconditions"):
        for index, line in enumerate(getattr(task, clause)):
            try:
                read_check(line)
            except Refused as error:
                raise _bad(f"{clause}[{index}]: {error.message}", error.hint, error.code) from error
    for index, path in enumerate(task.creates):
        if not _inside(path) or path != path.strip():
            raise _bad(f"creates[{index}]: {path!r} is no path inside the repository")
    for name, source in task.inputs.items():
        _validate_input(task, name, source)
    if task.effects is not None:
        _validate_effects(task.effects)
    for index, hint in enumerate(task.file_hints):
        if not _inside(hint.path):
            raise _bad(f"file_hints[{index}]: {hint.path!r} is no path inside the repository")
    for name, value in vars(task.policy).items():
        if isinstance(value, int | float) and not 0 <= value <= NUMBER_MAX:  # NaN is neither
            raise _bad(f"policy: {name} is {value}, and not from 0 to {NUMBER_MAX:.0e}")


def allows(effects: Sequence[str] | None, path: str) -> bool:
    """Whether a contract lets a task write `path`; None lets it write anything.

    `*` and `?` stay within one name, `**` spans any number of them, and a pattern whose last name
    has neither also covers what lies below it. Names are compared exactly, case included.
    """
    return effects is None or any(_covers(pattern, path.split("/")) for pattern in effects)


def outside(effects: Sequence[str] | None, paths: Iterable[str]) -> list[str]:
    """The paths that a contract does not let a task write, in the order given."""
    return [path for path in paths if not allows(effects, path)]


def required_by(source: str) -> str:
    """The key of the task whose output an input takes; empty for one that is a file."""
    return source.removeprefix(TASK) if source.startswith(TASK) else ""


def _covers(pattern: str, path: Sequence[str]) -> bool:
    """Match name by name; the set of places in the pattern keeps this linear in both."""
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if "*" not in names[-1] and "?" not in names[-1]:
        names.append("**")
    places = _open({0}, names)
    for part in path:
        there = {place for place in places if place < len(names) and names[place] == "**"}
        for place in places - there:
            if place < len(names) and fnmatchcase(part, names[place].replace("[", "[[]")):
                there.add(place + 1)
        places = _open(there, names)
    return len(names) in places


def _open(places: set[int], names: Sequence[str]) -> set[int]:
    """The same places and those that an empty `**` leads to."""
    found = set(places)
    for place in range(len(names)):
        if place in found and names[place] == "**":
            found.add(place + 1)
    return found


def _validate_input(task: TaskSpec, name: str, source: str) -> None:
    if not name.strip():
        raise _bad("inputs: a name is empty")
    key = required_by(source)
    if source.startswith(TASK):
        if key not in task.requires:
            needed = ", ".join(task.requires) or "nothing"
            raise _bad(
                f"inputs: {name!r} is the output of {key!r}, which this task does not require",
                f"it requires {needed}",
            )
    elif not _inside(source):
        raise _bad(f"inputs: {name!r} is {source!r}, no path inside the repository")


def _validate_effects(effects: Sequence[str]) -> None:
    if len(effects) > EFFECTS_MAX:
        raise _bad(f"effects: {len(effects)} patterns; at most {EFFECTS_MAX} are allowed")
    for index, pattern in enumerate(effects):
        if not _inside(pattern) or len(pattern) > PATTERN_CHARS_MAX:
            raise _bad(f"effects[{index}]: {pattern!r} is no glob inside the repository")


def _inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and "\0" not in path


def _bad(message: str, hint: str = "docs/contracts.md", code: str = "bad_contract") -> Refused:
    return Refused(message, hint=hint, code=code)
