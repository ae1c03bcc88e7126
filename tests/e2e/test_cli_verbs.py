"""Every verb over a store that a real run left: what a person sees, and what a program parses."""

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from holdfast import cli

SCRIPT = """
[[rules]]
when = "# Task: Write a"
[[rules.replies]]
text = "I write it."
calls = [{ name = "write_file", arguments = { path = "a.txt", content = "one\\ntwo\\n" } }]
[[rules.replies]]
text = "a is written."
[[rules]]
when = "# Task: Write b"
[[rules.replies]]
text = "I write it."
calls = [{ name = "write_file", arguments = { path = "b.txt", content = "b\\n" } }]
[[rules.replies]]
text = "b is written."
"""
PLAN = """
[[tasks]]
key = "a"
title = "Write a"
prompt = "Write a.txt"
checks = ["test -f a.txt"]
[[tasks]]
key = "b"
title = "Write b"
prompt = "Write b.txt"
requires = ["a"]
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verbs")
    subprocess.run(["git", "init", "-q", str(folder / "repo")], check=True)
    (folder / "script.toml").write_text(SCRIPT)
    (folder / "plan.toml").write_text(PLAN)
    code = cli.main(
        [
            *("run", "Write two files", "--repo", str(folder / "repo"), "--json"),
            *("--plan", str(folder / "plan.toml")),
            *("--model", f"scripted:{folder / 'script.toml'}"),
        ]
    )
    assert code == 5
    return folder / "repo"


@pytest.fixture
def repo(made: Path, tmp_path: Path) -> Path:
    """A copy of its own, so that a test may change it. The goal still points to the original."""
    copy = tmp_path / "repo"
    shutil.copytree(made, copy, symlinks=True)
    return copy


@pytest.fixture
def say(repo: Path, capsys: pytest.CaptureFixture[str]):
    def run(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        assert cli.main([*words, "--repo", str(repo)]) == code, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.fixture
def ask(say):
    def run(*words: str, code: int = 0) -> dict:
        out = say(*words, "--json", code=code)
        lines = [json.loads(line) for line in out.splitlines()]
        assert len(lines) == 1, "one JSON object and nothing else"
        return lines[0]

    return run


def test_goals_are_listed_and_shown(say, ask) -> None:
    assert "Write two f" in say("goal"), "a text is cut at the width of the terminal"
    assert ask("goal")["goals"][0]["state"] == "complete"
    shown = ask("goal", "show", "1")
    assert [task["key"] for task in shown["plans"][0]["tasks"]] == ["a", "b"]
    assert shown["usage"]["tokens"] > 0
    text = say("goal", "show", "1")
    assert "plan 1 (person): succeeded" in text
    assert "check pass: test -f a.txt" in text


def test_tasks_and_attempts_are_listed_and_shown(say, ask) -> None:
    assert [row["key"] for row in ask("task", "--goal", "1")["tasks"]] == ["a", "b"]
    assert "Write b" in say("task")
    assert ask("task", "show", "2")["requires"] == ["a"]
    assert "task 1 of goal 1" in say("task", "show", "1")
    assert [row["attempt"] for row in ask("attempt")["attempts"]] == ["1.1", "2.1"]
    assert "1.1" in say("attempt", "--goal", "1")
    shown = ask("attempt", "show", "1.1")
    assert [step["key"] for step in shown["journal"]][:2] == ["t001/model", "t001/call:0"]
    assert "turn 1" in say("attempt", "show", "1.1")
    assert [turn["calls"][0]["tool"] for turn in shown["turns"][:1]] == ["write_file"]
    assert shown["check_runs"][0]["verdict"] == "pass"
    assert shown["changes"] == [{"path": "a.txt", "status": "A", "added": 2, "removed": 0}]
    journal = say("attempt", "show", "1.1", "--journal")
    assert "t001/model (model, idempotent) done" in journal


def test_a_plan_is_listed_shown_and_exported_as_a_file_that_runs_again(
    say, ask, tmp_path: Path
) -> None:
    from holdfast.adapters.plan_file import read_plan
    from holdfast.domain.model import Policy

    assert ask("plan")["plans"][0]["state"] == "succeeded"
    assert "person  succeeded" in say("plan")
    assert "b: Write b  succeeded" in say("plan", "show", "1")
    exported = ask("plan", "export", "1")
    (tmp_path / "again.json").write_text(json.dumps(exported))
    again = read_plan(tmp_path / "again.json", policy=Policy())
    first = read_plan(tmp_path / "again.json", policy=Policy(max_turns=1))
    assert again == first, "an exported task carries its own policy"
    assert [task.key for task in again.tasks] == ["a", "b"]
    assert json.loads(say("plan", "export", "1")) == exported


def test_pausing_what_is_over_changes_nothing(ask) -> None:
    assert ask("plan", "pause", "1")["state"] == "succeeded"
    assert ask("plan", "resume", "1")["state"] == "succeeded"


def test_a_bare_noun_lists(ask, say) -> None:
    (link,) = ask("link")["links"]
    assert (link["from_key"], link["kind"], link["to_key"]) == ("b", "requires", "a")
    assert say("link").strip() == "2 b requires 1 a (succeeded)"
    assert "holdfast plan list" in ask("link", "schedule", code=2)["hint"]
    assert ask("context")["steers"] == []
    say("context", "pin", "2", "a.txt", "--reason", "the bug is here")
    assert [row["source"] for row in ask("context")["steers"]] == ["a.txt"]
    assert "task 2: pin a.txt by " in say("context")
    assert ask("context", "history", "1")["steers"] == []


def test_cancelling_a_complete_goal_is_refused(say) -> None:
    say("goal", "cancel", "1", code=2)


def test_events_page_by_cursor_and_reach_the_end(say) -> None:
    rows = [json.loads(line) for line in say("events", "--json").splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    kinds = {row["type"] for row in rows}
    assert {"transition", "llm_call", "tool_output", "git_diff"} <= kinds
    for row in rows:
        assert row["type"] != "llm_call" or row["cost_nusd"] == 0 < row["tokens_out"], "its cost"
    late = [json.loads(line) for line in say("events", "--json", "--after", "10").splitlines()]
    assert late == rows[10:]
    assert "goal 1: new —submit→ submitted" in say("events", "--goal", "1")


def test_why_names_task_step_and_evidence_within_a_budget(say, ask) -> None:
    found = ask("why", "a.txt:2")
    assert (found["task"], found["attempt"], found["step"]) == ("a", "1.1", "t001/call:0")
    assert "attempt  1.1 (passed), step t001/call:0" in say("why", "a.txt:2")
    assert ask("why", "2.1")["task"] == "b"
    assert "t001/call:0 by 2.1" in say("why", "2.1")
    assert "session 1.1" in say("why", "a.txt:1", "--tokens", "150")
    assert ask("why", "failed")["type"] == "evidence"
    say("why", "a.txt:9", code=2)
    say("why", "../a.txt:1", code=2)


def test_replay_is_equal_and_says_so(say, ask) -> None:
    assert ask("replay", "1.1")["equal"] is True
    assert "all equal; it ended passed" in say("replay", "1.1")
    say("replay", "x", code=2)
    say("replay", "1.9", code=2)


def test_an_undo_says_first_what_it_would_do(say, ask) -> None:
    found = ask("undo", "1", "--dry-run")
    assert found["tasks"] == ["b", "a"]
    assert found["files"] == ["a.txt", "b.txt"]
    assert "would undo, in this order: b, a" in say("undo", "1", "--dry-run")
    say("undo", "9", "--dry-run", code=2)


def test_nothing_waits_and_nothing_goes_on(say, ask) -> None:
    assert ask("approval")["approvals"] == []
    say("approval", "answer", "1", "redo", code=2)
    assert ask("resume")["goal"] is None
    assert "nothing to resume" in say("resume")
    done = ask("resume", "1", code=5)
    assert (done["state"], done["resumed"]) == ("complete", True)


def test_a_verb_that_needs_a_number_says_so(say) -> None:
    for words in (("goal", "show"), ("task", "show"), ("plan", "show"), ("approval", "answer")):
        say(*words, code=2)
    say("attempt", "show", "one", code=2)
    say("task", "force", "2", "--ignore", "1", code=2)


def test_a_force_with_a_reason_is_recorded(say, repo: Path) -> None:
    say("task", "force", "2", "--ignore", "1", "--reason", "a is not needed")
    rows = sqlite3.connect(repo / ".holdfast/holdfast.db").execute("SELECT * FROM task_forces")
    assert rows.fetchall()[0][:3] == (2, 1, "a is not needed")


def test_the_store_is_checked_copied_damaged_and_restored(say, ask, repo: Path) -> None:
    store = repo / ".holdfast/holdfast.db"
    assert ask("check") == {"type": "check", "sound": True, "problems": []}
    say("restore", code=2)
    kept = Path(ask("backup")["file"])
    assert kept.exists()
    data = bytearray(store.read_bytes())
    for start in range(2048, len(data) - 2048, 4096):
        data[start : start + 1024] = b"\xff" * 1024
    store.write_bytes(data)
    assert cli_code(say, "check") != 0
    assert "would restore" in say("restore", "--dry-run")
    assert ask("restore")["file"] == str(kept)
    assert ask("check")["sound"] is True
    assert ask("goal")["goals"][0]["state"] == "complete"


def cli_code(say, *words: str) -> int:
    """The exit code of a verb that must not succeed: 1 for problems, 2 for a refusal."""
    for code in (1, 2):
        try:
            say(*words, code=code)
        except AssertionError:
            continue
        return code
    return 0


def test_the_doctor_names_what_is_there_and_what_a_command_can_see(say, ask) -> None:
    found = {row["name"]: row for row in ask("doctor")["findings"]}
    assert found["wall"]["level"] == "ok"
    assert any(row["path"] == "/usr" for row in found["wall"]["readable"])
    assert found["store"]["level"] == "ok"
    assert found["model"]["level"] == "warning"
    assert "commands run behind bubblewrap" in say("doctor")
    asked = ask("doctor", "--model", "scripted:/nowhere", code=1)
    assert asked["healthy"] is False
    assert {"openai", "google", "mistral"} <= {*found["providers"]["ready"]}
    assert found["providers"]["missing"] == []


def test_the_doctor_does_not_say_that_a_provider_answers_whom_nobody_asked(
    ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "test-key")
    found = {row["name"]: row for row in ask("doctor", "--model", "deepseek:x")["findings"]}
    assert found["model"]["text"] == "deepseek:x can be asked; only a call tells if it answers"


def test_a_place_without_a_store_says_how_to_start(tmp_path: Path, capsys) -> None:
    assert cli.main(["goal", "--repo", str(tmp_path)]) == 2
    assert "holdfast run" in capsys.readouterr().err
    assert cli.main(["goal", "--repo", str(tmp_path / "none")]) == 2


def test_a_recorded_attempt_can_be_played_again_as_a_model(repo: Path, tmp_path: Path) -> None:
    """`replay:ATTEMPT` gives a new goal the recorded replies, for no money."""
    words = ["run", "Write a", "--repo", str(repo), "--check", "test -f a.txt", "--json"]
    assert cli.main([*words, "--model", "replay:1.1"]) == 0
    assert cli.main([*words, "--model", "replay:9.9"]) == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli.main(["run", "x", "--repo", str(empty), "--model", "replay:1.1"]) == 2
