"""Edits that are refused twice lead to whole files; the trace counts it, and replay agrees."""

import json
import signal
from pathlib import Path

import pytest

from e2e.support import Cli, Driver, at_step, broken_invariants, calls, make_repo, says, script

WRONG = calls(
    ("edit_file", {"path": "a.txt", "edits": [{"search": "nowhere", "replace": "x"}]}),
)
AGAIN = calls(
    ("edit_file", {"path": "a.txt", "edits": [{"search": "not here", "replace": "x"}]}),
)
WRITE = calls(("write_file", {"path": "a.txt", "content": "b\n"}))
PLAYED = script(WRONG, AGAIN, WRITE, says("It is done."))


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "t002/call:0", "t003/model", "t003/call:0"])
def test_a_second_refusal_is_a_decision_that_a_kill_does_not_repeat(
    tmp_path: Path, key: str
) -> None:
    repo = make_repo(tmp_path / "repo", {"a.txt": "a\n"})
    with Driver(tmp_path / "driver", repo, PLAYED) as driver:
        if key:
            answer = driver.order(die=at_step("after_commit", key))
            assert answer["signal"] == signal.SIGKILL
            said = driver.order(goal=1)["said"]
        else:
            said = driver.order(die=None)["said"]
        assert said["state"] == "complete"
        assert broken_invariants(driver.store) == []
        events = driver.store.rows("SELECT body FROM log WHERE kind = 'decision' AND attempt > 0")
        bodies = [json.loads(row["body"]) for row in events]
        assert len(bodies) == 1
        told = " ".join(str(value) for value in bodies[0].values())
        assert "how to edit a.txt?" in told
        assert "2 search_replace edits refused: EDIT_NOT_FOUND" in told
        cli = Cli(repo, {"HOLDFAST_HOME": str(driver.home)})
        replayed = cli("replay", said["tasks"][0]["attempt"], "--json")
        assert replayed.code == 0, replayed.out
