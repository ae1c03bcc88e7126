"""Contracts of tasks on the real command line: each clause kept, and each breach named."""

import json
from collections.abc import Mapping
from itertools import accumulate
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

DONE = says("It is done.")
WRITE = calls(("write_file", {"path": "src/b.txt", "content": "b\n"}))
FILES = {"a.txt": "a\n", "docs/spec.md": "Two lines.\n", ".gitignore": "*.log\n"}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(make_repo(tmp_path / "repo", FILES))


def run(cli: Cli, played: Mapping[str, Any], *tasks: Mapping[str, Any], flags: Any = ()) -> Done:
    """A goal of these tasks, each with a key and a prompt of its own unless it says otherwise."""
    model = write_script(cli.repo.parent / "model.json", played)
    rows = [{"key": f"t{n}", "prompt": f"Do t{n}", **task} for n, task in enumerate(tasks, 1)]
    plan = cli.repo.parent / "plan.json"
    plan.write_text(json.dumps({"tasks": rows}), encoding="utf-8")
    done = cli("run", "Work", "--model", model, "--plan", str(plan), "--json", *flags)
    assert done.objects[-1]["type"] == "result", done.err
    assert broken_invariants(cli.store) == []
    for task in done.result["tasks"]:
        # One that ended before it was given a bundle has nothing to replay.
        if cli.store.rows(
            "SELECT 1 FROM takes WHERE task_id = ? AND bundle_sha256 <> ''", task["id"]
        ):
            replayed = cli("replay", task["attempt"], "--json").result
            assert replayed["equal"] is True, replayed
    return done


def asked(cli: Cli) -> int:
    return int(cli.store.one("SELECT count(*) FROM steps WHERE kind = 'model'"))


def prompt_of(cli: Cli, attempt: str) -> str:
    rows = cli("attempt", "show", attempt, "--json").result["journal"]
    first = next(row for row in rows if row["kind"] == "model")
    return json.dumps(first["request"], ensure_ascii=False)


def test_a_task_whose_preconditions_hold_begins_and_they_are_steps(cli: Cli) -> None:
    holds = {"preconditions": ["git_clean", "file_exists:a.txt", "test -f a.txt"]}
    done = run(cli, script(WRITE, DONE), {**holds, "checks": ["test -f src/b.txt"]})
    assert (done.code, done.result["outcome"]) == (0, "passed")
    steps = cli.store.rows("SELECT key, kind FROM steps ORDER BY position LIMIT 4")
    assert [(row["key"], row["kind"]) for row in steps] == [
        *((f"pre/check:{index}", "check") for index in range(3)),
        ("t001/model", "model"),
    ]
    assert [check["clause"] for check in done.result["checks"]] == ["check"]


def test_preconditions_alone_prove_nothing(cli: Cli) -> None:
    done = run(cli, script(WRITE, DONE), {"preconditions": ["true"]})
    assert (done.code, done.result["outcome"]) == (5, "unverified")


@pytest.mark.parametrize(
    ("line", "verdict", "words"),
    [
        ("file_exists:none.txt", "fail", "there is no such file"),
        ("exit 3", "fail", "failed with exit code 3"),
        ("no-such-program", "absent", "its program was not found"),
    ],
)
def test_a_precondition_that_does_not_hold_ends_the_task_before_a_model_is_asked(
    cli: Cli, line: str, verdict: str, words: str
) -> None:
    done = run(cli, script(DONE), {"preconditions": ["true", line], "checks": ["true"]})
    task = done.result["tasks"][0]
    assert (done.code, task["state"], task["outcome"]) == (1, "failed", "failed")
    assert (task["failure"], task["reason"]) == ("policy", "precondition_failed")
    assert task["detail"] == f"precondition {line}: {task['detail'].partition(': ')[2]}"
    assert words in task["detail"]
    assert [check["verdict"] for check in done.result["checks"]] == ["pass", verdict]
    assert (asked(cli), done.result["attempts"]) == (0, 1), "no retry can make it hold"


def test_a_shell_task_keeps_its_preconditions_too(cli: Cli) -> None:
    shell = {"kind": "shell", "command": "echo x > src.txt", "preconditions": ["false"]}
    done = run(cli, script(), shell)
    assert done.result["tasks"][0]["reason"] == "precondition_failed"
    assert "precondition false" in done.result["tasks"][0]["detail"]
    assert cli.store.rows("SELECT 1 FROM steps WHERE key = 'command'") == []


def test_postconditions_prove_the_end_and_are_named_when_they_fail(cli: Cli) -> None:
    good = {"postconditions": ["file_exists:src/b.txt"]}
    assert run(cli, script(WRITE, DONE), good).result["outcome"] == "passed"
    bad = {"checks": ["true"], "postconditions": ["file_exists:never"]}
    done = run(cli, script(WRITE, *[DONE] * 9), bad)
    task = done.result["tasks"][0]
    assert (task["failure"], task["reason"]) == ("logic", "postcondition_failed")
    assert task["detail"] == "postcondition file_exists:never: there is no such file"
    assert [check["clause"] for check in done.result["checks"]] == ["check", "postcondition"]


def test_inputs_are_files_and_outputs_of_requirements_told_by_name(cli: Cli) -> None:
    played = {
        "rules": [
            {"when": "Do t1", "replies": [says("The design is blue.")]},
            {"when": "Do t2", "replies": [DONE]},
        ]
    }
    inputs = {"spec": "docs/spec.md", "design": "task:t1"}
    done = run(cli, played, {}, {"requires": ["t1"], "inputs": inputs})
    assert done.result["outcome"] == "unverified"
    shown = prompt_of(cli, done.result["tasks"][1]["attempt"])
    assert "docs/spec.md (input spec)" in shown
    assert "Two lines." in shown
    assert "Task t1 (requires, input design: t1)" in shown
    assert "The design is blue." in shown


def test_an_input_that_is_not_there_ends_the_task_before_a_model_is_asked(cli: Cli) -> None:
    done = run(cli, script(DONE), {"inputs": {"spec": "docs/none.md"}})
    task = done.result["tasks"][0]
    assert (task["failure"], task["reason"]) == ("policy", "missing_input")
    assert "its input 'spec', but docs/none.md gives no text" in task["detail"]
    assert asked(cli) == 0
    silent = {"kind": "shell", "command": "true"}
    done = run(cli, script(DONE), silent, {"requires": ["t1"], "inputs": {"x": "task:t1"}})
    assert done.result["tasks"][1]["reason"] == "missing_input", "an empty output is none"


EFFECTS = {"effects": ["src/**"], "checks": ["true"]}
OUTSIDE = [
    ("write_file", {"path": "a.txt", "content": "no"}, "PATH_OUTSIDE_EFFECTS"),
    ("write_file", {"path": "src/../a.txt", "content": "no"}, "PATH_OUTSIDE_EFFECTS"),
    ("write_file", {"path": "/workspace/A.TXT", "content": "no"}, "PATH_OUTSIDE_EFFECTS"),
    ("write_file", {"path": "x.log", "content": "no"}, "PATH_OUTSIDE_EFFECTS"),
    (
        "write_file",
        {"path": "new/x", "content": "no", "create_dirs": True},
        "PATH_OUTSIDE_EFFECTS",
    ),
    (
        "edit_file",
        {"path": "a.txt", "edits": [{"search": "a", "replace": "b"}]},
        "PATH_OUTSIDE_EFFECTS",
    ),
    ("run_command", {"command": "echo no > a.txt"}, "OUTSIDE_EFFECTS"),
    ("run_command", {"command": "(echo no > b.txt) & wait; rm a.txt; exit 3"}, "OUTSIDE_EFFECTS"),
    ("run_command", {"command": "ln -s ../a.txt src/l; echo no > src/l"}, "OUTSIDE_EFFECTS"),
]


@pytest.mark.parametrize(("tool", "arguments", "code"), OUTSIDE)
def test_a_write_outside_the_effects_is_refused_or_taken_back_with_the_clause_named(
    cli: Cli, tool: str, arguments: dict[str, Any], code: str
) -> None:
    done = run(cli, script(WRITE, calls((tool, arguments)), DONE), EFFECTS)
    assert done.result["outcome"] == "passed"
    name = done.result["tasks"][0]["attempt"]
    journal = cli("attempt", "show", name, "--json").result["journal"]
    second = next(row for row in journal if row["key"] == "t002/call:0")["result"]
    assert second["error"]["code"] == code
    assert "effects of this task are src/**" in second["error"]["message"]
    changed = git(cli.repo, "diff", "--name-only", "main", done.result["branch"])
    assert changed == "src/b.txt", "only what the contract allows"


def test_through_a_link_out_of_the_effects_a_named_path_is_refused(cli: Cli) -> None:
    link = calls(("run_command", {"command": "mkdir -p src && ln -s ../a.txt src/l"}))
    write = calls(("write_file", {"path": "src/l", "content": "no"}))
    done = run(cli, script(link, write, DONE), EFFECTS)
    assert git(cli.repo, "show", f"{done.result['branch']}:a.txt") == "a"


def test_a_shell_task_that_writes_outside_fails_and_leaves_nothing(cli: Cli) -> None:
    command = "mkdir src; echo x > src/x; echo y > y"
    done = run(cli, script(), {"kind": "shell", "command": command, "effects": ["src"]})
    task = done.result["tasks"][0]
    assert (done.code, task["failure"], task["reason"]) == (1, "policy", "outside_effects")
    assert task["detail"] == "it wrote y: effects of this task are src"
    assert git(cli.repo, "branch", "--list", done.result["branch"]) == "", "there is no work"
    fine = {"kind": "shell", "command": command, "effects": ["src", "y"], "checks": ["test -f y"]}
    assert run(cli, script(), fine).result["outcome"] == "passed"


def test_no_effects_allow_no_write_and_an_absent_clause_allows_any(cli: Cli) -> None:
    nothing = run(cli, script(WRITE, DONE), {"effects": [], "postconditions": ["git_clean"]})
    assert nothing.result["outcome"] == "passed"
    anything = run(cli, script(WRITE, DONE), {"checks": ["test -f src/b.txt"]})
    assert anything.result["outcome"] == "passed"


def test_what_a_task_says_of_itself_reaches_store_bundle_and_prompt_unchanged(cli: Cli) -> None:
    said = {
        "context": "A shop's till.",
        "success_criteria": ["it adds up", "no float is used"],
        "file_hints": [{"path": "src/till.py", "reason": "the sum"}, {"path": "a.txt"}],
        "effects": ["src/**"],
        "tier": "complex",
        "priority": "urgent",
        "preconditions": ["file_exists:a.txt"],
        "checks": ["true"],
        "postconditions": ["git_clean"],
    }
    done = run(cli, script(DONE), said)
    task = cli("task", "show", "1", "--json").result
    hints = [{"path": "src/till.py", "reason": "the sum"}, {"path": "a.txt", "reason": ""}]
    assert {key: task[key] for key in said} == {**said, "file_hints": hints}
    assert (task["policy"]["max_turns"], task["policy"]["attempt_s"]) == (20, 1800.0)
    assert (task["tier_said"], task["tier_guess"]) == ("complex", "standard")
    again = cli("plan", "export", "1", "--json").result["tasks"][0]
    assert {key: again[key] for key in said} == {**said, "file_hints": hints}
    shown = prompt_of(cli, done.result["tasks"][0]["attempt"])
    for text in ("Context: A shop's till.", "- no float is used", "- src/till.py: the sum"):
        assert text in shown
    assert "You may write only `src/**`" in shown
    assert "- no file differs from what the task began with" in shown
    text = cli("task", "show", "1").out
    assert "complex (20 turns, 1800 s)" in text
    assert "priority urgent" in text
    assert "the heuristic says standard" in text


def test_the_loop_has_the_turns_of_its_tier_unless_a_flag_says_otherwise(cli: Cli) -> None:
    look = [calls(("read_file", {"path": "a.txt", "start_line": n})) for n in range(1, 30)]
    model = write_script(cli.repo.parent / "model.json", script(*look))
    environ = {"HOLDFAST_STALL_LIMIT": "99"}
    for flags, turns in (
        (("--tier", "trivial"), 5),
        ((), 10),
        (("--tier", "complex"), 20),
        (("--tier", "complex", "--max-turns", "3"), 3),
    ):
        done = cli("run", "Look at it", "--model", model, "--json", *flags, environ=environ)
        task = done.result["tasks"][0]
        assert (done.code, task["detail"]) == (4, f"{turns} turns are used up")
    refused = cli("run", "x", "--plan", "p.toml", "--tier", "trivial", "--model", model)
    assert (refused.code, "say it per task" in refused.err) == (2, True)


def test_tasks_go_by_their_lane(cli: Cli) -> None:
    lanes = ("low", "normal", "urgent", "high")
    tasks = [{"kind": "shell", "command": "true", "priority": lane} for lane in lanes]
    run(cli, script(), *tasks)
    order = cli.store.rows("SELECT task_id FROM attempts ORDER BY started_ms, task_id")
    begun = cli.store.rows(
        "SELECT task_id FROM log WHERE machine = 'task' AND event = 'claim' ORDER BY seq"
    )
    assert [row["task_id"] for row in begun] == [3, 4, 2, 1]
    assert len(order) == 4


@pytest.mark.parametrize("slots", [1, 2])
def test_as_many_tasks_run_at_once_as_there_are_slots(cli: Cli, slots: int) -> None:
    tasks = [{"kind": "shell", "command": "sleep 1"}] * (slots + 1)
    assert run(cli, script(), *tasks, flags=("--slots", str(slots))).code == 5
    moves = cli.store.rows("SELECT event FROM log WHERE machine = 'attempt' ORDER BY seq")
    open_now = accumulate(1 if row["event"] == "open" else -1 for row in moves)
    assert max(open_now) == slots


UNDOING = [
    {"kind": "shell", "command": "echo 1 > one; echo 1 >> a.txt", "checks": ["test -f one"]},
    {"kind": "shell", "command": "rm one; echo 2 > two", "requires": ["t1"]},
    {"requires": ["t2"], "checks": ["file_exists:never"], "policy": {"max_takes": 1}},
]


@pytest.mark.parametrize("how", ["plan", "setting"])
def test_a_failed_goal_undoes_itself_in_reverse_when_its_policy_says_so(cli: Cli, how: str) -> None:
    said = {"policy": {"on_failure": "undo", "max_takes": 1}} if how == "plan" else {}
    tasks = [*UNDOING[:2], {**UNDOING[2], **said}]
    environ = {"HOLDFAST_ON_FAILURE": "undo"} if how == "setting" else {}
    mended = Cli(cli.repo, environ)
    done = run(mended, script(WRITE, *[DONE] * 9), *tasks)
    result = done.result
    assert (done.code, result["state"], result["outcome"]) == (1, "failed", "failed")
    assert result["undone"] is True
    same = git(cli.repo, "rev-parse", f"{result['branch']}^{{tree}}")
    assert same == git(cli.repo, "rev-parse", "main^{tree}"), "the savepoint's hash"
    undone = cli.store.rows(
        "SELECT t.key FROM log l JOIN tasks t ON t.id = l.task_id WHERE l.machine = 'task'"
        " AND l.target = 'succeeded' AND t.key LIKE 'undo-%' ORDER BY l.seq"
    )
    assert [row["key"] for row in undone] == ["undo-t3", "undo-t2", "undo-t1"]
    again = mended("resume", str(result["goal"]), "--json").result
    assert (again["undone"], len(cli.store.rows("SELECT 1 FROM plans"))) == (True, 2)


def test_a_failed_goal_keeps_its_work_unless_its_policy_says_otherwise(cli: Cli) -> None:
    done = run(cli, script(WRITE, *[DONE] * 9), *UNDOING)
    assert done.result["undone"] is False
    changed = git(cli.repo, "diff", "--name-only", "main", done.result["branch"]).split()
    assert changed == ["a.txt", "src/b.txt", "two"]
    refused = cli("run", "x", "--model", "ollama:x", environ={"HOLDFAST_ON_FAILURE": "burn"})
    assert (refused.code, "on_failure is 'burn'" in refused.err) == (2, True)


def test_a_fresh_take_begins_at_the_savepoint(cli: Cli) -> None:
    """A logic failure is rethought from the base: what the take before wrote is not there."""
    write = calls(("write_file", {"path": "b.txt", "content": "b"}))
    clean = {"preconditions": ["git_clean"], "checks": ["file_exists:never"]}
    done = run(cli, script(write, *[DONE] * 9), {**clean, "policy": {"max_takes": 2}})
    assert done.result["attempts"] == 2
    held = cli.store.rows("SELECT result FROM steps WHERE key = 'pre/check:0' ORDER BY take")
    assert [json.loads(row["result"])["verdict"] for row in held] == ["pass", "pass"]
