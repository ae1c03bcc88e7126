"""Design §5, row by row: what happens to a step that was intended when its process was killed."""

import hashlib
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from e2e.support import (
    Cli,
    Driver,
    at_step,
    broken_invariants,
    calls,
    git,
    make_repo,
    model_server,
    says,
    script,
    until,
)
from holdfast.app.goals import EXIT

NOTE = calls(("note", {"text": "sent"}))
DONE = says("It is done.")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"a.txt": "a\n", ".gitignore": "*.tmp\n"})


def killed(driver: Driver, boundary: str, key: str, **order: Any) -> None:
    answer = driver.order(die=at_step(boundary, key), **order)
    assert answer["signal"] == signal.SIGKILL
    assert broken_invariants(driver.store) == []


def resumed(driver: Driver) -> dict[str, Any]:
    result: dict[str, Any] = driver.order(goal=1)["said"]
    assert broken_invariants(driver.store) == []
    return result


def test_a_pure_step_runs_again(repo: Path, tmp_path: Path) -> None:
    read = script(calls(("read_file", {"path": "a.txt"})), DONE)
    with Driver(tmp_path / "driver", repo, read) as driver:
        killed(driver, "mid_effect", "t001/call:0")
        assert resumed(driver)["state"] == "complete"
        assert [call["key"] for call in driver.called()] == ["t001/call:0"] * 2


@pytest.mark.parametrize("boundary", ["after_intend", "mid_effect", "after_effect"])
def test_an_idempotent_step_runs_again(repo: Path, tmp_path: Path, boundary: str) -> None:
    with Driver(tmp_path / "driver", repo, script(NOTE, DONE)) as driver:
        killed(driver, boundary, "t001/call:0")
        before = len(driver.noted())
        assert before == (boundary == "after_effect")
        assert resumed(driver)["state"] == "complete"
        assert len(driver.noted()) == before + 1


def test_a_model_call_whose_reply_was_not_recorded_is_asked_again_and_paid_as_estimated(
    repo: Path, tmp_path: Path
) -> None:
    with model_server(script(NOTE, DONE), tmp_path / "model") as server:
        wish = {"model": "ollama:scripted", "environ": server.environ()}
        with Driver(tmp_path / "driver", repo, script(NOTE, DONE), **wish) as driver:
            killed(driver, "mid_effect", "t002/model")
            assert resumed(driver)["state"] == "complete"
            assert [call["turn"] for call in server.asked()] == [0, 1, 1]
            spent = driver.store.rows("SELECT outcome, tokens_in FROM attempts ORDER BY number")
            paid = driver.store.one(
                "SELECT tokens_in FROM steps WHERE key = 't001/model' AND state = 'done'"
            )
        assert spent[0]["outcome"] == "expired"
        assert spent[0]["tokens_in"] > paid, "the orphaned reserve is settled as spent"


def test_a_killed_command_is_compensated_before_it_runs_again(repo: Path, tmp_path: Path) -> None:
    command = (
        "ls > seen.txt; rm -f a.txt; test -e once.tmp && echo whole > out.txt && exit 0; "
        "touch once.tmp; echo ha > out.txt; mkdir left; echo x > left/over.txt; sleep 600"
    )
    played = script(calls(("run_command", {"command": command})), DONE)
    with Driver(tmp_path / "driver", repo, played) as driver:
        process = driver.begin(die=None)
        half = lambda: list(driver.home.glob("tasks/1/work-*/left/over.txt"))  # noqa: E731
        until(half, "the command wrote half of its files")
        os.kill(process, signal.SIGKILL)
        assert driver.finish()["signal"] == signal.SIGKILL
        result = resumed(driver)
    branch = result["branch"]
    assert git(repo, "show", f"{branch}:out.txt") == "whole"
    assert git(repo, "show", f"{branch}:seen.txt").split() == ["a.txt", "once.tmp", "seen.txt"]
    assert "left" not in git(repo, "ls-tree", "-r", "--name-only", branch)
    assert "a.txt" not in git(repo, "ls-tree", "-r", "--name-only", branch).split()


def test_half_of_a_written_file_is_gone_before_the_write_runs_again(
    repo: Path, tmp_path: Path
) -> None:
    """After the effect and before the commit, the file is there and must be taken back first."""
    append = "cat a.txt a.txt > b.txt && mv b.txt a.txt"
    played = script(calls(("run_command", {"command": append})), DONE)
    with Driver(tmp_path / "driver", repo, played) as driver:
        killed(driver, "after_effect", "t001/call:0")
        result = resumed(driver)
    assert git(repo, "show", f"{result['branch']}:a.txt") == "a\na"


@pytest.mark.parametrize("boundary", ["after_intend", "mid_effect", "after_effect"])
@pytest.mark.parametrize("word", ["the mail went out", "redo"])
def test_an_irreversible_step_is_never_repeated_by_itself(
    repo: Path, tmp_path: Path, boundary: str, word: str
) -> None:
    played = script(NOTE, calls(("write_file", {"path": "b.txt", "content": "b\n"})), DONE)
    with Driver(tmp_path / "driver", repo, played, effect="irreversible") as driver:
        killed(driver, boundary, "t001/call:0")
        happened = driver.noted()
        for _ in range(2):  # asking again changes nothing
            result = resumed(driver)
            assert (result["outcome"], EXIT[result["outcome"]]) == ("waiting", 3)
            assert "t001/call:0" in result["tasks"][0]["detail"]
            assert "sent" in result["tasks"][0]["detail"], "the evidence names what was asked"
            assert driver.noted() == happened
        person = Cli(repo, {"HOLDFAST_HOME": str(driver.home)})
        listed = person("approval", "--json")
        assert listed.result["approvals"][0]["task"] == 1
        assert person("resume", "1", "--json").code == 3
        assert person("approval", "answer", "1", word, "--json").code == 0
        assert resumed(driver)["state"] == "complete"
        assert driver.noted() == happened + (["sent"] if word == "redo" else [])
        states = {
            key[3]: row["state"]
            for key, row in driver.store.steps().items()
            if key[2] == "t001/call:0"
        }
        assert states == ({1: "unknown", 2: "done"} if word == "redo" else {1: "unknown"})
        replayed = person(
            "replay",
            result["tasks"][0]["attempt"].split(".")[0]
            + "."
            + str(driver.store.one("SELECT max(number) FROM attempts")),
            "--json",
        )
        assert replayed.code == 0, replayed.out


def test_a_redone_irreversible_step_that_dies_again_asks_again(repo: Path, tmp_path: Path) -> None:
    with Driver(tmp_path / "driver", repo, script(NOTE, DONE), effect="irreversible") as driver:
        person = Cli(repo, {"HOLDFAST_HOME": str(driver.home)})
        killed(driver, "mid_effect", "t001/call:0")
        assert resumed(driver)["outcome"] == "waiting"
        assert person("approval", "answer", "1", "redo").code == 0
        killed(driver, "after_effect", "t001/call:0", goal=1)
        assert resumed(driver)["outcome"] == "waiting"
        assert driver.noted() == ["sent"]
        assert person("approval", "answer", "1", "it is done").code == 0
        assert resumed(driver)["state"] == "complete"
        assert driver.noted() == ["sent"]


@pytest.mark.parametrize("kill", [None, "after_commit"])
def test_an_irreversible_step_done_in_one_take_answers_in_the_next(
    repo: Path, tmp_path: Path, kill: str | None
) -> None:
    write = calls(("write_file", {"path": "ok.txt", "content": "ok\n"}))
    played = {
        "rules": [
            {"when": "Last try", "replies": [NOTE, write, DONE]},
            {"replies": [NOTE, DONE]},
        ]
    }
    wish = {
        "effect": "irreversible",
        "checks": ["test -f ok.txt"],
        "policy": {"max_verification_retries": 0},
    }
    with Driver(tmp_path / "driver", repo, played, **wish) as driver:
        if kill:
            killed(driver, kill, "t001/call:0")
            result = resumed(driver)
        else:
            result = driver.order(die=None)["said"]
        assert (result["state"], result["outcome"]) == ("complete", "passed")
        assert driver.noted() == ["sent"]
        takes = driver.store.rows("SELECT number FROM takes")
    assert [row["number"] for row in takes] == [1, 2]


def test_a_record_of_another_version_opens_a_fresh_take_and_is_said_to_a_reader(
    repo: Path, tmp_path: Path
) -> None:
    read = script(calls(("read_file", {"path": "a.txt"})), DONE)
    with Driver(tmp_path / "driver", repo, read) as driver:
        killed(driver, "after_intend", "t002/model")
        foreign = b'{"tool":["read_file"],"seen":"a"}'
        with sqlite3.connect(driver.home / "holdfast.db") as store:
            store.execute(
                "UPDATE steps SET result = ?, result_sha256 = ? WHERE key = 't001/call:0'",
                (foreign.decode(), hashlib.sha256(foreign).hexdigest()),
            )
        said = driver.order(goal=1)["said"]
        assert (said["state"], said["tasks"][0]["attempt"]) == ("complete", "1.3")
        [told] = driver.store.rows("SELECT report FROM attempts WHERE number = 2")
        assert "record of another version of Holdfast" in told["report"]
        with sqlite3.connect(driver.home / "holdfast.db") as store:
            store.execute("""UPDATE tasks SET spec = '{"key": 7}'""")
        shown = Cli(repo, {"HOLDFAST_HOME": str(driver.home)})("goal", "show", "1", "--json")
        assert (shown.code, shown.result["code"]) == (2, "corrupt")
        assert "the version that wrote it" in shown.result["hint"]
