"""A planned goal, killed by SIGKILL at random moments: planning, conflict, merge and goal checks.

The whole run proposes a wrong plan first, has two tasks side by side that change the same lines, a
merge, a task after it, a goal check that fails and the follow-up that mends it. Moments are drawn
from a seed over the time it takes. A kill may let one side finish before the other begins; then
nothing is in conflict, so what is compared is the end, not the way.
"""

import json
import random
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from e2e.support import (
    Cli,
    ModelServer,
    broken_invariants,
    calls,
    make_repo,
    model_server,
    says,
    tree,
)
from e2e.test_kill_cli import killed

KILLS = 20
SHARES = 2
SEED = 20261121
SLOTS = 2
FILES = {"list.txt": "a\nb\n", ".gitignore": "*.tmp\n"}


def row(key: str, **values: Any) -> dict[str, Any]:
    return {"key": key, "title": f"Task {key}", "prompt": f"Do {key}.", **values}


def shell(command: str) -> dict[str, Any]:
    return calls(("run_command", {"command": command}))


def rule(title: str, *replies: dict[str, Any]) -> dict[str, Any]:
    return {"when": f"# Task: {title}", "replies": list(replies)}


LEFT = row("left", files=["list.txt"], checks=["grep -q left list.txt"])
RIGHT = row("right", files=["list.txt"], checks=["grep -q right list.txt"])
AFTER = row("after", requires=["left", "right"], creates=["after.txt"], checks=["true"])
WRONG = {"tasks": [LEFT, RIGHT, {**AFTER, "files": ["gone.txt"]}]}
RIGHT_PLAN = {"tasks": [LEFT, RIGHT, AFTER]}
MERGED = ("write_file", {"path": "list.txt", "content": "a\nleft\nright\nb\n"})
SCRIPT = {
    "rules": [
        rule("Plan the goal", says(json.dumps(WRONG)), says(json.dumps(RIGHT_PLAN))),
        rule("Task left", shell("sed -i '1a left' list.txt"), says("Left.")),
        rule("Task right", shell("sed -i '1a right' list.txt"), says("Right.")),
        rule("Merge", calls(MERGED), says("Both.")),
        rule("Task after", calls(MERGED), shell("echo z > after.txt"), says("After.")),
        rule("Mend", shell("echo mended > mended.txt"), says("Mended.")),
    ]
}


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_planned_goals_killed_at_random_moments_reach_the_same_end(
    tmp_path: Path, share: int
) -> None:
    chance = random.Random(f"{SEED}:{share}")
    with model_server(SCRIPT, tmp_path / "model") as server:
        proof = Proof(tmp_path, server)
        kills = 0
        while kills < KILLS // SHARES:
            kills += proof.one_goal(chance)


class Proof:
    """Goals, one after the other in repositories of their own, against one whole run."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self._folder, self._server, self._made = folder, server, count(1)
        self._run = (
            *("run", "Order the list", "--agent-planning", "--slots", str(SLOTS)),
            *("--check", "test -f mended.txt", "--model", "ollama:scripted", "--json"),
        )
        whole = self._fresh()
        started = time.monotonic()
        done = whole(*self._run)
        self._span_s = time.monotonic() - started
        assert done.code == 0, done.err
        keys = {task["key"] for task in done.result["tasks"]}
        assert {"planning", "left", "right", "after", "verify", "verify-mend-1"} < keys
        assert keys & {"merge-left", "merge-right"}, "the whole run has a conflict"
        self._tree = tree(whole.repo, done.result["branch"])

    def one_goal(self, chance: random.Random) -> int:
        """Kill a goal's processes until one ends by itself; returns how many died."""
        cli, first, kills = self._fresh(), len(self._server.asked()), 0
        while True:
            line = ("resume", "1", "--json") if cli.store.goals() else self._run
            if not killed(cli.start(*line), chance.uniform(0.15, 0.9) * self._span_s):
                break
            kills += 1
            if cli.store.goals():
                assert broken_invariants(cli.store) == []
        asked = len(self._server.asked()) - first
        recorded = [row for row in cli.store.done().values() if row["kind"] == "model"]
        assert asked - len(recorded) <= kills * SLOTS, "more than the ones in flight"
        assert cli.store.rows("SELECT source, state FROM plans ORDER BY id") == [
            {"source": "planning", "state": "succeeded"},
            {"source": "model", "state": "succeeded"},
        ]
        assert cli.store.rows("SELECT 1 FROM tasks WHERE state <> 'succeeded'") == []
        assert cli.store.one("SELECT state FROM goals") == "complete"
        assert broken_invariants(cli.store) == []
        assert tree(cli.repo, "holdfast/goal-1") == self._tree
        return kills

    def _fresh(self) -> Cli:
        repo = make_repo(self._folder / f"repo-{next(self._made)}", FILES)
        return Cli(repo, {**self._server.environ(), "HOLDFAST_MAX_ATTEMPTS": "100"})
