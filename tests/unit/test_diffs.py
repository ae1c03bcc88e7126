"""A diff told to a reader: whole totals, first lines, and no secret, whole or halved."""

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.adapters.diffs import READ_BYTES, changed_files, patch, summary
from holdfast.adapters.git import Git, GitFailed
from holdfast.domain.ports import Diff
from holdfast.trace.gitdiff import DIFF_LINES_MAX, LINE_CHARS_MAX
from holdfast.trace.redact import Redactor

SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0" * 2
redact = Redactor(guess=False).text


@pytest.fixture
def git(tmp_path: Path) -> Git:
    made = Git(git_dir=tmp_path / "git")
    made.run("init", "-q", "--bare")
    return made


def tree(git: Git, **files: bytes) -> str:
    lines = b""
    for name, content in files.items():
        blob = git.word("hash-object", "-w", "--stdin", stdin=content)
        lines += f"100644 blob {blob}\t{name}\n".encode()
    return git.word("mktree", stdin=lines)


def told(git: Git, before: bytes, after: bytes, redact: Callable[[str], str] = redact) -> Diff:
    return summary(git, tree(git, x=before), tree(git, x=after), redact)


def test_totals_are_of_the_whole_and_the_shown_lines_are_the_first(git: Git) -> None:
    diff = told(git, b"one\n", b"".join(b"%d\n" % number for number in range(DIFF_LINES_MAX)))
    assert (diff.files_changed, diff.lines_added, diff.lines_removed) == (1, DIFF_LINES_MAX, 1)
    assert len(diff.text.splitlines()) == DIFF_LINES_MAX
    assert diff.truncated
    short = told(git, b"", b"1\n")
    assert not short.truncated
    assert short.text.endswith("@@ -0,0 +1 @@\n+1")


def test_nothing_and_a_binary_file_have_no_lines(git: Git) -> None:
    same = told(git, b"a\n", b"a\n")
    assert (same.files_changed, same.text, same.truncated) == (0, "", False)
    binary = told(git, b"a\0", b"b\0")
    assert (binary.files_changed, binary.lines_added) == (1, 0)
    assert binary.text.endswith("Binary files a/x and b/x differ")


def test_a_wide_line_is_cut_after_its_secret_is_hidden(git: Git) -> None:
    line = "x" * (LINE_CHARS_MAX - 10) + " " + SECRET
    shown = told(git, b"", line.encode()).text
    assert SECRET[:8] not in shown
    assert "[redacte\n" in shown
    assert SECRET[:8] in told(git, b"", line.encode(), str).text


@pytest.mark.parametrize("shift", range(0, 60, 7))
def test_a_secret_that_the_reading_limit_halves_is_not_shown(git: Git, shift: int) -> None:
    before = b"y" * (READ_BYTES - 250 - shift)
    diff = told(git, b"", before + b"\n" + SECRET.encode() * 8 + b"\nlast\n")
    assert SECRET[:8] not in diff.text
    assert diff.truncated
    assert diff.lines_added == 3


def test_a_diff_of_any_size_is_not_read_beyond_the_limit(git: Git) -> None:
    before, after = tree(git, x=b""), tree(git, x=b"line\n" * READ_BYTES)
    found, whole = git.beginning("diff-tree", "-p", before, after, bytes_max=1000)
    assert (len(found), whole) == (1000, False)
    assert summary(git, before, after, redact).lines_added == READ_BYTES
    assert git.beginning("diff-tree", "-p", before, before, bytes_max=1000) == (b"", True)
    with pytest.raises(GitFailed):
        git.beginning("diff-tree", "-p", before, "0" * 40, bytes_max=1000)


def test_files_that_differ_are_named_with_their_lines(git: Git) -> None:
    before = tree(git, a=b"1\n", b=b"\0", c=b"c\n")
    after = tree(git, a=b"1\n2\n", b=b"\1\0", d=b"d\n")
    assert [
        (each.status, each.path, each.added, each.removed)
        for each in changed_files(git, before, after)
    ] == [("M", "a", 1, 0), ("M", "b", None, None), ("D", "c", 0, 1), ("A", "d", 1, 0)]
    assert patch(git, before, after).count(b"diff --git ") == 4
