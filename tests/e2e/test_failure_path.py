"""Ends that are no success: each with its exit code, its class, its evidence, and the work kept."""

from pathlib import Path
from typing import Any

import pytest

from e2e.support import (
    Cli,
    Done,
    broken_invariants,
    calls,
    git,
    make_repo,
    says,
    script,
    write_script,
)


def writes(path: str, content: str) -> dict[str, Any]:
    return calls(("write_file", {"path": path, "content": content}))


WRITE = writes("b.txt", "b\n")
DONE = says("It is done.")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(make_repo(tmp_path / "repo", {"a.txt": "a\n"}))


def run(cli: Cli, played: dict[str, Any], *flags: str, **environ: str) -> Done:
    model = write_script(cli.repo.parent / "model.json", played)
    done = cli("run", "Make b.txt", "--model", model, "--json", *flags, environ=environ)
    assert done.objects[-1]["type"] == "result", done.err
    assert broken_invariants(cli.store) == []
    return done


def test_a_disk_that_is_full_under_a_workspace_is_tried_again_and_no_fault_of_the_task(
    cli: Cli,
) -> None:
    private = cli.repo / ".holdfast" / "tasks" / "1" / "git"
    private.mkdir(parents=True, mode=0o700)
    (private / "HEAD.lock").symlink_to("/dev/full")
    done = run(cli, script(WRITE, DONE), "--check", "test -f b.txt")
    task = done.result["tasks"][0]
    assert (done.code, task["failure"], task["reason"]) == (4, "transient", "exhausted")
    assert "No space left" in task["detail"]
    assert task["attempt"] == "1.3"
    (private / "HEAD.lock").unlink()
    assert cli("goal", "reopen", "1").code == 0
    assert cli("resume").code == 0


def test_a_check_that_cannot_pass_fails_the_goal_with_evidence_and_keeps_the_work(cli: Cli) -> None:
    hopeless = script(WRITE, *[DONE] * 9)
    done = run(cli, hopeless, "--check", "test -f b.txt", "--check", "echo so bad >&2; exit 7")
    assert done.code == 1
    result = done.result
    assert (result["state"], result["outcome"], result["reason"]) == (
        "failed",
        "failed",
        "checks_failed",
    )
    task = result["tasks"][0]
    assert (task["state"], task["failure"]) == ("failed", "logic")
    assert "exit code 7" in task["detail"]
    assert task["done"] == ["test -f b.txt: passed"]
    verdicts = {check["command"]: check for check in result["checks"]}
    assert verdicts["test -f b.txt"]["verdict"] == "pass"
    bad = verdicts["echo so bad >&2; exit 7"]
    assert (bad["verdict"], bad["exit_code"], bad["output"]) == ("fail", 7, "so bad")
    assert git(cli.repo, "show", f"{result['branch']}:b.txt") == "b", "the work is preserved"
    message = git(cli.repo, "log", "-1", "--format=%B", result["branch"])
    assert "Kept work of an attempt that ended failed: checks_failed" in message
    assert f"Holdfast-Attempt: {task['attempt']}" in message
    takes = cli.store.rows("SELECT number FROM takes")
    assert len(takes) == 2, "a logic failure is thought through once more before the goal fails"
    asked = cli.store.one("SELECT count(*) FROM steps WHERE kind = 'model' AND take = 1")
    assert asked == 2 + 2, "two corrective turns in each take"
    failures = cli.store.rows("SELECT body FROM log WHERE kind = 'failure'")
    assert len(failures) == 2


def test_a_check_whose_program_is_absent_never_passes(cli: Cli) -> None:
    done = run(cli, script(WRITE, *[DONE] * 9), "--check", "no-such-program --version")
    assert done.code == 1
    assert [check["verdict"] for check in done.result["checks"]] == ["absent"]


def test_an_absent_check_beside_a_passing_one_never_passes(cli: Cli) -> None:
    flags = ("--check", "test -f b.txt", "--check", "no-such-program")
    done = run(cli, script(WRITE, *[DONE] * 9), *flags)
    assert done.code == 1
    assert sorted(check["verdict"] for check in done.result["checks"]) == ["absent", "pass"]


def test_a_goal_without_a_check_is_unverified(cli: Cli) -> None:
    done = run(cli, script(WRITE, DONE))
    assert (done.code, done.result["outcome"]) == (5, "unverified")
    assert done.result["state"] == "complete"
    assert done.result["checks"] == []


def read(n: int) -> dict[str, Any]:
    return calls(("read_file", {"path": "a.txt", "start_line": n}))


def probing(n: int) -> dict[str, Any]:
    return calls(("search_files", {"pattern": f"nothing-{n}"}))


LIMITS: dict[str, tuple[dict[str, Any], tuple[str, ...], dict[str, str]]] = {
    "turns": (
        script(WRITE, *[calls(("write_file", {"path": f"{n}", "content": ""})) for n in range(9)]),
        ("--max-turns", "4"),
        {},
    ),
    "repetition": (script(WRITE, *[read(1)] * 9), (), {}),
    "stall": (
        script(WRITE, *[probing(n) for n in range(19)]),
        (),
        {"HOLDFAST_STALL_LIMIT": "3"},
    ),
    "tokens": (script(WRITE, *[read(n) for n in range(1, 9)]), ("--budget-tokens", "4000"), {}),
    "wall_clock": (
        script(WRITE, {**read(1), "delay_s": 0.5}, *[read(n) for n in range(2, 9)]),
        (),
        {"HOLDFAST_ATTEMPT_S": "0.4"},
    ),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_an_exhausted_limit_ends_partial_with_done_remaining_and_the_work(
    cli: Cli, limit: str
) -> None:
    played, flags, environ = LIMITS[limit]
    checks = ("--check", "test -f b.txt", "--check", "test -f never")
    done = run(cli, played, *flags, *checks, **environ)
    assert (done.code, done.result["outcome"]) == (4, "partial"), done.err
    assert (done.result["state"], done.result["reason"]) == ("failed", "exhausted")
    task = done.result["tasks"][0]
    assert (task["failure"], task["outcome"]) == ("budget", "partial")
    assert task["done"] == ["test -f b.txt: passed"]
    assert task["remaining"] == ["test -f never: failed with exit code 1"]
    assert cli.store.one("SELECT reason FROM attempts ORDER BY number DESC") == limit
    assert git(cli.repo, "show", f"{done.result['branch']}:b.txt") == "b"
    replayed = cli("replay", task["attempt"], "--json")
    assert replayed.code == 0, replayed.out


def test_an_exhausted_budget_in_money_ends_partial(cli: Cli) -> None:
    model = write_script(cli.repo.parent / "model.json", script(WRITE, *[read(1), read(2)] * 9))
    cli.home.mkdir()
    (cli.home / "prices.toml").write_text(f'"{model}" = {{ in = "1000", out = "1000" }}\n')
    done = cli(
        *("run", "Make b.txt", "--model", model, "--budget-usd", "5", "--json"),
        *("--check", "test -f b.txt"),
    )
    assert (done.code, done.result["outcome"]) == (4, "partial"), done.err
    assert cli.store.one("SELECT reason FROM attempts") == "usd"
    one_call = max(row["cost_nusd"] or 0 for row in cli.store.steps().values())
    assert 0 < done.result["usage"]["cost_usd"] * 1e9 <= 5e9 + one_call, "I7"


def test_without_the_limit_the_same_goal_passes(cli: Cli) -> None:
    played = script(WRITE, *[read(n) for n in range(1, 5)], DONE)
    assert run(cli, played, "--max-turns", "4", "--check", "test -f b.txt").code == 4
    assert run(cli, played, "--max-turns", "6", "--check", "test -f b.txt").code == 0


def test_a_failed_goal_is_reopened_and_goes_on_with_what_succeeded(cli: Cli) -> None:
    plan = cli.repo.parent / "plan.toml"
    plan.write_text(
        '[[tasks]]\nkey = "one"\nprompt = "Make b.txt"\nchecks = ["test -f b.txt"]\n'
        '[[tasks]]\nkey = "two"\nprompt = "Make c.txt"\nrequires = ["one"]\n'
        'checks = ["grep good c.txt"]\n'
    )
    again = {"when": "exit code 1", "replies": [writes("c.txt", "good\n"), DONE]}
    rules = [
        {"when": "# Task: one\n", "replies": [WRITE, DONE]},
        again,
        {"when": "# Task: two\n", "replies": [writes("c.txt", "bad\n"), *[DONE] * 3]},
    ]
    done = run(cli, {"rules": rules}, "--plan", str(plan), HOLDFAST_MAX_TAKES="1")
    assert (done.code, done.result["outcome"]) == (1, "failed")
    branch = done.result["branch"]
    kept = git(cli.repo, "rev-parse", branch)
    assert git(cli.repo, "show", f"{branch}:c.txt") == "bad"
    assert cli("goal", "show", "1").out.count("holdfast goal reopen 1") == 1
    assert cli("goal", "reopen", "1", "--budget-usd", "nan").code == 2
    for _ in range(2):
        reopened = cli("goal", "reopen", "1", "--reason", "once more", "--json")
        assert (reopened.code, reopened.result["state"]) == (0, "executing"), reopened.err
    assert git(cli.repo, "rev-parse", branch) == kept, "kept until other work is accepted"
    resumed = cli("resume", "1", "--json")
    assert (resumed.code, resumed.result["outcome"]) == (0, "passed"), resumed.err
    assert git(cli.repo, "log", "--format=%s", branch).splitlines()[:2] == ["two", "one"]
    assert git(cli.repo, "show", f"{branch}:c.txt") == "good"
    assert [task["attempt"] for task in resumed.result["tasks"]] == ["1.1", "2.2"]
    assert cli("replay", "2.2", "--json").result["equal"] is True
    assert cli("goal", "reopen", "1").code == 2
    assert cli("undo", "1", "--json").result["tree_equal"] is True
    assert broken_invariants(cli.store) == []
