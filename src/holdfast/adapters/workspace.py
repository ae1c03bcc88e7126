"""One task's private checkout: working files in one directory, their history in a private other.

Owns the private git directory (mode 0700, never mounted in a sandbox), staging of the working files
into trees, restoring, and reading what lies between two trees. Does not own the user's repository
(`repository`) nor commands (`sandbox`).

Trust: the working directory belongs to untrusted commands, the private directory to us alone. git
therefore never meets a nested `.git` (those are stripped first), never holds a submodule
in its index (a submodule's recorded commit is put into the tree afterwards, so git never looks into
its directory), and converts no content (`info/attributes` beats the checkout's `.gitattributes`).
The `.git` at the top of the working directory is a throwaway for commands; git here never reads it.

Invariants: `stage` returns only after the objects are on disk and held by a ref; `restore(stage())`
is the identity on what is not ignored; a SIGKILL inside either is mended by the next `restore`;
one process at a time, proved by locks that our git processes and sandboxed commands inherit.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from holdfast.adapters.git import Git, GitFailed, signature
from holdfast.adapters.locks import held, lock_path
from holdfast.adapters.repository import Repository
from holdfast.adapters.staging import (
    add_all,
    clean,
    gitlinks_of,
    link_line,
    strip_nested,
    unlock,
    with_gitlinks,
    without_gitlinks,
)
from holdfast.adapters.throwaway import make_throwaway
from holdfast.domain.ports import Diff, Sandbox
from holdfast.errors import Refused
from holdfast.frozen import frozen

_ATTRIBUTES = b"* !text !eol !crlf !filter !ident !working-tree-encoding !diff !merge\n"
_CONFIG = {  # what `git init --bare` writes that git's defaults do not say; the rest is in `Git`
    "sha1": b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    "sha256": b"[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
    b"[extensions]\n\tobjectformat = sha256\n",
}
_OBJECT_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


@frozen
class Merged:
    """A merge of three trees: the merged tree, or the names in conflict and no tree.

    `marked` is then the tree that holds what could be merged, with conflict markers where it could
    not, and `said` what git says about each conflict.
    """

    tree: str | None
    conflicts: tuple[str, ...] = ()
    marked: str = ""
    said: str = ""


class TaskWorkspace:
    """A `Workspace`. Make it with `create`, which also opens one that exists."""

    def __init__(
        self, git_dir: Path, root: Path, sandbox: Sandbox, ref: str, redact: Callable[[str], str]
    ) -> None:
        self._root, self._sandbox, self._ref, self._redact = root, sandbox, ref, redact
        self._git = Git(git_dir=git_dir)

    @classmethod
    def create(
        cls,
        git_dir: Path,
        root: Path,
        repository: Repository,
        *,
        base: str | None,
        sandbox: Sandbox,
        redact: Callable[[str], str],
        task: str = "task",
        take: int = 1,
    ) -> TaskWorkspace:
        """Make what is missing of the private directory and of `root`; idempotent after a kill.

        `base` is a commit of `repository`, None for one without commits. A new `root` holds the
        base's files and a throwaway `.git`; an existing one is left as it is for `restore`.
        """
        ref = f"refs/holdfast/{task}/{take}"
        if base is not None:
            repository.keep(f"refs/holdfast/base/{base}", base)
        _make_private(git_dir, repository, base)
        workspace = cls(git_dir, root, sandbox, ref, redact)
        # The directory appears whole or not at all, so that a kill never leaves one half made.
        if not root.exists():
            making = root.with_name(root.name + ".making")
            shutil.rmtree(making, ignore_errors=True)
            making.mkdir(parents=True)
            tree = workspace.tree_of(base)
            cls(git_dir, making, sandbox, ref, redact).restore(tree)
            make_throwaway(making, workspace._git, tree)
            making.rename(root)
            lock_path(making).unlink(missing_ok=True)
        return workspace

    @property
    def root(self) -> Path:
        return self._root

    @property
    def git_dir(self) -> Path:
        return self._git.git_dir

    @property
    def sandbox(self) -> Sandbox:
        return self._sandbox

    def stage(self) -> str:
        """The tree of the working files, durable and held.

        Not in it: ignored files, names that git refuses, and every nested `.git`, which is removed.
        """
        with self._alone() as git, _synced(self.git_dir):
            strip_nested(git)
            links = self._gitlinks()
            add_all(git, links)
            tree = with_gitlinks(git, links) if links else git.word("write-tree")
            git.run("update-ref", self._ref, tree)
        return tree

    def restore(self, tree: str) -> None:
        """Make the working files equal `tree`; files it would ignore stay. Idempotent.

        Raises GitFailed when the tree is not here, Refused when `tree` is no object id.
        """
        _check_id(tree)
        with self._alone() as git:
            links = gitlinks_of(git, tree)
            plain = without_gitlinks(git, tree, links) if links else tree
            self._links_file.write_bytes(b"".join(link_line(*link) for link in links))
            try:
                _checkout(git, plain)
            except GitFailed:
                # An index a power cut damaged, or directories a command made read-only.
                (git.git_dir / "index").unlink(missing_ok=True)
                unlock(self._root)
                _checkout(git, plain)
            clean(git)
            for path, _ in links:
                (self._root / path).mkdir(parents=True, exist_ok=True)

    def borrow(self, git_dir: Path) -> None:
        """Read another task's objects too, so that its trees can be restored here. Idempotent."""
        line, alternates = _quoted(git_dir / "objects"), self.git_dir / "objects/info/alternates"
        known = alternates.read_bytes()
        if line not in known:
            _put(alternates, known + line)

    def tree_of(self, commit: str | None) -> str:
        """The tree of a commit; the empty tree, written if need be, for None."""
        if commit is None:
            return self._git.word("mktree")
        _check_id(commit)
        return self._git.word("rev-parse", "--verify", f"{commit}^{{tree}}")

    def diff(self, before: str, after: str) -> Diff:
        """The unified diff of two trees; binary files are only named."""
        from holdfast.adapters.diffs import summary  # noqa: PLC0415  what goes on needs no diff

        for tree in (before, after):
            _check_id(tree)
        return summary(self._git, before, after, self._redact)

    def changed(self, before: str, after: str) -> list[tuple[str, str]]:
        """Sorted (status, name) of what differs: A added, D deleted, M modified, T other type."""
        from holdfast.adapters.diffs import statuses  # noqa: PLC0415  as in `diff`

        for tree in (before, after):
            _check_id(tree)
        status = statuses(self._git, before, after)
        return [(status[name], name) for name in sorted(status)]

    def commit(self, tree: str, *, parents: Sequence[str], message: str, when_ms: int) -> str:
        """A commit of `tree`. The same arguments give the same id; nothing points to it yet."""
        flags = [word for parent in parents for word in ("-p", parent)]
        return self._git.word(
            *("commit-tree", tree, *flags, "-F", "-"),
            stdin=message.encode(),
            environment=signature(when_ms // 1000),
        )

    def merge(self, base: str, ours: str, theirs: str) -> Merged:
        """Three-way merge of trees or commits that are here, without touching the working files."""
        return merge_in(self.git_dir, base, ours, theirs)

    @contextmanager
    def _alone(self) -> Iterator[Git]:
        """git on our directory, with nobody else in it; leftovers of a killed git are removed."""
        with held(self.git_dir, self._root) as descriptors:
            self._root.chmod(self._root.stat().st_mode | stat.S_IRWXU)
            for leftover in [*self.git_dir.glob("*.lock"), *self.git_dir.glob("refs/**/*.lock")]:
                leftover.unlink(missing_ok=True)
            yield replace(self._git, work_tree=self._root, held=descriptors)

    @property
    def _links_file(self) -> Path:
        return self.git_dir / "holdfast-gitlinks"

    def _gitlinks(self) -> bytes:
        return self._links_file.read_bytes() if self._links_file.exists() else b""


def merge_in(git_dir: Path, base: str, ours: str, theirs: str) -> Merged:
    """Three-way merge of trees or commits that a private git directory holds or borrows.

    Pure but for the objects it writes there: the same arguments give the same trees.
    """
    git = Git(git_dir=git_dir)
    for tree in (base, ours, theirs):
        _check_id(tree)

    def commit(side: str, *parents: str) -> str:
        tree = git.word("rev-parse", "--verify", f"{side}^{{tree}}")
        flags = [word for parent in parents for word in ("-p", parent)]
        return git.word("commit-tree", tree, *flags, "-m", "side", environment=signature(0))

    root = commit(base)
    sides = {commit(ours, root): "the branch", commit(theirs, root): "the task"}
    if len(sides) == 1:
        return Merged(tree=git.word("rev-parse", "--verify", f"{theirs}^{{tree}}"))
    status, output, _ = git.answer(
        "merge-tree", "--write-tree", "-z", "--name-only", "--messages", *sides, ok=(0, 1)
    )
    head, _, rest = output.partition(b"\0\0")
    words = [os.fsdecode(word) for word in head.split(b"\0") if word]
    if status == 0:
        return Merged(tree=words[0].strip())
    told = [word for word in rest.split(b"\0") if re.match(rb"CONFLICT \([^)]*\): ", word)]
    said = os.fsdecode(b"".join(told))
    for side, name in sides.items():
        said = said.replace(side, name)
    names = tuple(sorted(set(words[1:])))
    return Merged(tree=None, conflicts=names, marked=words[0].strip(), said=said.strip())


def _make_private(git_dir: Path, repository: Repository, base: str | None) -> None:
    """A bare repository is a few files, so none of git's processes is needed to make or mend it."""
    git_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    git_dir.chmod(0o700)
    files = {
        "HEAD": b"ref: refs/heads/none\n",
        "config": _CONFIG[repository.object_format],
        "info/attributes": _ATTRIBUTES,
        "info/exclude": repository.excludes(),
        "objects/info/alternates": _quoted(repository.objects),
    }
    if shallow := repository.shallow():
        files["shallow"] = shallow
    if base is not None:
        files["refs/holdfast/base"] = f"{base}\n".encode()
    for name, content in files.items():
        _put(git_dir / name, content)
    (git_dir / "refs").mkdir(exist_ok=True)


def _put(path: Path, content: bytes) -> None:
    """Let the file hold this, as git lets it: whole or not at all, by way of its lock file."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(path.name + ".lock")
    lock.write_bytes(content)
    lock.replace(path)


def _quoted(objects: Path) -> bytes:
    """A line of an alternates file, quoted as git reads it."""
    text = str(objects).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return os.fsencode(f'"{text}"\n')


@contextmanager
def _synced(git_dir: Path) -> Iterator[None]:
    """Put the directories below `git_dir` that change inside on disk.

    git syncs what is in its files, but not the names it then renames them to; without this a power
    cut could take objects away that the journal says are there.
    """
    before = _change_times(git_dir)
    yield
    for directory, changed in _change_times(git_dir).items():
        if before.get(directory) != changed:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _change_times(root: Path) -> dict[str, int]:
    return {directory: os.stat(directory).st_mtime_ns for directory, _, _ in os.walk(root)}


def _checkout(git: Git, tree: str) -> None:
    strip_nested(git)
    git.run("read-tree", "--reset", "-u", tree)


def _check_id(name: str) -> None:
    if not _OBJECT_ID.fullmatch(name):
        raise Refused(f"{name!r} is no object id")
