"""A user's repository: read, and given refs and objects; its files, index and HEAD never change.

Owns opening it, the private copy of a folder that is none, what is dirty, the ref that keeps a base
from garbage collection and the transfer of a finished branch. The transfer is plumbing (objects
out of the private directory into the user's, then one ref), not `git fetch`: that reads URL
rewrites, hooks and maintenance settings from the user's configuration and writes FETCH_HEAD.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from holdfast.adapters.git import Git, GitFailed, signature, without_filters
from holdfast.adapters.locks import held
from holdfast.adapters.staging import folder_tree
from holdfast.errors import NotFound, Refused
from holdfast.frozen import frozen

_COPY_MESSAGE = "Copy of a folder that is no git repository"

_COPY_BRANCH = "refs/heads/main"
# A message and names as `history` asks for them: neither can hold a NUL, and no name is empty.
_COMMIT = re.compile(rb"\0([^\0]*)\0\0((?:[^\0]+\0)*)")


@frozen
class BlamedLine:
    """Which commit last changed a line, and what number the line had there."""

    commit: str
    line: int
    path: str
    text: str


class Files(NamedTuple):
    """Where git keeps what a task's own git directory takes over; a worktree shares its main's."""

    objects: Path
    excludes: Path
    shallow: Path
    refs: Path  # those below refs/holdfast/ that are no longer or not yet packed


_FILES = ("objects", "info/exclude", "shallow", "refs/holdfast")


class Repository:
    """A repository that is not ours. `work_tree` is None when it is bare."""

    def __init__(self, git: Git, *, files: Files, object_format: str) -> None:
        self._git, self._files, self.object_format = git, files, object_format

    @classmethod
    def open(cls, path: Path) -> Repository:
        """The repository that holds `path`. Raises NotFound (code `no_repository`) for none."""
        if not path.is_dir():
            raise NotFound(f"{path} is no directory")
        git_dir, work_tree, files, object_format = _discover(path)
        git = Git(git_dir=git_dir, work_tree=work_tree)
        return cls(git, files=files, object_format=object_format)

    @classmethod
    def copy_of(cls, folder: Path, home: Path) -> Repository:
        """A private bare repository `<home>/source.git` with one commit of the folder's files.

        Idempotent: an unchanged folder keeps its commit; a changed one adds a commit. `.holdfast`,
        `home` and every `.git` are left out, `.gitignore` is respected.
        """
        git_dir = home / "source.git"
        git_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        git = Git(git_dir=git_dir)
        with held(git_dir):
            git.run("init", "-q", "--bare", "--template=", "--initial-branch=main")
            _copy_in(replace(git, work_tree=folder), home)
        object_format = git.word("rev-parse", "--show-object-format")
        files = Files(*(git_dir / name for name in _FILES))
        return cls(git, files=files, object_format=object_format)

    @property
    def git_dir(self) -> Path:
        return self._git.git_dir

    @property
    def git(self) -> Git:
        """git on this repository, for reading objects."""
        return replace(self._git, work_tree=None)

    @property
    def work_tree(self) -> Path | None:
        return self._git.work_tree

    @property
    def objects(self) -> Path:
        return self._files.objects

    def head(self) -> str | None:
        """The commit HEAD names; None in a repository without commits."""
        return self._commit("HEAD")

    def dirty(self) -> list[str]:
        """Sorted names of changed and untracked files, which a task starting at HEAD lacks.

        A file that only a conversion filter makes equal may be named: no filter is run to ask.
        Raises Refused when a filter has a name that cannot be switched off.
        """
        if self.work_tree is None:
            return []
        flags = ("--no-renames", "--untracked-files=all", "--ignore-submodules=all")
        git = without_filters(self._git)
        return sorted({row[3:] for row in git.names("status", "--porcelain", "-z", *flags)})

    def keep(self, ref: str, commit: str) -> None:
        """Point `refs/holdfast/…` to a commit, so that garbage collection spares it. Idempotent."""
        if not ref.startswith("refs/holdfast/"):
            raise Refused(f"{ref} is not below refs/holdfast/")
        # A ref that has a file is what the file says, and git would not write it again either.
        if (
            _content(self._files.refs / ref.removeprefix("refs/holdfast/"))
            != f"{commit}\n".encode()
        ):
            self._git.run("update-ref", ref, commit)

    def branch_commit(self, branch: str) -> str | None:
        return self._commit(f"refs/heads/{branch}")

    def branches(self, below: str) -> frozenset[str]:
        """The names of all branches that begin with `below`, a folder of names."""
        found = self._git.run("for-each-ref", "--format=%(refname:lstrip=2)", f"refs/heads/{below}")
        return frozenset(os.fsdecode(found).splitlines())

    def empty_tree(self) -> str:
        """The id of the tree without files, in this repository's hash."""
        return self._git.word("hash-object", "-t", "tree", "--stdin")

    def tree_of(self, commit: str) -> str:
        return self._git.word("rev-parse", "--verify", f"{commit}^{{tree}}")

    def blob(self, tree: str, path: str) -> bytes | None:
        """The bytes of a file as recorded in a tree or commit; None when there is none."""
        listed = self._git.run("ls-tree", "-z", "--full-tree", tree, "--", f":(literal){path}")
        entry = listed.split(b"\0")[0]
        fields = entry.partition(b"\t")[0].split()
        if len(fields) != 3 or fields[1] != b"blob":
            return None
        return self._git.run("cat-file", "blob", fields[2].decode())

    def files(self, tree: str) -> list[str]:
        """Sorted names of the files in a tree or commit."""
        return self._git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)

    def entries(self, tree: str) -> list[tuple[str, str, int]]:
        """The regular files of a tree as (name, blob id, bytes), sorted by name."""
        found = []
        for row in self._git.names("ls-tree", "-r", "-z", "-l", "--full-tree", tree):
            fields, _, name = row.partition("\t")
            mode, _, blob, size = fields.split()
            if mode.startswith("100"):
                found.append((name, blob, int(size)))
        return found

    def contents(self, blobs: Sequence[str]) -> list[bytes]:
        """The bytes of many blobs from one git process, in the order asked for."""
        asked = "\n".join([*blobs, ""]).encode()
        answer = self._git.run("cat-file", "--batch", "--buffer", stdin=asked)
        found, at = [], 0
        for blob in blobs:
            line, _, _ = answer[at : at + 256].partition(b"\n")
            fields = line.split()
            if len(fields) != 3:
                raise NotFound(f"object {blob} is not in {self.git_dir}")
            start = at + len(line) + 1
            found.append(answer[start : start + int(fields[2])])
            at = start + int(fields[2]) + 1
        return found

    def changed(self, before: str, after: str) -> list[str]:
        """Sorted names of what differs between two commits or trees."""
        flags = ("-r", "-z", "--name-only", "--no-renames")
        return self._git.names("diff-tree", *flags, before, after)

    def touching(self, before: str, after: str, paths: Sequence[str]) -> list[str]:
        """The commits after `before` (empty: from the first) that changed one of `paths`."""
        span = [after, f"^{before}"] if before else [after]
        literal = [f":(literal){path}" for path in paths]
        return self._git.run("rev-list", "--reverse", *span, "--", *literal).decode().split()

    def commit_message(self, commit: str) -> str:
        said = self._git.run("show", "-s", "--no-notes", "--format=%B", commit)
        return said.decode(errors="replace")

    def history(
        self, commit: str, *, commits_max: int, bytes_max: int
    ) -> list[tuple[str, list[str]]]:
        """`commit` and those before it, newest first, as (message, names of the files it touched).

        Merges are left out, and what is past either limit. Names are sorted.
        """
        flags = ("--no-merges", "--no-renames", "--no-notes", "--no-mailmap", "--no-relative")
        plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--encoding=UTF-8")
        form = ("--name-only", "-z", f"--max-count={commits_max}", "--format=%x00%B%x00")
        line = ("log", *flags, *plain, *form, commit, "--")
        output, whole = self.git.beginning(*line, bytes_max=bytes_max)
        found = [
            (message.decode(errors="replace"), sorted(map(os.fsdecode, _touched(names))))
            for message, names in _COMMIT.findall(output)
        ]
        return found if whole else found[:-1]

    def blame(self, commit: str, path: str, line: int) -> BlamedLine | None:
        """Who wrote line `line` (from 1) of `path` in `commit`; None when there is no such line."""
        try:
            flags = ("--porcelain", "--no-textconv", f"-L{line},{line}")
            output = self._git.run("blame", *flags, commit, "--", path)
        except GitFailed as error:
            if "no such path" in error.said or "has only" in error.said:
                return None
            raise
        rows = output.decode(errors="replace").split("\n")
        head = rows[0].split()
        there = next((row[9:] for row in rows if row.startswith("filename ")), path)
        text = next((row[1:] for row in rows if row.startswith("\t")), "")
        return BlamedLine(commit=head[0], line=int(head[1]), path=there, text=text)

    def fetch_branch(
        self, private_git_dir: Path, commit: str, branch: str, *, replaces: str = ""
    ) -> None:
        """Bring `commit` from a private directory here as `refs/heads/<branch>`. Idempotent.

        Only forward, except from `replaces`: raises Refused when the branch is checked out
        anywhere, when it holds commits that `commit` lacks, or when `branch` is no branch name.
        """
        ref = f"refs/heads/{branch}"
        if self._git.answer("check-ref-format", ref, ok=(0, 1))[0] != 0:
            raise Refused(f"{branch!r} is no branch name")
        if ref in self._checked_out():
            raise Refused(
                f"branch {branch} is checked out, and a checkout is never changed",
                hint="switch that worktree to another branch",
            )
        self.fetch(private_git_dir, commit)
        before = self._commit(ref)
        if before == commit:
            return
        if before not in (None, replaces) and not self._is_ancestor(before, commit):
            raise Refused(
                f"branch {branch} holds commits that this work does not know",
                hint="rename that branch or merge it first",
            )
        self._git.run("update-ref", ref, commit, before or "0" * len(commit))

    def fetch(self, private_git_dir: Path, commit: str) -> None:
        """Bring `commit` and what it needs from a private directory; no ref points to it yet."""
        if self._git.answer("cat-file", "-e", f"{commit}^{{commit}}", ok=range(256))[0] == 0:
            return
        private = Git(git_dir=private_git_dir)
        _, base, _ = private.answer("rev-parse", "-q", "--verify", "refs/holdfast/base", ok=(0, 1))
        wanted = f"{commit}\n" + (f"^{base.decode().strip()}\n" if base else "")
        flags = ("--revs", "--local", "--stdout", "-q")
        pack = private.run("pack-objects", *flags, stdin=wanted.encode())
        self.git.run("unpack-objects", "-q", "--strict", stdin=pack)

    def excludes(self) -> bytes:
        """The repository's own `info/exclude`, which a task's checkout honours too."""
        return _content(self._files.excludes)

    def shallow(self) -> bytes:
        """The boundary of a shallow clone; empty when the history is whole."""
        return _content(self._files.shallow)

    def _commit(self, name: str) -> str | None:
        status, output, _ = self._git.answer(
            "rev-parse", "-q", "--verify", f"{name}^{{commit}}", ok=(0, 1)
        )
        return output.decode().strip() if status == 0 else None

    def _is_ancestor(self, older: str, newer: str) -> bool:
        return self._git.answer("merge-base", "--is-ancestor", older, newer, ok=(0, 1))[0] == 0

    def _checked_out(self) -> set[str]:
        rows = self._git.names("worktree", "list", "--porcelain", "-z")
        return {row.removeprefix("branch ") for row in rows if row.startswith("branch ")}


def _discover(path: Path) -> tuple[Path, Path | None, Files, str]:
    """What holds `path`, as git finds it from there, asked in one process: git directory, work
    tree, files and the format of objects."""
    line = ["git", "-C", str(path), "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
    ask = [*line, "rev-parse", "--absolute-git-dir", "--is-bare-repository", "--show-object-format"]
    ask += ["--path-format=absolute", *(word for name in _FILES for word in ("--git-path", name))]
    ask.append("--show-toplevel")  # last, because a bare repository has none
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "HOME": "/nonexistent"}
    environment |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(ask, env=environment, capture_output=True, check=False)  # noqa: S603
    answers = os.fsdecode(done.stdout).splitlines()
    files = answers[3 : 3 + len(_FILES)]
    if done.returncode == 0 or (len(files) == len(_FILES) and answers[1] == "true"):
        tree = Path(answers[-1]) if answers[1] == "false" else None
        return Path(answers[0]), tree, Files(*map(Path, files)), answers[2]
    said = os.fsdecode(done.stderr).strip()
    if "not a git repository" in said:
        raise NotFound(f"{path} is in no git repository", code="no_repository")
    raise Refused(f"git refuses {path}: {said.splitlines()[0] if said else 'no reason given'}")


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _copy_in(git: Git, home: Path) -> None:
    """Commit the folder's files on main, unless main holds exactly them.

    The commit's date is the epoch: equal folders get equal commits.
    """
    tree = folder_tree(git, without=home)
    status, before, _ = git.answer("rev-parse", "-q", "--verify", _COPY_BRANCH, ok=(0, 1))
    parent = before.decode().strip() if status == 0 else ""
    if not parent or git.word("rev-parse", f"{parent}^{{tree}}") != tree:
        flags = ("-p", parent) if parent else ()
        signed = signature(0)
        commit = git.word("commit-tree", tree, *flags, "-m", _COPY_MESSAGE, environment=signed)
        git.run("update-ref", _COPY_BRANCH, commit)


def _touched(names: bytes) -> list[bytes]:
    return names.removeprefix(b"\n").split(b"\0")[:-1]
