"""A model's summary of what does not fit: asked once, remembered, paid, and told when it fails."""

import signal
from pathlib import Path
from typing import Any

import pytest

from e2e.support import Cli, Driver, at_step, broken_invariants, make_repo, says, write_script

LONG = "\n".join(
    f"Finding {n}: the pool keeps socket {n} open for {n} seconds." for n in range(200)
)
PLAN = """
[[tasks]]
key = "find"
kind = "model"
prompt = "Find out where the socket pool is."
[[tasks]]
key = "use"
kind = "model"
requires = ["find"]
prompt = "Say where the socket pool is."
[[tasks]]
key = "more"
kind = "model"
requires = ["find"]
prompt = "Say where it is not."
"""


def rules(*summaries: dict[str, Any]) -> dict[str, Any]:
    return {
        "rules": [
            {"when": "Find out where", "replies": [says(LONG)]},
            {"when": "Say where", "replies": [says("Here.")]},
            {"replies": list(summaries)},
        ]
    }


def cli(tmp_path: Path, *summaries: dict[str, Any], **environ: str) -> Cli:
    repo = make_repo(tmp_path / "repo", {"README.md": "# Demo\n"})
    (tmp_path / "plan.toml").write_text(PLAN)
    model = write_script(tmp_path / "script.json", rules(*summaries))
    values = {"MODEL": model, "CONTEXT": "curated", "BUNDLE_TOKENS": "900", **environ}
    return Cli(repo, environ={f"HOLDFAST_{name}": value for name, value in values.items()})


def run(line: Cli) -> None:
    done = line("run", "Look", "--plan", str(line.repo.parent / "plan.toml"))
    assert done.code == 5, done.err


def text(line: Cli, task: int) -> str:
    return line("context", "preview", str(task), "--json").result["text"]


def steps(line: Cli) -> list[tuple[int, str, str]]:
    query = "SELECT task_id, key, state FROM steps WHERE kind = 'summary' ORDER BY task_id"
    return [(row["task_id"], row["key"], row["state"]) for row in line.store.rows(query)]


def test_a_models_summary_is_opt_in(tmp_path: Path) -> None:
    line = cli(tmp_path, says("The pool is in pool.py."))
    run(line)
    assert "[summary: " in text(line, 2)
    assert "extracted" in text(line, 2)
    assert steps(line) == []


def test_a_summary_is_asked_once_a_goal_paid_and_shown(tmp_path: Path) -> None:
    line = cli(tmp_path, says("The pool is in pool.py."), CONTEXT_SUMMARY="model")
    run(line)
    for task in (2, 3):
        assert "the whole is task 1]\nThe pool is in pool.py." in text(line, task)
    ((task, key, state),) = steps(line)
    assert (task, state) == (2, "done"), "task 3 found it by its text"
    shown = line("attempt", "show", "2.1", "--json").result
    assert [step["key"] for step in shown["journal"]] == [key, "t001/model"]
    assert shown["tokens_in"] > shown["journal"][1]["tokens"], "it is paid"
    for attempt in ("1.1", "2.1", "3.1"):
        assert line("replay", attempt, "--json").result["equal"]


def test_a_preview_asks_nobody_and_says_what_is_missing(tmp_path: Path) -> None:
    line = cli(tmp_path, says("The pool is in pool.py."))
    run(line)
    line.environ = {**line.environ, "HOLDFAST_CONTEXT_SUMMARY": "model"}
    other = line("context", "preview", "2", "--tokens", "901", "--json").result["text"]
    assert "no summary by scripted:" in other
    assert "not made yet" in other
    assert steps(line) == []


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (says("", status=400, body="no"), "model_"),
        (says("far too long a summary " * 500), "it is too long"),
    ],
)
def test_a_summary_that_fails_is_shown_as_such_above_an_extract(
    tmp_path: Path, reply: dict[str, Any], problem: str
) -> None:
    line = cli(tmp_path, reply, CONTEXT_SUMMARY="model")
    run(line)
    found = text(line, 2)
    said = next(row for row in found.splitlines() if "no summary by" in row)
    assert "extracted" in said
    if problem == "it is too long":
        assert problem in said
    assert "Finding" in found, "never an empty item"
    assert line("context", "preview", "2", "--json").result["tokens"] <= 900


def test_a_killed_attempt_does_not_ask_again_for_the_summary_it_has(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", {"README.md": "# Demo\n"})
    (tmp_path / "plan.toml").write_text(PLAN)
    settings = {"context": "curated", "context_summary": "model", "bundle_tokens": 900}
    script = rules(says("The pool is in pool.py."))
    wish = {"settings": settings, "plan": str(tmp_path / "plan.toml")}
    with Driver(tmp_path / "driver", repo, script, **wish) as driver:
        driver.order()
        key = driver.store.one("SELECT key FROM steps WHERE kind = 'summary'")
        driver.move(tmp_path / "again", repo)
        died = driver.order(die=at_step("after_commit", key))
        assert died["signal"] == signal.SIGKILL
        assert driver.order(goal=1)["said"]["state"] == "complete"
        assert broken_invariants(driver.store) == []
        rows = driver.store.rows("SELECT task_id, generation FROM steps WHERE kind = 'summary'")
        assert rows == [{"task_id": 2, "generation": 1}]
