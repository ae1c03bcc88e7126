"""Which directories of this machine a sandboxed command may read, and why.

Owns the rule: `/usr`, the directories of the caller's PATH, the virtual environments these belong
to with their base interpreters, and the parents of version managers' `shims`. Nothing else of the
home directory: a PATH entry that is the home directory or contains it is left out, and so is
everything inside a hidden directory (Holdfast's own home).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.frozen import frozen

SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_SYSTEM_ROOTS = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_LINK_HOPS_MAX = 8


@frozen
class Visible:
    """A directory shown read-only at its own path. `masked` are paths inside it that are not."""

    path: str
    reason: str
    masked: tuple[str, ...] = ()


@frozen
class View:
    """What a command sees besides `/usr`: directories, its own PATH, and entries left out."""

    directories: tuple[Visible, ...]
    path: str
    left_out: tuple[tuple[str, str], ...] = ()


def view(path: str, *, user_home: Path, hidden: Sequence[Path] = ()) -> View:
    """The view for a caller whose PATH is `path`. Reads the file system; changes nothing."""
    shown: dict[str, Visible] = {}
    left_out: list[tuple[str, str]] = []
    entries: list[str] = []
    for entry in dict.fromkeys(path.split(os.pathsep)):
        refusal = _refusal(entry, user_home, hidden)
        if refusal:
            left_out.append((entry, refusal))
            continue
        entries.append(entry)
        for wanted, reason in _belonging(Path(entry)):
            if not _refusal(str(wanted), user_home, hidden):
                shown.setdefault(str(wanted), _visible(wanted, reason, hidden))

    outermost = [
        row for at, row in shown.items() if shown.keys().isdisjoint(map(str, Path(at).parents))
    ]
    return View(
        directories=tuple(sorted(outermost, key=lambda row: row.path)),
        path=os.pathsep.join(dict.fromkeys([*entries, *SYSTEM_PATH])),
        left_out=tuple(left_out),
    )


def _refusal(entry: str, user_home: Path, hidden: Sequence[Path]) -> str:
    if not os.path.isabs(entry):
        return "not an absolute path"
    if not os.path.isdir(entry):
        return "not a directory"
    real = Path(os.path.realpath(entry))
    if Path(os.path.realpath(user_home)).is_relative_to(real):
        return "holds the home directory"
    if any(real.is_relative_to(os.path.realpath(place)) for place in hidden):
        return "inside Holdfast's own directory"
    return ""


def _belonging(entry: Path) -> Iterator[tuple[Path, str]]:
    """The directory itself and what its programs need to start."""
    if _is_system(entry):
        return
    yield entry, "on PATH"
    if entry.name == "shims":
        # A shim is a script that starts a program of the version manager it belongs to.
        yield entry.parent, f"version manager of {entry}"
    if (entry.parent / "pyvenv.cfg").is_file():
        yield entry.parent, "virtual environment on PATH"
        for prefix in _base_prefixes(entry.parent):
            if not _is_system(prefix):
                yield prefix, f"base interpreter of {entry.parent}"


def _base_prefixes(environment: Path) -> Iterator[Path]:
    """Prefixes of the interpreter behind a virtual environment, by its `home` and by its links."""
    for line in (environment / "pyvenv.cfg").read_text("utf-8", "replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home" and os.path.isabs(value.strip()):
            yield Path(value.strip()).parent
    interpreter = environment / "bin" / "python"
    for _ in range(_LINK_HOPS_MAX):
        if not interpreter.is_symlink():
            return
        interpreter = interpreter.parent / os.readlink(interpreter)
        if interpreter.parent.name == "bin" and interpreter.parent.parent != environment:
            yield Path(os.path.normpath(interpreter.parent.parent))


def _visible(path: Path, reason: str, hidden: Sequence[Path]) -> Visible:
    masked = [place for place in hidden if Path(os.path.realpath(place)).is_relative_to(path)]
    return Visible(path=str(path), reason=reason, masked=tuple(map(str, masked)))


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(root) for root in _SYSTEM_ROOTS)
