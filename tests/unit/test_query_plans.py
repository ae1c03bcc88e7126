"""The plans SQLite chooses for statements that run beside long logs and long journals."""

from pathlib import Path

import pytest

from holdfast.store import open_store, queries

PLANS = {
    "log.page.goal": (
        "log_by_goal",
        "SEARCH log USING INDEX log_by_goal (goal_id=? AND rowid>?)",
    ),
    "goal.reserved": (
        "steps_intended",
        "SEARCH s USING INDEX steps_intended (task_id=? AND take=? AND attempt=?)",
    ),
    "attempt.orphans": (
        "steps_intended",
        "SEARCH steps USING INDEX steps_intended (task_id=? AND take=? AND attempt=?)",
    ),
    "task.next_ready": ("tasks_ready", "SCAN t USING INDEX tasks_ready"),
}


def plan_of(name: str, path: Path, *, without: str = "") -> str:
    connection = open_store(path, now_ms=0)
    if without:
        connection.execute(f"DROP INDEX {without}")
    statement = queries.load()[name]
    values = dict.fromkeys(("goal", "after", "limit", "task", "take", "attempt", "now"), 1)
    rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    connection.close()
    return "; ".join(row["detail"] for row in rows)


@pytest.mark.parametrize("name", PLANS)
def test_a_statement_reads_what_it_needs_from_its_index(name: str, tmp_path: Path) -> None:
    index, wanted = PLANS[name]
    assert wanted in plan_of(name, tmp_path / "a.db")
    assert wanted not in plan_of(name, tmp_path / "b.db", without=index), "the mutant"
