"""Long conversations end to end: shortened, remembered, resumed and replayed byte for byte."""

import json
import signal
import sqlite3
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from e2e.support import (
    Cli,
    Driver,
    at_step,
    broken_invariants,
    calls,
    make_repo,
    says,
    script,
    write_script,
)

READS = 8
FILES = {
    f"part{n}.txt": "".join(f"line {i} of part {n}\n" for i in range(120)) for n in range(READS)
}
LOOKS = [
    calls(("read_file", {"path": f"part{n}.txt"}), usage={"in": 1000, "out": 5, "cached": 700})
    for n in range(READS)
]
SCRIPT = script(*LOOKS, says("I have read them all."))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", FILES)


def cli(repo: Path, folder: Path, budget: int) -> Cli:
    model = write_script(folder / "script.json", SCRIPT)
    environ = {"HOLDFAST_MODEL": model, "HOLDFAST_CONVERSATION_TOKENS": str(budget)}
    return Cli(repo, environ={**environ, "HOLDFAST_HOME": str(folder / f"home{budget}")})


def journal(line: Cli) -> dict[str, Mapping[str, Any]]:
    found = line("attempt", "show", "1.1", "--json").result["journal"]
    return {step["key"]: step for step in found}


def requests(line: Cli) -> list[list[str]]:
    """Every request's messages as texts, rebuilt from the journal alone."""
    sent: list[list[str]] = []
    whole: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    steps = journal(line)
    for key, step in steps.items():
        if step["kind"] != "model":
            continue
        asked = step["request"]
        whole = whole[: asked["after"]] + asked["messages"]
        shown = shown[: asked["after"]] + asked["messages"]
        if "shortened" in asked:
            shown = json.loads(json.dumps(whole))
            for place, text in steps[asked["shortened"]]["result"]["short"].items():
                number, _, argument = place.partition("/")
                assert not argument, "paths are short"
                shown[int(number)]["content"] = text
        sent.append([json.dumps(message) for message in shown])
        assert key.endswith("/model")
    return sent


def test_below_its_budget_a_conversation_is_what_it_was(repo: Path, tmp_path: Path) -> None:
    wide, wider = cli(repo, tmp_path, 50_000), cli(repo, tmp_path, 90_000)
    for line in (wide, wider):
        assert line("run", "Read", "--max-turns", "12").code == 5
    asked = [step["request"] for step in journal(wide).values()]
    other = [step["request"] for step in journal(wider).values()]
    assert asked[0].pop("seed") != other[0].pop("seed"), "a goal's own"
    assert asked == other
    assert not any("shortened" in request for request in asked)


def test_over_its_budget_old_results_are_cut_rarely_and_the_prefix_stays(
    repo: Path, tmp_path: Path
) -> None:
    line = cli(repo, tmp_path, 5000)
    assert line("run", "Read", "--max-turns", "12").code == 5
    compactions = [key for key in journal(line) if key.endswith("/compact")]
    assert 1 <= len(compactions) <= 2, "rarely, so that a prompt cache is of use"
    sent = requests(line)
    stable = sum(now[: len(before)] == before for before, now in pairwise(sent))
    assert stable == len(sent) - 1 - len(compactions), "between them requests only grow"
    assert all(now[:2] == sent[0][:2] for now in sent), "the bundle is never touched"
    tokens = [step["tokens"] for step in journal(line).values() if step["kind"] == "model"]
    assert len(tokens) == READS + 1
    told = line("events", "--json").out
    assert "what is left out?" in told
    replayed = line("replay", "1.1", "--json").result
    assert replayed["equal"], replayed
    text = line("attempt", "show", "1.1").out
    assert f"{READS * 700:,} cached" in text
    assert "cache" in line("why", "1.1").out
    shown = line("attempt", "show", "1.1", "--json").result
    assert shown["tokens_cached"] == READS * 700


def test_a_changed_compaction_is_found_by_replay(repo: Path, tmp_path: Path) -> None:
    line = cli(repo, tmp_path, 5000)
    assert line("run", "Read", "--max-turns", "12").code == 5
    key = next(key for key in journal(line) if key.endswith("/compact"))
    for changed in (
        "replace(result, 'left out', 'left in')",
        '\'{"before":1,"after":1,"short":{"999":"x"}}\'',
    ):
        with sqlite3.connect(line.home / "holdfast.db") as store:
            (was,) = store.execute("SELECT result FROM steps WHERE key = ?", (key,)).fetchone()
            assert not was.startswith("@"), "small enough to stand in its row"
            store.execute(f"UPDATE steps SET result = {changed} WHERE key = ?", (key,))
        found = line("replay", "1.1", "--json").result
        assert (found["equal"], found["difference"]["step"]) == (False, key)
        with sqlite3.connect(line.home / "holdfast.db") as store:
            store.execute("UPDATE steps SET result = ? WHERE key = ?", (was, key))
    assert line("replay", "1.1", "--json").result["equal"]


@pytest.mark.parametrize("boundary", ["before_intend", "after_intend", "after_commit"])
def test_a_killed_attempt_goes_on_with_the_same_compaction(
    repo: Path, tmp_path: Path, boundary: str
) -> None:
    settings = {"conversation_tokens": 5000, "max_turns": 12}
    with Driver(tmp_path / "driver", repo, SCRIPT, settings=settings) as driver:
        whole = driver.order()["said"]
        assert whole["state"] == "complete"
        rows = driver.store.rows("SELECT key, request, result FROM steps ORDER BY position")
    turn = next(row["key"] for row in rows if row["key"].endswith("/compact")).partition("/")[0]
    with Driver(tmp_path / "again", repo, SCRIPT, settings=settings) as driver:
        died = driver.order(die=at_step(boundary, f"{turn}/model"))
        assert died["signal"] == signal.SIGKILL
        assert driver.order(goal=1)["said"]["state"] == "complete"
        assert broken_invariants(driver.store) == []
        again = driver.store.rows("SELECT key, request, result FROM steps ORDER BY position")
    told = [row["request"] for row in rows if row["key"].endswith("/model")][1:]
    assert [row["request"] for row in again if row["key"].endswith("/model")][1:] == told
    cuts = [row["result"] for row in rows if row["key"].endswith("/compact")]
    assert [row["result"] for row in again if row["key"].endswith("/compact")] == cuts
