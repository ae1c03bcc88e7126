"""A run's sessions, tokens and money: what the trace says equals the ledger to the unit."""

import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from e2e.support import Cli, Driver, at_step, broken_invariants, make_repo, write_script
from e2e.three_tasks import FILES, GOAL, SCRIPT, write_plan

PRICES = '"scripted:*" = { in = "1.237", out = "4.561", cached = "0.123" }\n'
USAGE = {"in": 101, "out": 37, "cached": 11, "written": 5, "reasoning": 7}
SUMS = ("tokens_in", "tokens_out", "tokens_cached", "cost_nusd")


def used(**more: Any) -> dict[str, Any]:
    """The three tasks' script with usage that no estimate would give, and faults."""
    rules = [
        {**rule, "replies": [{**each, "usage": USAGE, **more} for each in rule["replies"]]}
        for rule in SCRIPT["rules"]
    ]
    return {"rules": rules}


class Run:
    """A goal of three tasks on a chain of two models with prices, killed where it is told."""

    def __init__(self, folder: Path, model: str, prices: str = PRICES) -> None:
        self.repo = make_repo(folder / "repo", {**FILES, "holdfast.toml": "backoff_ms=1\n"})
        self.driver = Driver(
            folder / "driver",
            self.repo,
            used(),
            model=model,
            goal=GOAL,
            plan=str(write_plan(folder)),
        )
        self.driver.home.mkdir(parents=True)
        (self.driver.home / "prices.toml").write_text(prices)
        self.cli = Cli(self.repo, {"HOLDFAST_HOME": str(self.driver.home)})

    def json(self, *words: str) -> list[dict[str, Any]]:
        done = self.cli(*words, "--json")
        assert done.code == 0, done.err
        return done.objects

    def attempts(self) -> list[dict[str, Any]]:
        return self.driver.store.rows("SELECT * FROM attempts ORDER BY task_id, number")

    def differences(self) -> list[str]:
        """Where the trace and the ledger say something else."""
        found, attempts = [], self.attempts()
        sessions = {row["session_id"]: row for row in self.json("trace", "sessions")}
        names = {f"{row['task_id']}.{row['number']}": row for row in attempts}
        if set(sessions) != set(names):
            found.append(f"sessions {sorted(sessions)}, attempts {sorted(names)}")
        for name, row in names.items():
            (told,) = self.json("trace", "tokens", "--session", name)
            models = told["models"].values()
            ledger = {key: row[key] for key in SUMS}
            traced = {key: sum(model[key] for model in models) for key in SUMS}
            if traced != ledger or told["unpriced_calls"] != row["unpriced"]:
                found.append(f"{name}: traced {traced}, ledger {ledger}")
            tokens = (told["total_tokens"], sessions[name]["total_tokens"])
            if tokens != (row["tokens_in"] + row["tokens_out"],) * 2:
                found.append(f"{name}: {tokens} tokens")
        (whole,) = self.json("trace", "tokens", "--all")
        (goal,) = self.json("goal", "show", "1")
        for place, usage in (("goal", goal["usage"]), ("result", self.driver_result())):
            if (whole["total_tokens"], whole["cost_usd"]) != (usage["tokens"], usage["cost_usd"]):
                found.append(f"{place} {usage}, trace {whole}")
        return found

    def driver_result(self) -> dict[str, Any]:
        answer = self.driver.order(goal=1)
        usage: dict[str, Any] = answer["said"]["usage"]
        return usage


@pytest.mark.slow
def test_sums_of_the_trace_are_the_ledgers_after_kills_retries_and_moves(tmp_path: Path) -> None:
    one = write_script(tmp_path / "one.json", used(status=503, times=1))
    two = write_script(tmp_path / "two.json", used())
    run = Run(tmp_path, f"{one},{two}")
    deaths = [
        at_step("mid_effect", "t001/call:0"),
        at_step("after_intend", "t001/model.1"),
        at_step("after_intend", "t002/model"),
        at_step("after_effect", "t002/model"),
    ]
    with run.driver as driver:
        for index, die in enumerate(deaths):
            ended = driver.order(die=die, **({"goal": 1} if index else {}))
            assert ended["signal"] == signal.SIGKILL, f"{die} was never reached"
            assert broken_invariants(driver.store) == []
        result = driver.order(goal=1)["said"]
        assert result["outcome"] == "passed", result
        assert run.differences() == []
        events = run.json("trace", "events", "--type", "llm_call")
        calls = [event["payload"] for event in events]
        orphans = [call for call in calls if call.get("estimated")]
        assert len(orphans) >= 3
        for orphan in orphans:
            assert orphan["error"]["type"] == "orphaned"
            assert orphan["tokens_in"] > 1000, "the reserve"
            assert orphan["cost_nusd"] > 0
            assert orphan["model"] in (one.partition(":")[2], two.partition(":")[2])
            assert orphan["step"] == orphan["call_id"]
        seen = next(call for call in calls if "estimated" not in call)
        assert (seen["tokens_cached"], seen["tokens_written"], seen["tokens_reasoning"]) == (
            USAGE["cached"],
            USAGE["written"],
            USAGE["reasoning"],
        )
        assert seen["finish_reason"] == "tool_calls"
        assert "prompt" not in seen, "an event points to the step's bytes, it does not copy them"
        assert "response" not in seen


@pytest.mark.slow
def test_an_event_that_is_missing_would_be_noticed(tmp_path: Path) -> None:
    run = Run(tmp_path, write_script(tmp_path / "one.json", used()))
    with run.driver as driver:
        ended = driver.order(die=at_step("after_intend", "t002/model"))
        assert ended["signal"] == signal.SIGKILL
        assert driver.order(goal=1)["said"]["outcome"] == "passed"
        assert run.differences() == []
        with sqlite3.connect(driver.home / "holdfast.db") as connection:
            gone = connection.execute("DELETE FROM log WHERE body LIKE '%orphaned%'").rowcount
        connection.close()
        assert gone == 1
        assert [text.partition(":")[0] for text in run.differences()[:1]] == ["1.1"]


@pytest.mark.slow
def test_what_no_provider_reported_or_priced_is_said_not_guessed(tmp_path: Path) -> None:
    script = used(usage={"reported": False})
    name = write_script(tmp_path / "one.json", script)
    run = Run(tmp_path, name)
    with run.driver as driver:
        assert driver.order()["said"]["outcome"] == "passed"
        assert run.differences() == []
        (whole,) = run.json("trace", "tokens", "--all")
        assert whole["estimated_calls"] == sum(row["calls"] for row in whole["models"].values()) > 0
        assert json.dumps(whole["cost_usd"]) != "null"
