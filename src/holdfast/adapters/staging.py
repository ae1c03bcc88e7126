"""Moving files between a working directory and an index, when the directory is not to be trusted.

Owns the order of git commands that records every file and starts no program: nested repositories
are stripped (a sandboxed command may have planted hooks and settings there), submodules are kept
out of the index, names git refuses are left out, rights that a command took away are given back.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from holdfast.adapters.git import Git, GitFailed
from holdfast.errors import Refused

_NESTING_MAX = 64
_GITLINK = "160000"
_OTHERS = ("ls-files", "-z", "--others", "--exclude-standard")


def strip_nested(git: Git) -> None:
    """Remove the `.git` of every repository below the working directory.

    git itself lists them: `ls-files --others` ends the name of a nested repository with a slash and
    looks no further, so the list is asked for again until it holds none. Only reading, it starts
    no program. What is ignored is not looked into, here and by `git add`.
    """
    root = git.work_tree
    assert root is not None
    for _ in range(_NESTING_MAX):
        _, listed, said = git.answer(*_OTHERS)
        if "ermission denied" in said:
            # git only warns of a directory it cannot read, and would record it as empty.
            unlock(root)
            listed = git.run(*_OTHERS)
        nested = [os.fsdecode(name) for name in listed.split(b"\0") if name.endswith(b"/")]
        if not nested:
            return
        for name in nested:
            _remove(root / name / ".git")
    raise Refused(f"{root} holds repositories nested more than {_NESTING_MAX} deep")


def add_all(git: Git, links: bytes) -> None:
    """`git add -A` but for submodule paths and the names git refuses to record."""
    paths = [line.partition(b"\t")[2] for line in links.split(b"\0") if line]
    spec = b"\0".join([b":/", *(b":(exclude,top,literal)" + path for path in paths)])
    add = ("add", "-A", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    status, _, said = git.answer(*add, stdin=spec, ok=range(256))
    assert git.work_tree is not None
    if status != 0 and "ermission denied" in said:
        unlock(git.work_tree)
        status, _, said = git.answer(*add, stdin=spec, ok=range(256))
    if status != 0 and "can only add regular files" in said:
        _remove_special(git)
        status, _, said = git.answer(*add, stdin=spec, ok=range(256))
    complaints = [line for line in said.splitlines() if line.startswith(("error:", "fatal:"))]
    expected = ("error: invalid path ", "error: unable to add ")
    if status != 0 and not (complaints and all(line.startswith(expected) for line in complaints)):
        raise GitFailed(("add", "-A"), said)


def clean(git: Git) -> None:
    """Remove what is neither in the index nor ignored, rights given back where that takes it."""
    try:
        git.run("clean", "-ffdq")
    except GitFailed:
        assert git.work_tree is not None
        unlock(git.work_tree)
        git.run("clean", "-ffdq")


def gitlinks_of(git: Git, tree: str) -> list[tuple[str, str]]:
    lines = git.run("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0")
    links = [line.partition(b"\t") for line in lines if line.startswith(_GITLINK.encode())]
    return [(os.fsdecode(path), head.split()[2].decode()) for head, _, path in links]


def link_line(path: str, commit: str) -> bytes:
    return f"{_GITLINK} {commit}\t".encode() + os.fsencode(path) + b"\0"


def without_gitlinks(git: Git, tree: str, links: Sequence[tuple[str, str]]) -> str:
    """The same tree without its submodules, written through an index of its own."""
    with _second_index(git) as second:
        second.run("read-tree", tree)
        gone = b"".join(b"0 " + b"0" * len(tree) + b"\t" + os.fsencode(p) + b"\0" for p, _ in links)
        second.run("update-index", "-z", "--index-info", stdin=gone)
        return second.word("write-tree")


def with_gitlinks(git: Git, links: bytes) -> str:
    with _second_index(git) as second:
        second.run("read-tree", git.word("write-tree"))
        second.run("update-index", "-z", "--replace", "--index-info", stdin=links)
        return second.word("write-tree")


@contextmanager
def _second_index(git: Git) -> Iterator[Git]:
    path = git.git_dir / "index.second"
    path.unlink(missing_ok=True)
    try:
        yield replace(git, index=path, work_tree=None)
    finally:
        path.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    """Remove what is at `path`, a link itself and never its target; nothing there is no error."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def _remove_special(git: Git) -> None:
    """Remove pipes, sockets and devices that stand where the index has a file."""
    assert git.work_tree is not None
    for name in git.names("ls-files", "-z"):
        path = git.work_tree / name
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
            path.unlink()


def unlock(root: Path) -> None:
    """Give the owner back the rights a command took: directories rwx, files r."""
    root.chmod(root.stat().st_mode | stat.S_IRWXU)
    for directory, names, files in os.walk(root):
        for name in [*names, *files]:
            path = Path(directory, name)
            mode = os.lstat(path).st_mode
            wanted = mode | (stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR)
            if not stat.S_ISLNK(mode) and wanted != mode:
                path.chmod(stat.S_IMODE(wanted))


def folder_tree(git: Git, *, without: Path) -> str:
    """The tree of a user's folder, which is only read, without the repositories inside it.

    `without` is a directory whose content is left out, wherever it lies.
    """
    assert git.work_tree is not None
    with _second_index(git) as second:
        there = replace(second, work_tree=git.work_tree)
        hidden = os.path.relpath(os.path.realpath(without), os.path.realpath(git.work_tree)) + "/"
        listed = b"".join(
            os.fsencode(name) + b"\0"
            for name in there.names(*_OTHERS)
            if not (name.endswith("/") or name.startswith(hidden) or "/.holdfast/" in f"/{name}")
        )
        there.run("update-index", "-z", "--add", "--stdin", stdin=listed)
        return there.word("write-tree")
