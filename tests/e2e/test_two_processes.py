"""Several processes on one store: side by side, taking over from the dead at once, from the
stopped only by time, and never both.
"""

import os
import signal
from pathlib import Path

import pytest

from e2e.support import (
    Cli,
    Driver,
    at_step,
    broken_invariants,
    calls,
    ended,
    git,
    make_repo,
    says,
    script,
    stopped,
    tree,
    until,
    write_script,
)
from e2e.three_tasks import FILES, GOAL, PLAIN_SCRIPT, SCRIPT, write_plan

LEASE_S = 2.0


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


def test_two_runs_beside_each_other_both_pass(repo: Path, tmp_path: Path) -> None:
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    cli, plan = Cli(repo), str(write_plan(tmp_path))
    both = [cli.start("run", GOAL, "--plan", plan, "--model", model, "--json") for _ in range(2)]
    results = [ended(process) for process in both]
    assert [done.code for done in results] == [0, 0], results
    assert sorted(done.result["goal"] for done in results) == [1, 2]
    assert len({tree(repo, done.result["branch"]) for done in results}) == 1
    assert broken_invariants(cli.store) == []


def test_a_resume_beside_a_living_run_works_with_it_and_repeats_nothing(
    repo: Path, tmp_path: Path
) -> None:
    rules = [
        {**rule, "replies": [{**each, "delay_s": 0.1} for each in rule["replies"]]}
        for rule in PLAIN_SCRIPT["rules"]
    ]
    model = write_script(tmp_path / "model.json", {"rules": rules})
    cli = Cli(repo)
    run = cli.start("run", GOAL, "--plan", str(write_plan(tmp_path)), "--model", model, "--json")
    until(lambda: cli.store.goals(), "the goal began")
    resumed = cli("resume", "1", "--json")
    done = ended(run)
    assert (done.code, resumed.code) == (0, 0), (done, resumed)
    assert broken_invariants(cli.store) == []
    attempts = cli.store.rows("SELECT * FROM attempts WHERE outcome <> 'passed'")
    assert attempts == [], "a living run's attempt was taken away"
    assert len(cli.store.rows("SELECT * FROM attempts")) == 3


def two_drivers(tmp_path: Path, repo: Path, lease_s: float = LEASE_S) -> tuple[Driver, Driver]:
    """Two processes' worth of drivers on one store, with one ledger."""
    wish = {
        "plan": str(write_plan(tmp_path)),
        "goal": GOAL,
        "settings": {"lease_s": lease_s},
    }
    first = Driver(tmp_path / "first", repo, SCRIPT, **wish)
    second = Driver(tmp_path / "second", repo, SCRIPT, **wish)
    second.move(tmp_path / "first", repo, answer=tmp_path / "second" / "answer.json")
    return first, second


@pytest.mark.parametrize(
    "where",
    [
        ("after_intend", "t001/call:0"),
        ("mid_effect", "t002/call:0"),
        ("after_effect", "t002/call:0"),
        ("after_commit", "t002/model"),
    ],
    ids=" at ".join,
)
def test_a_stopped_process_that_goes_on_too_late_is_refused(
    repo: Path, tmp_path: Path, where: tuple[str, str]
) -> None:
    first, second = two_drivers(tmp_path, repo)
    with first, second:
        zombie = first.begin(die={**at_step(*where), "signal": "stop"})
        until(lambda: stopped(zombie), "the process stopped itself")
        other = second.begin(goal=1)
        until(
            lambda: first.store.rows("SELECT 1 FROM attempts WHERE outcome = 'expired'"),
            "the silent lease expired",
        )
        lease = first.store.rows("SELECT * FROM attempts WHERE outcome = 'expired'")[0]
        assert lease["reason"] == "silent"
        assert lease["ended_ms"] >= lease["lease_until_ms"], "taken before its time was over"
        os.kill(zombie, signal.SIGCONT)
        results = [first.finish(), second.finish()]
        assert other != zombie
        assert [answer["signal"] for answer in results] == [0, 0]
        assert results[1]["said"]["outcome"] == "passed", results
        assert broken_invariants(first.store) == []
        states = first.store.rows("SELECT DISTINCT state FROM tasks")
        assert states == [{"state": "succeeded"}]
        assert len(first.store.rows("SELECT 1 FROM attempts WHERE outcome = 'passed'")) == 3
        expired = [
            row for row in first.store.rows("SELECT * FROM attempts") if row["outcome"] == "expired"
        ]
        assert len(expired) == 1
        late = [
            row
            for row in first.store.done().values()
            if row["attempt"] == expired[0]["number"]
            and row["task_id"] == expired[0]["task_id"]
            and row["done_ms"] > expired[0]["ended_ms"]
        ]
        assert late == [], "a write of the zombie was accepted"
    assert git(repo, "show", "holdfast/goal-1:list.txt").split() == ["top", "a", "middle", "z"]


def test_a_living_process_takes_over_from_a_stopped_one_the_moment_it_dies(
    repo: Path, tmp_path: Path
) -> None:
    """With leases of an hour: stopped, it keeps its task; killed, it loses it at once."""
    first, second = two_drivers(tmp_path, repo, lease_s=3600.0)
    with first, second:
        process = first.begin(die={**at_step("mid_effect", "t002/call:0"), "signal": "stop"})
        until(lambda: stopped(process), "the process stopped itself")
        second.begin(goal=1)
        locks = first.home / "run"
        until(lambda: len(list(locks.glob("*.lock"))) == 2, "the other one lives")
        attempts = "SELECT task_id, number, outcome, reason FROM attempts"
        assert [row["outcome"] for row in first.store.rows(attempts)] == [""]
        os.kill(process, signal.SIGKILL)
        assert first.finish()["signal"] == signal.SIGKILL
        assert second.finish()["said"]["outcome"] == "passed"
        expired = [row for row in first.store.rows(attempts) if row["outcome"] == "expired"]
        assert [row["reason"] for row in expired] == ["died"]
        assert broken_invariants(first.store) == []
        keys = [call["key"] for call in first.called() if call["tool"] == "write_file"]
        assert keys == ["t002/call:0"] * 2, "only what was in flight happened again"


def test_an_attempt_that_has_settled_shows_its_work_without_a_lease(
    repo: Path, tmp_path: Path
) -> None:
    """A lease renewed every few milliseconds is looked at while the branch is being shown."""
    model = write_script(tmp_path / "model.json", PLAIN_SCRIPT)
    cli, plan = Cli(repo, {"HOLDFAST_LEASE_S": "0.01"}), str(write_plan(tmp_path))
    done = cli("run", GOAL, "--plan", plan, "--model", model, "--json")
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    assert git(repo, "rev-parse", done.result["branch"]) == cli.store.one(
        "SELECT branch_commit FROM goals"
    )


def test_a_dead_process_loses_its_lease_at_once(repo: Path, tmp_path: Path) -> None:
    """With a lease of an hour, only the lock can have told."""
    wish = {"settings": {"lease_s": 3600.0}}
    played = script(calls(("write_file", {"path": "x", "content": "x"})), says("Done."))
    with Driver(tmp_path / "driver", repo, played, **wish) as driver:
        died = driver.order(die=at_step("mid_effect", "t001/call:0"))
        assert died["signal"] == signal.SIGKILL
        assert driver.order(goal=1)["said"]["state"] == "complete"
        rows = driver.store.rows("SELECT outcome, reason FROM attempts ORDER BY number")
    assert rows == [
        {"outcome": "expired", "reason": "died"},
        {"outcome": "unverified", "reason": ""},
    ]
