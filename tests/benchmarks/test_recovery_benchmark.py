"""The recovery benchmark kills, resumes and counts right; how fast anything is is for its table."""

import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def recovery(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import recovery

    return recovery


@pytest.mark.slow
def test_ours_goes_on_with_the_step_in_flight_again_and_no_other() -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(BENCHMARKS / "recovery.py")),
            *("--quick", "--json", "--only", "holdfast"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert set(found) == {"machine", "commit", "rows"}
    rows = {row["metric"]: row for row in found["rows"]}
    assert rows["recovery_s"]["unit"] == "s"
    assert rows["recovery_s"]["value"] > 0
    assert (rows["lost_steps"]["value"], rows["repeated_steps"]["value"]) == (0, 1)
    assert rows["ollama_import_ms"]["value"] > 0
    assert not list(BENCHMARKS.glob(".recovery-*")), "what it measured on is left behind"


def test_lost_and_repeated_steps_are_told_apart(recovery: Any) -> None:
    before = [(0, 1.0), (1, 1.1), (2, 1.2)]
    kept = recovery.judge(before, [(2, 2.1), (3, 2.2)], 4, 2.0)
    assert (round(kept.seconds, 3), kept.lost, kept.repeated) == (0.2, 0, 1)
    lost = recovery.judge(before, [(0, 2.1), (1, 2.2), (2, 2.3), (3, 2.4)], 4, 2.0)
    assert (round(lost.seconds, 3), lost.lost, lost.repeated) == (0.4, 2, 3)


def test_a_run_that_leaves_a_step_out_is_not_measured(recovery: Any) -> None:
    with pytest.raises(SystemExit, match="missing"):
        recovery.judge([(0, 1.0), (1, 1.1)], [(3, 2.1)], 4, 2.0)


GOES_ON = """
import json, os, sys
from pathlib import Path
import recovery_child
processes = []
def hear(event, arguments):
    if event == "subprocess.Popen":
        processes.append([os.fsdecode(word) for word in arguments[1]])
sys.addaudithook(hear)
def step(number):
    if number > 3:
        sys.stdout.write(json.dumps({"modules": [*sys.modules], "processes": processes}))
        sys.stdout.flush()
        os._exit(0)
    return "again"
recovery_child.holdfast(Path(sys.argv[1]), 6, step)
"""
# What makes a plan, a bundle or a merge, and what judges or shows one: no recorded step needs it.
LATE = """
    adapters.diffs adapters.runners adapters.scanner adapters.models.hosted adapters.models.openai
    agent.briefing agent.planner agent.replay context.codemap context.history context.python
    engine.attempts engine.library lang trace.gitdiff web worker.gather worker.library
    worker.merging worker.summaries
"""


def test_going_on_loads_and_starts_only_what_the_first_step_needs(
    recovery: Any, tmp_path: Path
) -> None:
    """Each module costs about a millisecond of a recovery and each process three."""
    recovery._repository(tmp_path / "repo")
    assert recovery._life("holdfast", tmp_path, 6, 3) == -signal.SIGKILL
    done = subprocess.run(
        [sys.executable, "-c", GOES_ON, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(BENCHMARKS)},
    )
    told = json.loads(done.stdout)
    late = [f"holdfast.{name}" for name in LATE.split()]
    assert all(map(find_spec, late)), "one of them has another name by now"
    assert set(late) & set(told["modules"]) == set()
    assert {"holdfast.worker.attempt", "holdfast.agent.loop"} <= set(told["modules"])
    verbs = ("rev-parse", "ls-tree", "ls-files", "read-tree", "clean")
    processes = [
        next(filter(words.__contains__, verbs), words[0].rpartition("/")[2])
        for words in told["processes"]
    ]
    assert processes[0] == "bwrap", "it is waited for last"
    assert sorted(processes[1:]) == sorted(verbs), "and nothing twice"
