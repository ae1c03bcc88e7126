"""Tasks side by side that change the same lines: a task of its own merges them, and all follows."""

from pathlib import Path
from typing import Any

import pytest

from e2e.support import Cli, broken_invariants, calls, git, make_repo, says, write_script

FILES = {"list.txt": "a\nb\nc\n", "other.txt": "x\n"}
PLAN = """
[[tasks]]
key = "left"
title = "Left"
prompt = "Put left on line 2."
checks = ["grep -q left list.txt"]

[[tasks]]
key = "right"
title = "Right"
prompt = "Put right on line 2."
checks = ["grep -q right list.txt"]

[[tasks]]
key = "after"
title = "After"
prompt = "Write after.txt."
requires = ["left", "right"]
checks = ["grep -q left list.txt", "grep -q right list.txt"]
"""


def shell(command: str) -> dict[str, Any]:
    return calls(("run_command", {"command": command}))


def rule(title: str, *replies: dict[str, Any]) -> dict[str, Any]:
    return {"when": f"# Task: {title}", "replies": list(replies)}


def together(side: str) -> tuple[dict[str, Any], ...]:
    """A side changes line 2, and a file of its own. With two slots both begin at the same base."""
    return (
        shell(f"sed -i 's/^b$/{side}/' list.txt; echo {side} > {side}.txt"),
        says(f"{side} is there."),
    )


MERGED = ("write_file", {"path": "list.txt", "content": "a\nleft\nright\nboth\nc\n"})
SCRIPT = {
    "rules": [
        rule("Left", *together("left")),
        rule("Right", *together("right")),
        rule("Merge", says("I think it is fine."), calls(MERGED), says("Both lines are there.")),
        rule(
            "After", calls(("write_file", {"path": "after.txt", "content": "z\n"})), says("Done.")
        ),
    ]
}


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    repo = make_repo(tmp_path / "repo", FILES)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    model = write_script(tmp_path / "script.json", SCRIPT)
    return Cli(repo, {"HOLDFAST_MODEL": model})


def goal(run: Cli, *more: str) -> Any:
    plan = str(run.repo.parent / "plan.toml")
    return run("run", "Both", "--plan", plan, "--slots", "2", "--json", *more)


def test_a_conflict_is_a_task_of_its_own_and_the_merge_goes_on(run: Cli) -> None:
    done = goal(run, "--check", "test -f left.txt -a -f right.txt")
    assert done.code == 0, done.err
    tasks = {task["key"]: task for task in run("task", "--json").result["tasks"]}
    (merge,) = [task for key, task in tasks.items() if key.startswith("merge-")]
    late = merge["key"].removeprefix("merge-")
    early = {"left": "right", "right": "left"}[late]
    assert [tasks[key]["state"] for key in tasks] == ["succeeded"] * 5
    assert git(run.repo, "show", "holdfast/goal-1:list.txt") == "a\nleft\nright\nboth\nc"
    # Its context is the conflict with both sides, its base the merge with the markers.
    text = run("context", "preview", str(merge["task"]), "--json").result["text"]
    assert f"Put {late} on line 2." in text
    assert f"Put {early} on line 2." in text
    assert "CONFLICT (content): Merge conflict in list.txt" in text
    assert "<<<<<<<" in text
    # Markers must go, and both sides' checks hold.
    checks = {
        row["command"]: row["verdict"]
        for row in done.result["checks"]
        if row["task"] == merge["key"]
    }
    assert checks == {
        "no conflict markers are left": "pass",
        f"grep -q {late} list.txt": "pass",
        f"grep -q {early} list.txt": "pass",
    }
    assert "v01/markers" in {row["key"] for row in run.store.steps().values()}
    # After it: who waited for either side, on the merged tree.
    order = git(run.repo, "log", "--first-parent", "--reverse", "--format=%s", "holdfast/goal-1")
    assert order.splitlines() == ["first", early.title(), f"Merge {late.title()}", "After"]
    links = run("link", "list", str(tasks["after"]["task"]), "--json").result["outgoing"]
    assert merge["task"] in [link["task"] for link in links if link["kind"] == "requires"]
    assert broken_invariants(run.store) == []
    # Every line still leads to who wrote it, every attempt replays, and all can be undone.
    assert run("why", f"{late}.txt:1", "--json").result["task"] == late
    writers = [run("why", f"list.txt:{line}", "--json").result["task"] for line in (2, 3, 4)]
    assert writers == ["left", "right", merge["key"]]
    for task in tasks.values():
        for attempt in task["attempts"]:
            assert run("replay", attempt["attempt"], "--json").result["equal"] is True
    assert run("undo", "1", "--json").result["tree_equal"] is True


def test_the_users_repository_keeps_its_files_index_and_head(run: Cli) -> None:
    before = (git(run.repo, "status", "--porcelain"), git(run.repo, "rev-parse", "HEAD"))
    hook = run.repo / ".git/hooks/post-merge"
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    assert goal(run).code == 0
    assert (git(run.repo, "status", "--porcelain"), git(run.repo, "rev-parse", "HEAD")) == before
    assert not (run.repo / ".git/MERGE_HEAD").exists()
    refs = git(run.repo, "for-each-ref", "--format=%(refname)", "refs/heads").splitlines()
    assert refs == ["refs/heads/holdfast/goal-1", "refs/heads/main"]


def test_a_merge_that_leaves_markers_fails_and_what_waits_for_it_says_so(tmp_path: Path) -> None:
    lazy = [row for row in SCRIPT["rules"] if row["when"] != "# Task: Merge"]
    lazy.append(rule("Merge", *[says("It is fine.")] * 9))
    repo = make_repo(tmp_path / "repo", FILES)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    run = Cli(repo, {"HOLDFAST_MODEL": write_script(tmp_path / "script.json", {"rules": lazy})})
    done = goal(run)
    assert (done.code, done.result["state"]) == (1, "failed"), done.err
    tasks = {task["key"]: task for task in run("task", "--json").result["tasks"]}
    (merge,) = [task for key, task in tasks.items() if key.startswith("merge-")]
    assert merge["attempts"][-1]["reason"] == "checks_failed"
    assert "left in list.txt:2" in merge["attempts"][-1]["detail"]
    assert tasks["after"]["attempts"] == []
    assert [row["key"] for row in tasks["after"]["blocked_by"]] == [merge["key"]]
    ref = f"refs/holdfast/conflicts/{tasks[merge['key'].removeprefix('merge-')]['task']}"
    assert git(repo, "rev-parse", "--verify", ref), "the work that could not be merged is kept"


def test_a_file_that_one_side_deleted_is_a_conflict_without_markers(tmp_path: Path) -> None:
    plan = PLAN.replace('checks = ["grep -q right list.txt"]', 'checks = ["test ! -f list.txt"]', 1)
    plan = plan[: plan.index('[[tasks]]\nkey = "after"')]
    plan = plan.replace('checks = ["grep -q left list.txt"]', 'checks = ["true"]')
    script = {
        "rules": [
            rule("Left", shell("echo d >> list.txt"), says("It is longer.")),
            rule("Right", shell("rm list.txt"), says("It is gone.")),
            rule("Merge", shell("rm -f list.txt"), says("It stays gone.")),
        ]
    }
    repo = make_repo(tmp_path / "repo", FILES)
    (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
    run = Cli(repo, {"HOLDFAST_MODEL": write_script(tmp_path / "script.json", script)})
    done = goal(run)
    assert done.code == 0, done.err
    merge = next(task for task in done.result["tasks"] if task["key"].startswith("merge-"))
    text = run("context", "preview", str(merge["id"]), "--json").result["text"]
    assert "CONFLICT (modify/delete): list.txt deleted in the" in text
    assert git(repo, "ls-tree", "--name-only", "holdfast/goal-1") == "other.txt"


@pytest.mark.parametrize("takes", [1, 2])
def test_a_command_begins_again_and_is_merged_by_a_model_in_its_last_take(
    tmp_path: Path, takes: int
) -> None:
    rows = "".join(
        f"""
[[tasks]]
key = "{side}"
title = "{side.title()}"
kind = "shell"
command = "sed -i '2s/.*/& {side}/' list.txt"
checks = ["grep -q {side} list.txt"]
policy = {{ max_takes = {takes} }}
"""
        for side in ("left", "right")
    )
    (tmp_path / "plan.toml").write_text(rows, encoding="utf-8")
    repo = make_repo(tmp_path / "repo", FILES)
    merged = ("write_file", {"path": "list.txt", "content": "a\nb merged left right\nc\n"})
    script = {"rules": [rule("Merge", calls(merged), says("Both."))]}
    run = Cli(repo, {"HOLDFAST_MODEL": write_script(tmp_path / "script.json", script)})
    done = goal(run)
    assert done.code == 0, done.err
    merges = [task for task in done.result["tasks"] if task["key"].startswith("merge-")]
    again = [row for row in run.store.rows("SELECT take FROM attempts") if row["take"] == 2]
    assert (len(merges), len(again)) == ((1, 0) if takes == 1 else (0, 1))
    line = git(repo, "show", "holdfast/goal-1:list.txt").splitlines()[1]
    assert set(line.split()) - {"merged"} == {"b", "left", "right"}
    assert ("merged" in line) == (takes == 1)


def test_a_conflict_in_a_file_named_by_a_secret_begins_again_and_is_never_told(
    tmp_path: Path,
) -> None:
    secret = "gh" + "p_" + "7Qh2Lw9Xk4Vb1Nc8Zr5Tm3Jd6Pf0Gs2Ha7Ye"
    repo = make_repo(tmp_path / "repo", {f"{secret}.txt": FILES["list.txt"]})
    (tmp_path / "plan.toml").write_text(PLAN.replace("list.txt", "*.txt"), encoding="utf-8")

    def side(name: str) -> dict[str, Any]:
        line = shell(f"sed -i '2s/$/ {name}/' *.txt")
        return rule(name.title(), line, says(f"{name} is there."), line, says("Again."))

    rules = [side("left"), side("right"), rule("After", says("Nothing to do."))]
    run = Cli(repo, {"HOLDFAST_MODEL": write_script(tmp_path / "script.json", {"rules": rules})})
    done = goal(run)
    assert done.code == 0, done.err
    assert [task["key"] for task in run("task", "--json").result["tasks"]] == [
        "left",
        "right",
        "after",
    ]
    reasons = [row["reason"] for row in run.store.rows("SELECT reason FROM attempts")]
    assert reasons.count("merge_conflict") == 1
    assert git(repo, "show", f"holdfast/goal-1:{secret}.txt").splitlines()[1].split()[1:] in (
        ["left", "right"],
        ["right", "left"],
    )
    for path in run.home.glob("holdfast.db*"):
        assert secret.encode() not in path.read_bytes()
    assert secret not in done.out + done.err
