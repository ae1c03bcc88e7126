"""A check is one line: every way to write one, and every one that could never be judged."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checks import CHECK_KINDS, RUNNER_NAMES, Check, read_check
from holdfast.errors import Refused

WRITTEN: list[tuple[Any, Check, str]] = [
    ("pytest -q", Check(kind="command_succeeds", subject="pytest -q"), "pytest -q"),
    ("file_exists: a//b.txt ", Check(kind="file_exists", subject="a/b.txt"), "file_exists:a/b.txt"),
    (" test_passes ", Check(kind="test_passes"), "test_passes"),
    ("test_passes: go", Check(kind="test_passes", subject="go"), "test_passes:go"),
    ("git_clean", Check(kind="git_clean"), "git_clean"),
    (
        "command_succeeds:git_clean",
        Check(kind="command_succeeds", subject="git_clean"),
        "command_succeeds:git_clean",
    ),
    ("git_clean && true", Check(kind="command_succeeds", subject="git_clean && true"), ""),
    ({"kind": "command_succeeds", "command": "a b"}, Check(kind="command_succeeds"), "a b"),
    (
        {"kind": "command_succeeds", "command": "test_passes"},
        Check(kind="command_succeeds", subject="test_passes"),
        "command_succeeds:test_passes",
    ),
    ({"kind": "file_exists", "path": "./x"}, Check(kind="file_exists"), "file_exists:x"),
    ({"kind": "test_passes"}, Check(kind="test_passes"), "test_passes"),
    ({"kind": "test_passes", "runner": "mix"}, Check(kind="test_passes"), "test_passes:mix"),
    ({"kind": "git_clean"}, Check(kind="git_clean"), "git_clean"),
]

REFUSED: list[tuple[Any, str]] = [
    ("", "empty"),
    (" \n", "empty"),
    ("a\0b", "NUL"),
    ("command_succeeds:", "empty"),
    ("file_exists:", "names no file"),
    ("file_exists:/etc/passwd", "names no file"),
    ("file_exists:../up", "names no file"),
    ("file_exists:.git/config", "names no file"),
    ("file_exist:a.txt", r"no kind of check \(did you mean 'file_exists'"),
    ("tests_pass", r"did you mean 'test_passes'"),
    ("test_passes:rake", "no test runner 'rake'"),
    ("git_clean:src", "whole workspace"),
    ({}, "kind is None"),
    ({"kind": "vibes"}, "kind is 'vibes'"),
    ({"kind": "file_exists", "file": "x"}, "has no 'file'"),
    ({"kind": "git_clean", "path": "x"}, "has no 'path'"),
    ({"kind": "file_exists", "path": 3}, "is 3, not a text"),
    ({"kind": "file_exists"}, "names no file"),
]


@pytest.mark.parametrize(("value", "check", "line"), WRITTEN)
def test_a_check_is_read_from_a_line_or_a_table(value: Any, check: Check, line: str) -> None:
    found = read_check(value)
    assert found.kind == check.kind
    assert found.subject == check.subject or not check.subject
    assert found.line == (line or value)
    assert found.subject in found.words


@pytest.mark.parametrize(("value", "words"), REFUSED)
def test_a_check_that_could_never_be_judged_is_refused(value: Any, words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        read_check(value)
    assert caught.value.code == "bad_check"


SUBJECTS = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    [*CHECK_KINDS, *RUNNER_NAMES, "file_exists:x", "file_exist", "command_succeeds:git_clean"]
)


@given(st.sampled_from(CHECK_KINDS), SUBJECTS)
def test_what_was_read_is_written_as_the_line_that_reads_the_same(kind: Any, subject: str) -> None:
    table = {"kind": kind}
    if subject and kind != "git_clean":
        name = {"command_succeeds": "command", "file_exists": "path", "test_passes": "runner"}
        table[name[kind]] = subject
    try:
        check = read_check(table)
    except Refused:
        return
    assert read_check(check.line) == check
