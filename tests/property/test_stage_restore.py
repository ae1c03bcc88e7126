"""Staging and restoring random trees of hostile names is the identity."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.adapters.repository import Repository
from holdfast.adapters.sandbox import open_sandbox
from holdfast.adapters.workspace import TaskWorkspace

NAMES = st.sampled_from([b"a", b"b", b"-x", b"c d", b"\xff", b"n\nl", b"*", b":(top)", b"\\", b'"'])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
CONTENT = st.one_of(
    st.tuples(st.just("file"), st.binary(max_size=40), st.booleans()),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"/etc", b"../..", b"b/c"]), st.just(False)),
)
TREES = st.dictionaries(PATHS, CONTENT, max_size=6)


def write(root: bytes, files: dict[bytes, tuple[str, bytes, bool]]) -> None:
    """Write what fits; a path whose parent is a file or a link is skipped."""
    for path, (kind, content, executable) in files.items():
        full = root + b"/" + path
        parents = [root + b"/" + b"/".join(path.split(b"/")[:n]) for n in range(1, len(path))]
        if os.path.lexists(full) or any(
            os.path.lexists(p) and (os.path.islink(p) or not os.path.isdir(p)) for p in parents
        ):
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if kind == "link":
            os.symlink(content, full)
        else:
            with open(full, "wb") as file:
                file.write(content)
            os.chmod(full, 0o755 if executable else 0o644)


def read(root: bytes) -> dict[bytes, tuple[bytes, bool]]:
    found = {}
    for directory, names, leaves in os.walk(root):
        if directory == root and b".git" in names:
            names.remove(b".git")
        for name in leaves + [n for n in names if os.path.islink(os.path.join(directory, n))]:
            path = os.path.join(directory, name)
            mode = os.lstat(path).st_mode
            content = (
                os.readlink(path) if stat.S_ISLNK(mode) else Path(os.fsdecode(path)).read_bytes()
            )
            found[os.path.relpath(path, root)] = (content, bool(mode & 0o100))
    return found


def emptied(root: Path) -> None:
    for entry in root.iterdir():
        if entry.is_dir() and not entry.is_symlink() and entry.name != ".git":
            shutil.rmtree(entry)
        elif entry.name != ".git":
            entry.unlink()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES, TREES)
def test_restoring_a_staged_tree_brings_back_every_byte(
    one: dict[bytes, tuple[str, bytes, bool]], two: dict[bytes, tuple[str, bytes, bool]]
) -> None:
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home, "folder")
        folder.mkdir()
        repository = Repository.copy_of(folder, Path(home, "holdfast"))
        workspace = TaskWorkspace.create(
            Path(home, "task/git"),
            Path(home, "task/ws"),
            repository,
            base=repository.head(),
            sandbox=open_sandbox(redact=str),
            redact=str,
        )
        root = os.fsencode(workspace.root)
        write(root, one)
        first_files, first = read(root), workspace.stage()
        emptied(workspace.root)
        write(root, two)
        second_files, second = read(root), workspace.stage()
        workspace.restore(first)
        assert read(root) == first_files
        assert workspace.stage() == first
        workspace.restore(second)
        assert read(root) == second_files
        assert workspace.stage() == second
