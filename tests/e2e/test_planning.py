"""A model plans a goal, through the real command line: accepted, refused, reviewed, split."""

import json
from pathlib import Path
from typing import Any

from e2e.support import Cli, broken_invariants, calls, git, make_repo, says, write_script

FILES = {"a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.tmp\n"}
PLAN = "# Task: Plan the goal"
PLANNED = ("--agent-planning", "--json")


def row(key: str, **values: Any) -> dict[str, Any]:
    """A proposed task that makes a file of its own name."""
    return {
        "key": key,
        "title": f"Make {key}",
        "prompt": f"Write {key}.txt.",
        "creates": [f"{key}.txt"],
        "checks": [f"test -f {key}.txt"],
        **values,
    }


def answer(*rows: dict[str, Any]) -> dict[str, Any]:
    return says(f"```json\n{json.dumps({'tasks': rows})}\n```")


def writes(name: str, title: str = "") -> dict[str, Any]:
    """The rule of a task that writes one file and says so."""
    call = ("write_file", {"path": f"{name}.txt", "content": f"{name}\n"})
    return {"when": f"# Task: {title or f'Make {name}'}\n", "replies": [calls(call), says("Done.")]}


def planned(*replies: dict[str, Any], work: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"rules": [{"when": PLAN, "replies": list(replies)}, *work]}


THREE = (row("one", files=["a.txt"]), row("two"), row("three", requires=["one", "two"]))
WORK = tuple(writes(name) for name in ("one", "two", "three"))


def cli(folder: Path, script: dict[str, Any], **environ: str) -> Cli:
    repo = make_repo(folder / "repo", FILES)
    model = write_script(folder / "script.json", script)
    return Cli(repo, {"HOLDFAST_MODEL": model, **environ})


def test_a_planned_goal_runs_its_tasks_and_proves_the_whole(tmp_path: Path) -> None:
    run = cli(tmp_path, planned(answer(*THREE), work=WORK), HOLDFAST_AGENT_PLANNING="on")
    done = run("run", "Make three", "--json", "--slots", "2", "--check", "ls one.txt three.txt")
    assert (done.code, done.result["state"]) == (0, "complete"), done.err
    shown = run("goal", "show", "1", "--json").result
    assert [(plan["source"], plan["state"]) for plan in shown["plans"]] == [
        ("planning", "succeeded"),
        ("model", "succeeded"),
    ]
    kinds = {task["key"]: task["kind"] for task in shown["plans"][1]["tasks"]}
    assert kinds == {"one": "agent", "two": "agent", "three": "agent", "verify": "verify"}
    moves = run.store.rows(
        "SELECT source, event FROM log WHERE machine = 'goal' AND kind = 'transition' ORDER BY seq"
    )
    assert [row["event"] for row in moves] == [
        "submit",
        "decompose",
        "execute",
        "verify",
        "complete",
    ]
    subjects = git(run.repo, "log", "--format=%s", "--reverse", "holdfast/goal-1").splitlines()
    assert subjects[-1] == "Make three", "what requires the others is merged after them"
    assert broken_invariants(run.store) == []
    for task in shown["plans"][0]["tasks"] + shown["plans"][1]["tasks"]:
        again = run("replay", task["attempts"][-1]["attempt"], "--json")
        assert again.result["equal"] is True, again.out
    why = run("why", "one.txt:1", "--json").result
    assert (why["task"], why["prompt"]) == ("one", "Write one.txt.")
    undone = run("undo", "1", "--json")
    assert undone.result["tree_equal"] is True, undone.err


def test_a_wrong_plan_goes_back_once_with_the_exact_error(tmp_path: Path) -> None:
    wrong = answer(row("one", files=["gone.txt"]), row("two"), row("three"))
    run = cli(tmp_path, planned(wrong, answer(*THREE), work=WORK))
    done = run("run", "Make three", *PLANNED)
    assert done.code == 0, done.err
    (journal,) = [
        json.loads(step["request"]) if step["request"][0] != "@" else step["request"]
        for step in run.store.steps().values()
        if step["key"] == "plan/again/model"
    ]
    said = journal["messages"][-1]["content"]
    assert "task 'one' names the file 'gone.txt', which does not exist" in said


def test_a_plan_that_is_wrong_twice_fails_its_goal_with_the_error_and_makes_no_task(
    tmp_path: Path,
) -> None:
    loop = answer(row("one", requires=["two"]), row("two", requires=["one"]), row("three"))
    run = cli(tmp_path, planned(says("I cannot."), loop))
    done = run("run", "Make three", *PLANNED)
    assert (done.code, done.result["state"], done.result["reason"]) == (1, "failed", "plan_cycle")
    assert "the plan has a cycle: one → two → one" in done.result["tasks"][0]["detail"]
    assert [task["key"] for task in done.result["tasks"]] == ["planning"]
    assert run.store.one("SELECT count(*) FROM plans") == 1
    assert run("replay", "1.1", "--json").result["equal"] is True
    failures = run.store.rows("SELECT body FROM log WHERE kind = 'failure'")
    assert len(failures) == 1
    assert "one → two → one" in failures[0]["body"]


def test_a_big_task_is_split_into_units(tmp_path: Path) -> None:
    big = answer(row("one", big=True), row("two", requires=["one"]), row("three"))
    units = answer(
        {**row("x"), "title": "Make x"},
        {
            **row("y", requires=["x"]),
            "title": "Make one",
            "creates": ["one.txt"],
            "checks": ["test -f x.txt"],
        },
    )
    work = (*WORK, writes("x"))
    run = cli(tmp_path, planned(big, units, work=work))
    done = run("run", "Make three", *PLANNED)
    assert done.code == 0, done.err
    shown = run("plan", "show", "2", "--json").result
    needs = {task["key"]: task["requires"] for task in shown["tasks"]}
    assert needs == {"one.x": [], "one.y": ["one.x"], "two": ["one.y"], "three": []}
    last = shown["tasks"][1]
    assert last["checks"] == ["test -f x.txt", "test -f one.txt"]
    assert last["postconditions"] == ["file_exists:one.txt"], "what the whole creates"
    assert run("replay", "1.1", "--json").result["equal"] is True


def test_a_reviewed_plan_waits_is_edited_and_given_back(tmp_path: Path) -> None:
    run = cli(tmp_path, planned(answer(*THREE), work=WORK))
    done = run("run", "Make three", *PLANNED, "--review", "--check", "ls one.txt")
    assert (done.code, done.result["outcome"], done.result["proposed_plan"]) == (3, "waiting", 2)
    assert run("resume", "--json").code == 3, "nothing runs before a person approved"
    assert run.store.rows("SELECT 1 FROM attempts WHERE task_id > 1") == []
    read = run("plan", "show", "2").out
    assert "makes one.txt" in read
    assert "Write one.txt." in read, "a person approves what the model will be told"
    exported = run("plan", "export", "2", "--json").result
    assert [task["key"] for task in exported["tasks"]] == ["one", "two", "three", "verify"]
    exported["tasks"] = [task for task in exported["tasks"] if task["key"] != "two"]
    exported["tasks"][1]["requires"] = ["one"]
    exported["tasks"][2]["requires"] = ["one", "three"]
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(exported), encoding="utf-8")
    made = run("plan", "create", "--goal", "1", "--file", str(edited), "--json")
    assert (made.code, made.result["plan"], made.result["state"]) == (0, 3, "running"), made.err
    end = run("resume", "1", "--json")
    assert (end.code, end.result["outcome"]) == (0, "passed"), end.err
    states = [plan["state"] for plan in run("plan", "--json").result["plans"]]
    assert states == ["succeeded", "superseded", "succeeded"]
    assert "two.txt" not in git(run.repo, "ls-tree", "--name-only", "holdfast/goal-1")


def test_an_approved_plan_runs_and_a_rejected_one_is_planned_again(tmp_path: Path) -> None:
    run = cli(tmp_path, planned(answer(*THREE), work=WORK))
    assert run("run", "Make three", *PLANNED, "--review").code == 3
    bare = run("plan", "reject", "2", "--json")
    assert (bare.code, bare.result["code"]) == (2, "refused"), "a rejection needs a reason"
    rejected = run("plan", "reject", "2", "--reason", "one is too vague", "--json")
    assert rejected.result["state"] == "rejected"
    again = run("resume", "1", "--json")
    assert (again.code, again.result["proposed_plan"]) == (3, 4)
    task = run.store.one("SELECT id FROM tasks WHERE plan_id = 3")
    asked = run("why", f"{task}.1", "--json").result["bundle_items"]
    assert any("a person rejected it: one is too vague" in item["reason"] for item in asked)
    assert run("plan", "approve", "4", "--json").result["state"] == "running"
    assert run("plan", "approve", "4", "--json").code == 0
    assert run("resume", "1", "--json").code == 0
    refused = run("plan", "approve", "2", "--json")
    assert (refused.code, refused.result["code"]) == (2, "illegal_transition")


def test_a_gap_has_its_rounds_of_follow_ups_and_then_a_person(tmp_path: Path) -> None:
    mend = [{"when": f"round {number}", "replies": [says("It is fine.")] * 9} for number in (1, 2)]
    run = cli(
        tmp_path,
        planned(answer(*THREE), work=(*WORK, *mend)),
        HOLDFAST_PLAN_ROUNDS="1",
        HOLDFAST_MAX_VERIFICATION_RETRIES="0",
    )
    done = run("run", "Make three", *PLANNED, "--check", "test -f four.txt")
    assert (done.code, done.result["state"]) == (3, "verifying"), done.err
    ends = {task["key"]: task["outcome"] for task in done.result["tasks"]}
    assert (ends["verify"], ends["verify-mend-1"]) == ("waiting", "unverified")
    (asked,) = run("approval", "--json").result["approvals"]
    assert asked["task"] == 5
    assert "test -f four.txt: failed with exit code 1 after 1 follow-ups" in asked["evidence"]
    assert run("approval", "answer", "5", "redo").code == 0
    assert run("resume", "1", "--json").code == 3, "it looked again, and nothing had changed"
    assert run("approval", "answer", "5", "we can live without it").code == 0
    end = run("resume", "1", "--json")
    assert (end.code, end.result["state"], end.result["reason"]) == (1, "failed", "checks_failed")
    assert "a person says: we can live without it" in end.result["tasks"][-2]["detail"]
    assert run("replay", "5.4", "--json").result["equal"] is True


def test_without_planning_a_goal_is_one_task_as_it_always_was(tmp_path: Path) -> None:
    run = cli(tmp_path, {"rules": [writes("one", "Make one")]})
    done = run("run", "Make one", "--json", "--check", "test -f one.txt")
    assert done.code == 0, done.err
    assert run.store.rows("SELECT source, state FROM plans") == [
        {"source": "single", "state": "succeeded"}
    ]
    moves = run.store.rows("SELECT machine, event FROM log WHERE kind = 'transition' ORDER BY seq")
    assert [(row["machine"], row["event"]) for row in moves if row["machine"] != "step"] == [
        ("goal", "submit"),
        ("goal", "decompose"),
        ("plan", "draft"),
        ("task", "unblock"),
        ("plan", "propose"),
        ("plan", "approve"),
        ("goal", "execute"),
        ("attempt", "open"),
        ("task", "claim"),
        ("attempt", "settle"),
        ("task", "succeed"),
        ("plan", "finish"),
        ("goal", "verify"),
        ("goal", "complete"),
    ]
    assert [row["key"] for row in run.store.steps().values()] == [
        "t001/model",
        "t001/call:0",
        "t002/model",
        "v01/check:0",
    ]


def test_the_checks_of_a_persons_plan_fail_its_goal_at_once(tmp_path: Path) -> None:
    run = cli(tmp_path, {"rules": [*WORK]})
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"tasks": [row("one")]}), encoding="utf-8")
    done = run("run", "Make one", "--plan", str(plan), "--check", "test -f two.txt", "--json")
    assert (done.code, done.result["state"], done.result["reason"]) == (
        1,
        "failed",
        "checks_failed",
    )
    assert [task["key"] for task in done.result["tasks"]] == ["one", "verify"]
    assert done.result["tasks"][-1]["detail"] == "test -f two.txt: failed with exit code 1"


def test_a_plan_of_ones_own_can_be_held_for_review_paused_and_given_anew(tmp_path: Path) -> None:
    run = cli(tmp_path, {"rules": [*WORK]})
    assert run("run", "Make one", "--review", "--json").code == 3
    waits = run("approval", "--json").result
    assert (waits["approvals"], [each["state"] for each in waits["plans"]]) == ([], ["proposed"])
    assert "holdfast plan show 1" in run("approval").out
    bare = run("plan", "create", "--json")
    assert (bare.code, bare.result["message"]) == (2, "which goal, and which plan?")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"tasks": [row("one")]}), encoding="utf-8")
    made = run("plan", "create", "--goal", "1", "--file", str(plan), "--review", "--json")
    assert (made.code, made.result["state"]) == (0, "proposed")
    assert "holdfast plan approve 2" in run("plan", "show", "2").out
    assert "one" in run("plan", "export", "2").out
    assert run("plan", "approve", "2", "--json").result["state"] == "running"
    assert run("plan", "pause", "2", "--json").result["state"] == "paused"
    assert run("plan", "resume", "2", "--json").result["state"] == "running"
    assert run("resume", "--json").result["outcome"] == "passed"


def test_settings_that_no_plan_could_keep_are_refused_before_a_goal_exists(tmp_path: Path) -> None:
    run = cli(tmp_path, {"rules": []})
    for name, value, words in (
        ("PLAN_TASKS_MIN", "9", "no plan can be both"),
        ("PLAN_LEVELS", "3", "it is 1 or 2"),
        ("UNIT_FILES_MAX", "0", "unit_files_max is 0"),
        ("PLAN_ROUNDS", "-1", "plan_rounds is -1"),
        ("AGENT_PLANNING", "maybe", "sets agent_planning to 'maybe'"),
    ):
        done = run("run", "x", *PLANNED, environ={f"HOLDFAST_{name}": value})
        assert (done.code, done.result["type"]) == (2, "error")
        assert words in done.result["message"]
    assert run.store.goals() == 0


def test_a_strategy_holds_for_the_plan_that_a_model_makes(tmp_path: Path) -> None:
    chain = (row("one"), row("two", requires=["one"]), row("three"))
    run = cli(tmp_path, planned(answer(*chain), work=WORK))
    done = run("run", "Make three", *PLANNED, "--strategy", "bfs", "--slots", "1")
    assert done.code == 0, done.err
    joined = "SELECT t.key FROM attempts a JOIN tasks t ON t.id = a.task_id"
    started = run.store.rows(f"{joined} ORDER BY a.started_ms")
    order = [each["key"] for each in started if each["key"] in ("one", "two", "three")]
    assert order == ["one", "three", "two"], "level by level; by place it is one, two, three"


def test_a_resume_says_how_wide_it_works_and_what_each_task_proved(tmp_path: Path) -> None:
    run = cli(tmp_path, planned(answer(*THREE), work=WORK))
    proposed = run("run", "Make three", "--agent-planning", "--review")
    assert "one: ready\n" in proposed.out, "what was never tried names no attempt"
    assert run("plan", "approve", "2").code == 0
    assert "slots is 0" in run("resume", "--slots", "0").err
    done = run("resume", "--slots", "2")
    assert done.code == 0, done.err
    lines = [line.strip() for line in done.out.splitlines()]
    for number, name in ((2, "one"), (3, "two"), (4, "three")):
        at = lines.index(f"✓ {name}: succeeded (attempt {number}.1)")
        assert lines[at + 1].startswith("✓ check pass: test -f " + name)
