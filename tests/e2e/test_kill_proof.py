"""The kill proof: a 30-step goal survives SIGKILL at every boundary of every step.

A counting model server and a ledger of tool calls, both outside the process that dies, show that no
recorded call is made again and that at most the one in flight is, per kill. A read shares its
commit with the reply that asked for it, so with that reply the read is made again too.
"""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.support import (
    Driver,
    ModelServer,
    at_step,
    broken_invariants,
    calls,
    make_repo,
    model_server,
    says,
    script,
    tree,
)

FILES = {"README.md": "# Thing\n", "src/a.py": "one = 1\ntwo = 2\n", ".gitignore": "*.tmp\n"}
CHECK = "test -s last.txt && grep -q 'two = 3' src/a.py && test $(wc -l < log.txt) = 3"
READS = ("t001", "t002", "t006", "t009", "t011")
STEPS = script(
    calls(("list_directory", {"path": "."})),
    calls(("read_file", {"path": "src/a.py"})),
    calls(("write_file", {"path": "b.txt", "content": "b\n"})),
    calls(("note", {"text": "first"})),
    calls(("run_command", {"command": "echo one >> log.txt; echo x > cache.tmp"})),
    calls(("read_file", {"path": "log.txt"})),
    calls(("edit_file", {"path": "src/a.py", "edits": [{"search": "2", "replace": "3"}]})),
    calls(("note", {"text": "second"})),
    calls(("search_files", {"pattern": "two"})),
    calls(("run_command", {"command": "echo two >> log.txt; mkdir -p d; mv b.txt d/c.txt"})),
    calls(("read_file", {"path": "d/c.txt"})),
    calls(("note", {"text": "third"})),
    calls(("run_command", {"command": "echo three >> log.txt"})),
    calls(("write_file", {"path": "last.txt", "content": "last\n"})),
    says("All is done."),
)
MODEL_STEPS = [f"t{turn:03}/model" for turn in range(1, 16)]
READ_STEPS = {f"{turn}/call:0" for turn in READS}
TOOL_STEPS = [f"t{turn:03}/call:0" for turn in range(1, 15)]
CHECK_STEP = "v01/check:0"
ALL = [key for pair in zip(MODEL_STEPS, TOOL_STEPS, strict=False) for key in pair]
ALL += [MODEL_STEPS[-1], CHECK_STEP]
EFFECTS = [key for key in ALL if key not in READ_STEPS]
BOUNDARIES = {
    "before_intend": EFFECTS,
    "after_intend": EFFECTS,
    "mid_effect": ALL,
    "after_effect": EFFECTS,
    "after_commit": EFFECTS,
}


class Proof:
    """One goal, worked on by one process after the other, each but the last killed on the way."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.repo = make_repo(folder / "repo", FILES)
        self.server = server
        self.driver = Driver(
            folder / "driver",
            self.repo,
            STEPS,
            model="ollama:scripted",
            environ=server.environ(),
            checks=[CHECK],
        )
        self.kills = 0
        self._seen_asked = len(server.asked())
        self.first_asked = self._seen_asked
        self._seen_called = 0

    def live(self, die: dict[str, Any] | None, **order: str) -> dict[str, Any]:
        """One process. Whatever was recorded before it began must not happen in it."""
        store, began = self.driver.store, self.kills > 0
        before = store.done() if began else {}
        answer = self.driver.order(die=die, **({"goal": 1} if began else {}), **order)
        recorded = {key[2] for key in before}
        asked = self.server.asked()[self._seen_asked :]
        again = [call["turn"] for call in asked if f"t{call['turn'] + 1:03}/model" in recorded]
        assert not again, f"model calls that were recorded were made again: turns {again}"
        called = self.driver.called()[self._seen_called :]
        twice = [call["key"] for call in called if call["key"] in recorded]
        assert not twice, f"tool calls that were recorded were made again: {twice}"
        self._seen_asked += len(asked)
        self._seen_called += len(called)
        if die is not None:
            assert answer["signal"] == signal.SIGKILL, f"{die} was never reached: {answer}"
            self.kills += 1
        after = store.done()
        changed = [key for key, row in before.items() if after.get(key) != row]
        assert not changed, f"done steps changed: {changed}"
        assert broken_invariants(store) == []
        return answer

    def finish(self) -> dict[str, Any]:
        answer = self.live(None)
        assert answer["signal"] == 0
        result: dict[str, Any] = answer["said"]
        assert (result["state"], result["outcome"]) == ("complete", "passed"), result
        store = self.driver.store
        assert store.rows("SELECT * FROM tasks WHERE state <> 'succeeded'") == []
        return result

    def repeated(self) -> Counter[str]:
        """How often each effect happened more than once."""
        happened = Counter(call["key"] for call in self.driver.called())
        asked = self.server.asked()[self.first_asked :]
        happened.update(f"t{call['turn'] + 1:03}/model" for call in asked)
        assert set(happened) == set(ALL), "not every step happened"
        return Counter({key: count - 1 for key, count in happened.items() if count > 1})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    with model_server(STEPS, tmp_path_factory.mktemp("model")) as found:
        yield found


@pytest.fixture(scope="module")
def uninterrupted(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The final tree of a run that nobody kills."""
    proof = Proof(tmp_path_factory.mktemp("whole"), server)
    with proof.driver:
        result = proof.finish()
        assert not proof.repeated()
        assert len(proof.driver.store.steps()) == len(ALL) == 30
    return tree(proof.repo, result["branch"])


@pytest.mark.slow
@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_a_goal_killed_at_one_boundary_of_every_step_loses_and_repeats_nothing(
    boundary: str, server: ModelServer, uninterrupted: str, tmp_path: Path
) -> None:
    proof = Proof(tmp_path, server)
    with proof.driver:
        for key in BOUNDARIES[boundary]:
            proof.live(at_step(boundary, key))
        result = proof.finish()
    assert tree(proof.repo, result["branch"]) == uninterrupted
    again = {key: times for key, times in proof.repeated().items() if key not in READ_STEPS}
    assert sum(again.values()) <= proof.kills == len(BOUNDARIES[boundary])
    if boundary == "after_intend":
        assert not proof.repeated(), "nothing was in flight yet"
    assert sorted(set(proof.driver.noted())) == ["first", "second", "third"]


def test_the_proof_would_see_a_recorded_call_made_again(
    server: ModelServer, tmp_path: Path
) -> None:
    proof = Proof(tmp_path, server)
    with proof.driver:
        proof.live(at_step("after_commit", "t004/call:0"))
        with pytest.raises(AssertionError, match=r"made again: turns .0, 1, 2, 3"):
            proof.live(None, mutant="amnesia")
        called = [call["key"] for call in proof.driver.called()]
        assert called.count("t004/call:0") == 2, "the ledger saw it as well"


def test_the_proof_would_see_what_a_killed_step_left(
    server: ModelServer, uninterrupted: str, tmp_path: Path
) -> None:
    proof = Proof(tmp_path, server)
    with proof.driver:
        proof.live(at_step("after_effect", "t003/call:0"))
        proof.live(at_step("after_effect", "t010/call:0"), mutant="litter")
        answer = proof.live(None, mutant="litter")
    assert tree(proof.repo, answer["said"]["branch"]) != uninterrupted
