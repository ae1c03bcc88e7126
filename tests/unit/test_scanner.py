"""The second process that scans: it answers what is answered here, and is missed by nobody."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters import scanner
from holdfast.adapters.scanner import CHILD_CHARS_MIN, Scanner
from holdfast.context.codemap import File, Scanned
from holdfast.context.codemap import scanned as scanned_with
from holdfast.context.words import Cuts

FILES: list[File] = [
    ("a.py", "def add_item(x):\n    return total_price(x)\n", None),
    ("b.rs", "pub fn serve() {}\n", ("serve", "$served")),
    ("c.txt", "数据库 naïve\ud7ff", ("数据库x",)),
    ("d.py", "", ()),
]
LARGE: list[File] = [("large.py", "x = 1\n" * (CHILD_CHARS_MIN // 6 + 1), None)]


def scanned(files: list[File]) -> list[Scanned]:
    return scanned_with(files, Cuts())


@pytest.fixture
def scan() -> Iterator[Scanner]:
    made = Scanner()
    yield made
    made.close()


def test_little_is_scanned_here_and_much_in_a_child_with_the_same_answer(scan: Scanner) -> None:
    assert scan(FILES) == scanned(FILES)
    assert scan._child is None
    assert scan(LARGE) == scanned(LARGE)
    assert scan._child is not None, "it begins with them"
    assert scan([*FILES, *LARGE]) == scanned([*FILES, *LARGE])
    assert scan([]) == []
    environment = Path(f"/proc/{scan._child.pid}/environ").read_bytes()
    assert environment == b""
    scan.close()
    assert scan._child.returncode == -signal.SIGKILL


def test_a_child_that_died_or_never_began_is_done_without(
    scan: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(LARGE)
    assert scan._child is not None
    os.kill(scan._child.pid, signal.SIGKILL)
    scan._child.wait()
    assert scan(FILES) == scanned(FILES)
    monkeypatch.setattr(scanner.sys, "executable", "/nonexistent/python")
    other = Scanner()
    assert other(LARGE) == scanned(LARGE)
    assert other._child is None


def test_a_child_that_answers_half_a_frame_is_done_without(
    scan: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = "import sys; sys.stdin.buffer.read(9); sys.stdout.buffer.write(bytes(7) + b'\\x09abc')"
    monkeypatch.setattr(scanner, "_BOOT", half)
    for files in (LARGE, FILES):  # the first begins it, the second it is asked for
        assert scan(files) == scanned(files)


def test_the_child_ends_when_its_pipe_does(scan: Scanner) -> None:
    scan(LARGE)
    child = scan._child
    assert child is not None
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait() == 0
    child.stdin = None
