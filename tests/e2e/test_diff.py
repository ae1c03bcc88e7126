"""`holdfast diff`: what a goal or an attempt changed, on a terminal, in a pipe and as JSON."""

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.screen import Screen
from e2e.support import Cli, calls, git, make_repo, says, write_script

EVIL = "\x1b[2J\x1b]0;owned\x07\r\u202eevil"
DIFF = (sys.executable, "-m", "holdfast", "diff")


def write(path: str, content: str) -> dict[str, Any]:
    return calls(("write_file", {"path": path, "content": content}))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Goal 1 passed; goal 2 failed, its work kept; goal 3 changed nothing."""
    folder = tmp_path_factory.mktemp("diff")
    repo = make_repo(folder / "repo", {"a.txt": "one\ntwo\n--- three\n", "gone.bin": "\0\1\2"})
    cli = Cli(repo)
    replies = [
        write("a.txt", f"one\n++ 2 {EVIL}\n"),
        write("new file é.txt", "".join(f"line {n}\n" for n in range(60))),
        calls(("run_command", {"command": "rm gone.bin"})),
        says("done"),
    ]
    model = write_script(folder / "good.json", {"rules": [{"replies": replies}]})
    assert cli("run", "Change", "--model", model).code == 5
    bad = [write("b.txt", "b\n"), says("done")]
    model = write_script(folder / "bad.json", {"rules": [{"replies": bad}]})
    (repo / "holdfast.toml").write_text("max_takes = 1\nmax_verification_retries = 0\n")
    assert cli("run", "Fail", "--model", model, "--check", "false").code == 1
    model = write_script(folder / "idle.json", {"rules": [{"replies": [says("done")]}]})
    assert cli("run", "Idle", "--model", model).code == 5
    return repo


def test_in_a_pipe_it_is_a_patch_that_git_applies_after_its_list_of_files(
    made: Path, tmp_path: Path
) -> None:
    said = Cli(made)("diff", "2")
    assert said.out.startswith("1 file changed, +1 -0\n  A b.txt  +1 -0\n\ndiff --git a/b.txt")
    copy = tmp_path / "copy"
    git(made, "clone", "-q", str(made), str(copy))
    (tmp_path / "patch").write_text(said.out)
    git(copy, "apply", "--check", str(tmp_path / "patch"))


def test_escapes_in_files_are_made_visible_and_never_reach_a_terminal(made: Path) -> None:
    out = Cli(made)("diff", "1").out
    assert "+++ 2 \\x1b[2J\\x1b]0;owned\\x07\\x0d\\u202eevil" in out
    assert "\x1b" not in out
    with Screen([*DIFF, "1", "--no-pager"], cwd=made, columns=100, rows=120) as screen:
        assert screen.end() == 0
        assert b"\x1b[2J" not in screen.written
        assert b"\x1b]0;" not in screen.written
        assert "++ 2 \\x1b[2J" in screen.text


def test_on_a_terminal_lines_have_their_colours_also_those_that_look_like_headers(
    made: Path,
) -> None:
    with Screen([*DIFF, "1", "--no-pager"], cwd=made, columns=100, rows=120) as screen:
        assert screen.end() == 0
        assert b"\x1b[31m---- three\x1b[0m" in screen.written, "a removed line is red"
        assert b"\x1b[32m+++ 2 " in screen.written, "an added one green"
        assert b"\x1b[1m+++ b/a.txt\x1b[0m" in screen.written, "a header bold"


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["no_color", "dumb"])
def test_without_colours_there_are_none(made: Path, environ: dict[str, str]) -> None:
    with Screen([*DIFF, "1", "--no-pager"], cwd=made, environ=environ) as screen:
        assert screen.end() == 0
        assert b"\x1b" not in screen.written


def test_a_long_diff_on_a_terminal_goes_through_the_persons_pager(
    made: Path, tmp_path: Path
) -> None:
    pager = tmp_path / "my pager"
    pager.write_text('#!/bin/sh\nwc -l > "$0.got"\necho "paged $1"\n')
    pager.chmod(pager.stat().st_mode | stat.S_IXUSR)
    environ = {"PAGER": f"'{pager}' '; touch hacked'"}
    with Screen([*DIFF, "1"], cwd=made, environ=environ) as screen:
        assert screen.end() == 0
        assert "paged ; touch hacked" in screen.text
    assert int((tmp_path / "my pager.got").read_text()) > 60
    assert not (made / "hacked").exists(), "no shell reads it"


@pytest.mark.parametrize("pager", ["cat", "", "no-such-program-anywhere", "'"])
def test_without_a_pager_the_diff_is_written(made: Path, pager: str) -> None:
    with Screen([*DIFF, "2"], cwd=made, environ={"PAGER": pager}) as screen:
        assert screen.end() == 0
        assert "A b.txt" in screen.text


def test_of_an_attempt_it_is_what_its_take_changed(made: Path, tmp_path: Path) -> None:
    copy = tmp_path / "repo"
    shutil.copytree(made, copy, symlinks=True)
    cli = Cli(copy)
    out = cli("diff", "1.1", "--stat").out
    assert out == cli("diff", "1", "--stat").out
    assert "D gone.bin  binary" in out
    shutil.rmtree(copy / ".holdfast/tasks")
    assert cli("diff", "2.1", "--stat").out.startswith("1 file changed"), "from the kept commit"


def test_json_is_one_object_with_files_and_text(made: Path) -> None:
    found = Cli(made)("diff", "1", "--json").result
    assert (found["type"], found["of"]) == ("diff", "1")
    assert {each["path"]: each["status"] for each in found["files"]} == {
        "a.txt": "M",
        "gone.bin": "D",
        "new file é.txt": "A",
    }
    assert found["diff"].startswith("diff --git ")
    assert Cli(made)("diff", "3", "--json").result["files"] == []
    assert json.loads(Cli(made)("diff", "1", "--stat", "--json").out)["diff"] == ""


@pytest.mark.parametrize("what", ["9", "9.1", "x", "1.1.1", "--"])
def test_what_does_not_exist_is_refused(made: Path, what: str) -> None:
    said = Cli(made)("diff", what)
    assert said.code == 2
    assert len(said.err.splitlines()) <= 2


def test_the_pages_read_their_times_tokens_and_files_from_the_same_store(made: Path) -> None:
    cli = Cli(made)
    assert "3 files changed, +61 -2" in cli("attempt", "show", "1.1").out
    failed = cli("attempt", "show", "2.1").out
    assert "logic: checks_failed" in failed
    assert "check fail: false, exit 1" in failed
    assert cli("goal").out.count("$0.0000") == 3
    interrupted = subprocess.run(
        [*DIFF[:-1], "goal", "show", "1"],
        cwd=made,
        stdout=subprocess.PIPE,
        env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"},
        check=True,
    )
    assert interrupted.stdout.isascii(), "a terminal without Unicode gets none, and no error"
