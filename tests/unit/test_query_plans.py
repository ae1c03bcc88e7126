"""The plans SQLite chooses for statements over long logs."""

from pathlib import Path

from holdfast.store import open_store, queries


def plan_of_a_goals_events(path: Path, *, without: str = "") -> str:
    connection = open_store(path, now_ms=0)
    if without:
        connection.execute(f"DROP INDEX {without}")
    statement = "EXPLAIN QUERY PLAN " + queries.load()["log.page.goal"]
    rows = connection.execute(statement, {"goal": 1, "after": 0, "limit": 10}).fetchall()
    connection.close()
    return "; ".join(row["detail"] for row in rows)


def test_the_events_of_a_goal_are_read_in_order_from_their_index(tmp_path: Path) -> None:
    wanted = "SEARCH log USING INDEX log_by_goal (goal_id=? AND rowid>?)"
    assert plan_of_a_goals_events(tmp_path / "a.db") == wanted
    assert plan_of_a_goals_events(tmp_path / "b.db", without="log_by_goal") != wanted
