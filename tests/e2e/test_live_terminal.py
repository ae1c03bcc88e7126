"""`holdfast run` on a real terminal: the tree it draws, and what is left when it ends or dies."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.screen import Screen
from e2e.support import Cli, calls, make_repo, says, until, write_script

RUN = (sys.executable, "-m", "holdfast")
SLOW = 600.0
EVIL = "\x1b[2J\x1b]0;owned\x07evil"


def work(folder: Path, *replies: Mapping[str, Any]) -> tuple[Path, str]:
    """A repository and a model that gives these replies."""
    repo = make_repo(folder / "repo", {"a.txt": "a\n"})
    played = {"rules": [{"replies": list(replies)}]}
    return repo, write_script(folder / "script.json", played)


WRITES = calls(("write_file", {"path": "b.txt", "content": "b\n"}))


def test_the_tree_shows_goal_plan_task_turn_and_spend_and_gives_way_to_the_result(
    tmp_path: Path,
) -> None:
    repo, model = work(tmp_path, WRITES, says("written", delay_s=1.0))
    words = [*RUN, "run", f"Write b {EVIL}", "--model", model, "--check", "test -f b.txt"]
    with Screen(words, cwd=repo, columns=100) as screen:
        text = screen.until("turn 2 of ")
        assert "goal 1  Write b \\x1b[2J" in text
        assert "plan 1 (single)" in text
        assert "0 of 1 task done" in text
        assert "● task" in text
        assert "○ check test -f b.txt" in text
        assert screen.end() == 0
        text = screen.text
        assert "goal 1: complete, passed" in text
        assert "asks" not in text, "the drawing is gone, the result stands alone"
        assert b"\x1b]0;owned" not in screen.written
        assert b"\x1b[?25l" not in screen.written, "the cursor was never hidden"


def test_what_is_for_a_person_to_keep_stands_above_the_tree(tmp_path: Path) -> None:
    away = f"openai:m,scripted:{tmp_path / 'script.json'}"
    repo, model = work(tmp_path, says("done", delay_s=SLOW))
    assert model in away
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "k"}
    words = [*RUN, "run", "Try", "--model", away]
    with Screen(words, cwd=repo, environ=environ, columns=120) as screen:
        text = screen.until(lambda shown: " → scripted:" in shown and "● task" in shown)
        assert text.index(" → scripted:") < text.index("● task")


def test_a_resized_terminal_is_drawn_anew(tmp_path: Path) -> None:
    repo, model = work(tmp_path, says("done", delay_s=SLOW))
    with Screen([*RUN, "run", "Wait", "--model", model], cwd=repo, columns=100) as screen:
        screen.until("asks")
        for columns, rows in ((30, 10), (12, 5), (140, 40), (60, 24)):
            screen.resize(columns, rows)
            seen = len(screen.written)
            screen.until(lambda _, seen=seen: screen.written.count(b"goal 1", seen) >= 2)
            lines = screen.text.splitlines()
            assert len(lines) < rows
            assert sum("goal 1" in line for line in lines) == 1, screen.text


def test_ctrl_c_once_ends_it_cleanly_and_resume_goes_on(tmp_path: Path) -> None:
    repo, model = work(tmp_path, says("done", delay_s=SLOW))
    with Screen([*RUN, "run", "Wait", "--model", model], cwd=repo, columns=100) as screen:
        screen.until("asks")
        screen.press(b"\x03")
        assert screen.end() == 130
        assert "go on: holdfast resume 1" in screen.text
        assert "stopping; press Ctrl-C again" in screen.text


def test_ctrl_c_twice_ends_it_at_once_and_leaves_the_prompt_below_the_tree(tmp_path: Path) -> None:
    """A tool that does not end holds the first Ctrl-C back; the second waits for nothing."""
    hang = calls(
        ("run_command", {"command": "trap '' TERM INT; while :; do read x; done < /dev/zero"})
    )
    repo, model = work(tmp_path, hang)
    with Screen([*RUN, "run", "Hang", "--model", model], cwd=repo, columns=100) as screen:
        screen.until("calls run_command")
        screen.press(b"\x03\x03")
        assert screen.end() == 130
        row = screen.cursor_row
        assert not any(line.strip() for line in screen.text.splitlines()[row:]), screen.text


def test_a_killed_run_leaves_a_terminal_that_can_be_used(tmp_path: Path) -> None:
    repo, model = work(tmp_path, says("done", delay_s=SLOW))
    with Screen([*RUN, "run", "Die", "--model", model], cwd=repo, columns=100) as screen:
        screen.until("asks")
        os.kill(screen.process.pid, signal.SIGKILL)
        screen.end()
        assert screen.cursor_shown
        assert b"\x1b[?1049h" not in screen.written, "never on another screen"


@pytest.mark.parametrize(
    "environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}], ids=["no_color", "dumb", "none"]
)
def test_a_terminal_that_cannot_or_shall_not_gets_lines(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    repo, model = work(tmp_path, WRITES, says(f"written {EVIL}"))
    words = [*RUN, "run", "Write b", "--model", model]
    with Screen(words, cwd=repo, columns=100, environ=environ) as screen:
        assert screen.end() == 5
        assert "Write b | 1.1 started" in screen.text
        assert "Write b | t001 calls write_file" in screen.text
        assert b"\x1b" not in screen.written


def test_with_json_stdout_is_json_and_stderr_has_lines_even_on_a_terminal(tmp_path: Path) -> None:
    repo, model = work(tmp_path, WRITES, says("written"))
    with Screen([*RUN, "run", "Write b", "--model", model, "--json"], cwd=repo) as screen:
        assert screen.end() == 5
        assert b"\x1b" not in screen.written
        result = json.loads(screen.written.decode().strip().splitlines()[-1])
        assert (result["type"], result["outcome"]) == ("result", "unverified")


def test_stdout_that_is_no_terminal_gets_only_the_result(tmp_path: Path) -> None:
    repo, model = work(tmp_path, WRITES, says("written", delay_s=0.5))
    line = f"exec {sys.executable} -m holdfast run 'Write b' --model {model} > out.txt"
    with Screen(["/bin/sh", "-c", line], cwd=repo, columns=100) as screen:
        screen.until("asks")
        assert screen.end() == 5
        said = (repo / "out.txt").read_text()
        assert said.startswith("goal 1: complete, unverified, ")
        assert "\x1b" not in said


def test_what_another_process_does_is_drawn_too(tmp_path: Path) -> None:
    """The tree is the store's: a second `resume` shows the attempt that the first one runs."""
    repo, model = work(tmp_path, says("done", delay_s=SLOW))
    cli = Cli(repo)
    first = cli.start("run", "Wait", "--model", model)
    try:
        until(
            lambda: cli.store.goals() and cli.store.rows("SELECT 1 FROM steps"),
            "the first one asked",
        )
        with Screen([*RUN, "resume", "1"], cwd=repo, columns=100) as screen:
            assert "● task" in screen.until("attempt 1.1 of w-")
    finally:
        first.kill()
        first.communicate()


def test_a_stopped_terminal_stops_nothing_but_the_picture(tmp_path: Path) -> None:
    turns = [calls(("read_file", {"path": "a.txt", "offset": n}), delay_s=0.6) for n in (1, 2, 3)]
    repo, model = work(tmp_path, *turns, WRITES, says("written", delay_s=0.6))
    store = Cli(repo).store
    words = [*RUN, "run", "Write b", "--model", model]
    with Screen(words, cwd=repo, columns=200, rows=60) as screen:
        screen.until("asks")
        screen.press(b"\x13")
        until(lambda: store.rows("SELECT 1 FROM goals WHERE state = 'complete'"), "it completed")
        assert screen.process.poll() is None, "its last words wait for the terminal"
        screen.press(b"\x11")
        assert screen.end() == 5
        assert "goal 1: complete, unverified" in screen.text
