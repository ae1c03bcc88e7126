"""What a check is, and the one line it is written as: checks, pre- and postconditions alike.

A check is stored, shown and journaled as one line, so that a flag, a plan and a bundle say the
same: `file_exists:PATH`, `test_passes` (or `test_passes:RUNNER`), `git_clean`; any other line is a
command, as is one after `command_succeeds:`. Does not own how a check is judged (`agent.verify`)
nor how a runner is found (`adapters.runners`). Invariant: `read_check(check.line) == check`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any, Literal, assert_never, get_args

from holdfast.errors import Refused
from holdfast.frozen import frozen

CheckKind = Literal["command_succeeds", "file_exists", "test_passes", "git_clean"]
CHECK_KINDS: tuple[CheckKind, ...] = get_args(CheckKind)
RUNNER_NAMES = ("pytest", "npm", "make", "cargo", "go", "mix")

# What a table calls the subject of its kind.
_SUBJECTS: Mapping[CheckKind, str] = {
    "command_succeeds": "command",
    "file_exists": "path",
    "test_passes": "runner",
    "git_clean": "",
}
_NAMED = re.compile(r"\s*([a-z]+(?:_[a-z]+)+)\s*(?::(.*))?", re.DOTALL)


@frozen
class Check:
    """A deterministic proof. `subject` is a command, a path, a runner's name, or nothing."""

    kind: CheckKind
    subject: str = ""

    @property
    def line(self) -> str:
        if self.kind != "command_succeeds":
            return f"{self.kind}:{self.subject}" if self.subject else self.kind
        return f"command_succeeds:{self.subject}" if _named(self.subject) else self.subject

    @property
    def words(self) -> str:
        """What holds when it passes, for a model or a person."""
        match self.kind:
            case "command_succeeds":
                return f"`{self.subject}` succeeds"
            case "file_exists":
                return f"the file `{self.subject}` exists"
            case "test_passes":
                return f"the project's tests pass{f' ({self.subject})' if self.subject else ''}"
            case "git_clean":
                return "no file differs from what the task began with"
            case _:
                assert_never(self.kind)


def read_check(value: str | Mapping[str, Any]) -> Check:
    """A check from its line, or from a plan's table `{kind = …, command|path|runner = …}`.

    Raises `Refused` (code `bad_check`) for one that could never be judged as it was meant.
    """
    if isinstance(value, str):
        return _of_line(value)
    rest = dict(value)
    kind = rest.pop("kind", None)
    if kind not in CHECK_KINDS:
        raise _bad(f"a check's kind is {kind!r}", f"there are {', '.join(CHECK_KINDS)}")
    name = _SUBJECTS[kind]
    subject = rest.pop(name, "") if name else ""
    if rest:
        known = f"kind and {name}" if name else "kind alone"
        raise _bad(f"a check of kind {kind} has no {next(iter(rest))!r}", f"it has {known}")
    if not isinstance(subject, str):
        raise _bad(f"a check's {name} is {subject!r}, not a text", f'{name} = "…"')
    return _sound(kind, subject)


def _of_line(line: str) -> Check:
    found = _named(line)
    if found is None:
        return _sound("command_succeeds", line)
    kind, subject = found
    if kind not in CHECK_KINDS:
        raise _bad(
            f"{kind!r} is no kind of check",
            f"did you mean {_near(kind)!r}? a command of that name: command_succeeds:{kind}",
        )
    return _sound(kind, subject)


def _named(line: str) -> tuple[Any, str] | None:
    """The kind, or what was nearly one, that a line begins with, and its subject."""
    found = _NAMED.fullmatch(line)
    if found is None or not _near(found[1]):
        return None
    return found[1], found[2] or ""


def _near(kind: str) -> str:
    return next(iter(get_close_matches(kind, CHECK_KINDS, n=1, cutoff=0.85)), "")


def _sound(kind: CheckKind, subject: str) -> Check:
    match kind:
        case "command_succeeds":
            if not subject.strip() or "\0" in subject:
                raise _bad("a check's command is empty or holds a NUL", "pytest -q")
        case "file_exists":
            subject = _path(subject.strip())
        case "test_passes":
            subject = subject.strip()
            if subject and subject not in RUNNER_NAMES:
                raise _bad(
                    f"there is no test runner {subject!r}", f"there are {', '.join(RUNNER_NAMES)}"
                )
        case "git_clean":
            if subject.strip():
                raise _bad("git_clean looks at the whole workspace", "write git_clean alone")
            subject = ""
        case _:
            assert_never(kind)
    return Check(kind=kind, subject=subject)


def _path(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or ".git" in parts:
        raise _bad(f"file_exists:{path} names no file of the workspace", "file_exists:src/a.py")
    return "/".join(parts)


def _bad(message: str, hint: str) -> Refused:
    return Refused(message, hint=hint, code="bad_check")
