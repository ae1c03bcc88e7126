"""Paths a model names, opened so that they cannot leave the workspace.

Owns the walk: component by component from the workspace's own descriptor, never following a link by
the kernel. A link is read and walked by the same rules, so one that stays inside works and one that
leaves is refused. Each directory is opened by its parent's descriptor without following, so
swapping a component for a link during the call changes nothing. `.git` is no part of a workspace.

A path is relative, or absolute below `/workspace`, which is where commands see the workspace.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.adapters.sandbox import WORKSPACE
from holdfast.frozen import frozen

_LINKS_MAX = 40
_DEPTH_MAX = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Refusal(Exception):
    """A call that is answered with a code and a sentence for the model; never escapes a tool."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@frozen
class Place:
    """A name in an open directory. `name` is `.` for the directory itself."""

    directory: int
    name: str
    relative: str

    def kind(self) -> int | None:
        """The file type bits of what is there, links not followed; None when nothing is."""
        try:
            status = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return stat.S_IFMT(status.st_mode)


@contextmanager
def place(root: Path, path: str, *, make_parents: bool = False) -> Iterator[Place]:
    """Walk to `path`, whose last component need not exist. Raises Refusal."""
    walk = _Walk(root, path, make_parents)
    try:
        yield walk.to_end()
    finally:
        walk.close()


class _Walk:
    def __init__(self, root: Path, path: str, make_parents: bool) -> None:
        if "\0" in path or not path:
            raise Refusal("INVALID_ARGUMENTS", "a path is not empty and holds no NUL character")
        if path.count("/") > _DEPTH_MAX:
            raise Refusal("INVALID_ARGUMENTS", f"the path is over {_DEPTH_MAX} levels deep")
        self._path, self._make = path, make_parents
        self._open = [os.open(root, _DIRECTORY)]
        self._names: list[str] = []
        self._links = 0
        self._pending = deque(self._parts(path))

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def to_end(self) -> Place:
        while self._pending:
            part = self._pending.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                self._up()
                continue
            if part.lower() == ".git":
                raise Refusal("PATH_OUTSIDE_WORKSPACE", ".git is no part of the workspace")
            last = not any(rest not in ("", ".") for rest in self._pending)
            kind = Place(directory=self._open[-1], name=part, relative="").kind()
            if kind == stat.S_IFLNK:
                self._follow(part)
            elif last:
                return self._place(part)
            else:
                self._down(part, kind)
        return self._place(".")

    def _place(self, name: str) -> Place:
        names = self._names if name == "." else [*self._names, name]
        return Place(directory=self._open[-1], name=name, relative="/".join(names) or ".")

    def _parts(self, path: str) -> list[str]:
        if not path.startswith("/"):
            return path.split("/")
        if path != WORKSPACE and not path.startswith(WORKSPACE + "/"):
            self._refuse_outside()
        while len(self._open) > 1:
            self._up()
        return path[len(WORKSPACE) :].split("/")

    def _up(self) -> None:
        if len(self._open) == 1:
            self._refuse_outside()
        os.close(self._open.pop())
        self._names.pop()

    def _down(self, name: str, kind: int | None) -> None:
        if kind is None:
            if not self._make:
                raise Refusal("FILE_NOT_FOUND", f"there is no {self._place(name).relative}")
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self._open[-1])
        elif kind != stat.S_IFDIR:
            raise Refusal("NOT_A_DIRECTORY", f"{self._place(name).relative} is no directory")
        try:
            self._open.append(os.open(name, _DIRECTORY, dir_fd=self._open[-1]))
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            self._links = _LINKS_MAX
            self._refuse_outside()
        self._names.append(name)

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > _LINKS_MAX:
            raise Refusal("SYMLINK_OUTSIDE_WORKSPACE", f"{self._path} is a loop of links")
        target = os.readlink(name, dir_fd=self._open[-1])
        self._pending.extendleft(reversed(self._parts(target)))

    def _refuse_outside(self) -> None:
        code = "SYMLINK_OUTSIDE_WORKSPACE" if self._links else "PATH_OUTSIDE_WORKSPACE"
        raise Refusal(code, f"{self._path} leads out of the workspace")


def read_bytes(at: Place, *, bytes_max: int) -> bytes:
    """The content of a regular file. Raises Refusal for anything else and for one too large."""
    check_regular(at)
    try:
        descriptor = os.open(at.name, _OLD_FILE, dir_fd=at.directory)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise Refusal("SYMLINK_OUTSIDE_WORKSPACE", f"{at.relative} became a link") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal("NOT_A_FILE", f"{at.relative} is no regular file")
        data = file.read(bytes_max + 1)
    if len(data) > bytes_max:
        raise Refusal("FILE_TOO_LARGE", f"{at.relative} is over {bytes_max} bytes")
    return data


def check_regular(at: Place) -> None:
    kind = at.kind()
    if kind is None:
        raise Refusal("FILE_NOT_FOUND", f"there is no {at.relative}")
    if kind != stat.S_IFREG:
        what = "a directory" if kind == stat.S_IFDIR else "no regular file"
        raise Refusal("NOT_A_FILE", f"{at.relative} is {what}")


def write_bytes(at: Place, data: bytes) -> None:
    """Replace or make a regular file, whole or not at all; an existing one keeps its mode."""
    mode = None
    if at.kind() is not None:
        check_regular(at)
        mode = stat.S_IMODE(os.stat(at.name, dir_fd=at.directory, follow_symlinks=False).st_mode)
    temporary = f".holdfast-{os.getpid()}-{threading.get_ident()}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=at.directory)
    descriptor = os.open(temporary, _NEW_FILE, 0o666, dir_fd=at.directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
        os.replace(temporary, at.name, src_dir_fd=at.directory, dst_dir_fd=at.directory)
    except BaseException:
        os.unlink(temporary, dir_fd=at.directory)
        raise


@frozen
class Entry:
    """One directory entry met by `walk`. `kind` is file type bits, `target` that of a link."""

    relative: str
    place: Place
    kind: int
    size: int
    target: str = ""


def walk(at: Place, *, recursive: bool, skipped: frozenset[str] = frozenset()) -> Iterator[Entry]:
    """Entries below a directory in name order, depth first; links are told, not followed.

    A directory named in `skipped` is told but not entered; `.git` is neither. The descriptor in an
    entry's `place` is open until the next entry is asked for.
    """
    try:
        directory = os.open(at.name, _DIRECTORY, dir_fd=at.directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refusal("NOT_A_DIRECTORY", f"{at.relative} is no directory") from error
        if error.errno == errno.ENOENT:
            raise Refusal("FILE_NOT_FOUND", f"there is no {at.relative}") from error
        raise
    prefix = "" if at.relative == "." else at.relative + "/"
    try:
        for name in sorted(os.listdir(directory)):
            if name.lower() == ".git":
                continue
            here = Place(directory=directory, name=name, relative=prefix + name)
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                link = stat.S_ISLNK(status.st_mode)
                target = os.readlink(name, dir_fd=directory) if link else ""
            except OSError:
                continue
            kind = stat.S_IFMT(status.st_mode)
            yield Entry(
                relative=here.relative, place=here, kind=kind, size=status.st_size, target=target
            )
            deep = here.relative.count("/") >= _DEPTH_MAX
            if kind == stat.S_IFDIR and recursive and name not in skipped and not deep:
                with suppress(Refusal):
                    yield from walk(here, recursive=True, skipped=skipped)
    finally:
        os.close(directory)


def shown(name: str) -> str:
    """A file name as valid, printable text; bytes that are no UTF-8 become `\\xNN`."""
    text = name.encode(errors="surrogateescape").decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
