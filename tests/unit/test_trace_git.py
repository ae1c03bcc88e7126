"""The diff of a turn: since the last one, staged and untracked included, at most 50 lines."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.trace import gitdiff
from holdfast.trace.gitdiff import DIFF_LINES_MAX, LINE_CHARS_MAX, Turns, _remove
from trace_samples import SECRETS
from trace_world import World

IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
}


def git(repository: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=repository,
        env={**os.environ, **IDENTITY},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "a.txt").write_text("one\ntwo\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "first")
    return path


def test_a_turn_is_relative_to_the_turn_before_and_not_to_head(repository: Path) -> None:
    turns = Turns(repository)
    (repository / "a.txt").write_text("one\nTWO\n")
    first = turns.next()
    assert first is not None
    assert (first.files_changed, first.lines_added, first.lines_removed) == (1, 1, 1)
    (repository / "b.txt").write_text("new\n")
    second = turns.next()
    assert second is not None
    assert "b.txt" in second.text
    assert "a.txt" not in second.text
    assert turns.next() is None
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "everything")
    assert turns.next() is None
    assert turns.number == 4


def test_a_file_changed_in_the_instant_of_the_last_commit_is_seen(repository: Path) -> None:
    """Same size, same second: only the time of the index tells git to look into the file."""
    instant = (1_000_000_000, 1_000_000_000)
    git(repository, "config", "core.trustctime", "false")
    os.utime(repository / "a.txt", instant)
    git(repository, "update-index", "--refresh")
    os.utime(repository / ".git" / "index", instant)
    turns = Turns(repository)
    (repository / "a.txt").write_text("one\nTWO\n")
    os.utime(repository / "a.txt", instant)
    first = turns.next()
    assert first is not None
    assert "+TWO" in first.text


def test_a_later_turn_reads_files_that_only_the_repository_holds(repository: Path) -> None:
    turns = Turns(repository)
    assert turns.next() is None
    git(repository, "rm", "-q", "--cached", "a.txt")  # no cached tree names its content now
    git(repository, "reset", "-q")
    (repository / "b.txt").write_text("new\n")
    second = turns.next()
    assert second is not None
    assert "b.txt" in second.text


def test_staged_untracked_and_deleted_files_count_and_ignored_ones_do_not(
    repository: Path,
) -> None:
    (repository / ".gitignore").write_text("ignored\n")
    git(repository, "add", ".gitignore")
    git(repository, "commit", "-qm", "ignore")
    (repository / "staged").write_text("s\n")
    git(repository, "add", "staged")
    (repository / "untracked").write_text("u\n")
    (repository / "ignored").write_text("i\n")
    (repository / "a.txt").unlink()
    found = Turns(repository).next()
    assert found is not None
    assert (found.files_changed, found.lines_added, found.lines_removed) == (3, 2, 2)
    assert "+++ b/ignored" not in found.text


def test_totals_are_true_and_the_text_is_cut_at_fifty_lines(repository: Path) -> None:
    (repository / "long").write_text("".join(f"{n}\n" for n in range(500)))
    (repository / "binary").write_bytes(bytes(range(256)) * 10)
    found = Turns(repository).next()
    assert found is not None
    assert found.truncated
    assert len(found.text.splitlines()) == DIFF_LINES_MAX
    assert (found.files_changed, found.lines_added) == (2, 500)
    (repository / "long").write_text("".join(f"{n}\n" for n in range(500)))


def test_a_diff_of_exactly_fifty_lines_is_whole_and_wide_lines_are_cut(repository: Path) -> None:
    turns = Turns(repository)
    (repository / "fifty").write_text("x\n" * (DIFF_LINES_MAX - 6))
    whole = turns.next()
    assert whole is not None
    assert len(whole.text.splitlines()) == DIFF_LINES_MAX
    assert not whole.truncated
    (repository / "wide").write_text("y" * 5000 + "\n")
    wide = turns.next()
    assert wide is not None
    assert wide.truncated
    assert max(len(line) for line in wide.text.splitlines()) == LINE_CHARS_MAX


def test_it_works_without_any_commit_and_in_a_folder_below_the_top(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "a").write_text("a\n")
    turns = Turns(below)
    first = turns.next()
    assert first is not None
    assert first.lines_added == 1
    (below / "b").write_text("b\n")
    second = turns.next()
    assert second is not None
    assert "below/b" in second.text


def test_outside_git_without_git_or_in_a_missing_folder_there_is_no_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Turns(tmp_path).next() is None
    assert Turns(tmp_path / "missing").next() is None
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("a\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Turns(tmp_path).next() is None


def test_git_that_takes_too_long_is_no_error(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitdiff, "GIT_S", 0.0)
    assert Turns(repository).next() is None


def test_the_repository_is_left_as_it_was(repository: Path) -> None:
    def state() -> tuple[str, ...]:
        return (
            git(repository, "status", "--porcelain"),
            git(repository, "for-each-ref"),
            git(repository, "count-objects", "-v"),
            git(repository, "stash", "list"),
            (repository / ".git" / "index").read_bytes().hex(),
        )

    (repository / "b.txt").write_text("b\n")
    (repository / ".git" / "hooks" / "post-index-change").write_text("#!/bin/sh\ntouch ran\n")
    (repository / ".git" / "hooks" / "post-index-change").chmod(0o755)
    git(repository, "config", "diff.external", "touch ran")
    before = state()
    assert Turns(repository).next() is not None
    assert state() == before
    assert not (repository / "ran").exists()


def test_variables_of_a_surrounding_git_command_do_not_lead_elsewhere(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    (repository / "b.txt").write_text("b\n")
    assert Turns(repository).next() is not None


def test_the_scratch_directory_goes_with_its_process_and_not_with_a_fork(
    repository: Path,
) -> None:
    turns = Turns(repository)
    scratch = turns._scratch
    _remove(scratch, os.getpid() + 1)
    assert scratch.is_dir()
    del turns
    assert not scratch.exists()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "t.db")
    yield found
    found.close()


def test_one_event_of_a_turn_holds_the_one_diff_text_of_all_files(
    world: World, repository: Path
) -> None:
    secret = SECRETS["gitlab_token"]
    (repository / "a.txt").write_text(f"one\n{secret}\n")
    (repository / "b.txt").write_text("b\n")
    assert world.recorder.git_diff(path=str(repository)) != ""
    assert world.recorder.git_diff(path=str(repository)) == ""
    (repository / "c.txt").write_text("c\n")
    world.recorder.git_diff(7, path=str(repository))
    first, second = world.events("git_diff")
    assert first.payload["turn_number"] == 1
    assert first.payload["files_changed"] == 2
    assert first.payload["diff"].count("diff --git") == 2
    assert secret not in str(first.payload)
    assert second.payload["turn_number"] == 7
