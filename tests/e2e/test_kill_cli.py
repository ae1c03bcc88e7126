"""The real command line, killed by SIGKILL at random moments until its goal is done.

Moments are drawn from a seed over the time a whole run takes, so that they fall anywhere: imports,
claims, replies, commands, commits, the settling of a task. Commands and model calls are counted
from outside: by the model server's log and by what the record says afterwards.
"""

import random
import signal
import subprocess
import time
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from e2e.support import Cli, ModelServer, broken_invariants, make_repo, model_server, tree
from e2e.three_tasks import FILES, GOAL, PLAIN_SCRIPT, write_plan

KILLS = 60
SHARES = 4
SEED = 20261121


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_goals_killed_at_random_moments_end_as_if_nobody_had(tmp_path: Path, share: int) -> None:
    chance = random.Random(f"{SEED}:{share}")
    with model_server(PLAIN_SCRIPT, tmp_path / "model") as server:
        proof = Proof(tmp_path, server)
        kills = 0
        while kills < KILLS // SHARES:
            kills += proof.one_goal(chance)


class Proof:
    """Goals, one after the other in repositories of their own, against one whole run."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self._folder, self._server, self._made = folder, server, count(1)
        plan = str(write_plan(folder))
        self._run = ("run", GOAL, "--plan", plan, "--model", "ollama:scripted", "--json")
        whole = self._fresh()
        started = time.monotonic()
        done = whole(*self._run)
        self._span_s = time.monotonic() - started
        assert done.code == 0, done.err
        self._tree = tree(whole.repo, done.result["branch"])
        self._calls = len(server.asked())

    def one_goal(self, chance: random.Random) -> int:
        """Kill a goal's processes until one ends by itself; returns how many died."""
        cli, first, kills = self._fresh(), len(self._server.asked()), 0
        recorded: set[tuple[int, int]] = set()
        while True:
            seen = len(self._server.asked())
            process = cli.start(*(("resume", "1", "--json") if cli.store.goals() else self._run))
            died = killed(process, chance.uniform(0.15, 0.9) * self._span_s)
            again = [call for call in self._server.asked()[seen:] if named(call) in recorded]
            assert not again, f"recorded model calls were made again: {again}"
            if cli.store.goals():
                assert broken_invariants(cli.store) == []
                recorded = replies(cli)
            if not died:
                break
            kills += 1
        asked = Counter(named(call) for call in self._server.asked()[first:])
        assert sum(asked.values()) - len(asked) <= kills, "more than the one in flight"
        assert len(asked) == self._calls
        assert tree(cli.repo, "holdfast/goal-1") == self._tree
        assert cli.store.rows("SELECT 1 FROM tasks WHERE state <> 'succeeded'") == []
        assert cli.store.one("SELECT state FROM goals") == "complete"
        return kills

    def _fresh(self) -> Cli:
        """A goal may die often without progress here: the cap on that is proved elsewhere."""
        repo = make_repo(self._folder / f"repo-{next(self._made)}", FILES)
        return Cli(repo, {**self._server.environ(), "HOLDFAST_MAX_ATTEMPTS": "100"})


def replies(cli: Cli) -> set[tuple[int, int]]:
    """The recorded model calls as (task, turn)."""
    rows = [row for row in cli.store.done().values() if row["kind"] == "model"]
    return {(row["task_id"], int(row["key"][1:4])) for row in rows}


def killed(process: "subprocess.Popen[str]", after_s: float) -> bool:
    """SIGKILL a process after a while; False when it ended before."""
    try:
        process.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return True
    return process.returncode == -signal.SIGKILL


def named(call: dict[str, object]) -> tuple[int, int]:
    """The task (rules are in its order) and turn of a request."""
    rule, turn = str(call["rule"]), call["turn"]
    assert isinstance(turn, int)
    return int(rule.split()[1]) + 1, turn + 1
