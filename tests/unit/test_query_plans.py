"""The plans SQLite chooses for statements over long tables, and how a parameter gets its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from desk import Desk, task
from holdfast.store import open_store, queries


def plan_of(name: str, path: Path, *, without: str = "") -> str:
    connection = open_store(path, now_ms=0)
    if without:
        connection.execute(f"DROP INDEX {without}")
    statement = queries.prepare(queries.load())[name]
    rows = connection.execute(
        "EXPLAIN QUERY PLAN " + statement.sql, [1] * statement.sql.count("?")
    ).fetchall()
    connection.close()
    return "; ".join(row["detail"] for row in rows)


@pytest.mark.parametrize(
    ("name", "index", "wanted"),
    [
        (
            "log.page.goal",
            "log_by_goal",
            "SEARCH log USING INDEX log_by_goal (goal_id=? AND rowid>?)",
        ),
        (
            "plan.standing",
            "tasks_by_state",
            "SEARCH tasks USING COVERING INDEX tasks_by_state (plan_id=? AND state=?)",
        ),
    ],
)
def test_a_statement_of_every_settle_or_page_uses_its_index(
    tmp_path: Path, name: str, index: str, wanted: str
) -> None:
    assert wanted in plan_of(name, tmp_path / "a.db")
    assert "SCAN tasks" not in plan_of(name, tmp_path / "a.db")
    assert wanted not in plan_of(name, tmp_path / "b.db", without=index)


def work_of_a_settle(folder: Path, tasks: int) -> int:
    """How many instructions SQLite runs to settle the first task of a plan."""
    folder.mkdir()
    desk = Desk(folder)
    desk.goal(*(task(f"t{number}") for number in range(tasks)))
    granted = desk.claim()
    spent = 0

    def count() -> int:
        nonlocal spent
        spent += 1
        return 0

    desk.engine.wire._connection.set_progress_handler(count, 1)
    desk.settle(granted)
    desk.close()
    return spent


def test_a_settle_costs_the_same_in_a_small_plan_and_in_a_large_one(tmp_path: Path) -> None:
    small, large = (work_of_a_settle(tmp_path / str(n), n) for n in (3, 300))
    assert small > 100
    assert large < small * 1.2


def test_the_count_of_a_settles_work_would_show_a_scan_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    settling = import_module("holdfast.engine.settle")
    progress: Callable[..., None] = settling.plan_progress

    def scan(tx: object, plan_id: int) -> None:
        tx.all("task.of_plan", plan=plan_id)  # type: ignore[attr-defined]
        progress(tx, plan_id)

    monkeypatch.setattr(settling, "plan_progress", scan)
    small, large = (work_of_a_settle(tmp_path / str(n), n) for n in (3, 300))
    assert large > small * 2


def test_a_parameter_is_bound_by_position_as_often_as_it_is_named() -> None:
    sql = "SELECT :one, ':not', :two, key || '/answer#' FROM t WHERE a = :one AND b = :now"
    made = queries.prepare({"x": sql})["x"]
    assert made.sql == "SELECT ?, ':not', ?, key || '/answer#' FROM t WHERE a = ? AND b = ?"
    assert made.bind({"one": 1, "two": 2, "now": 3, "more": 4}) == (1, 2, 1, 3)
    assert queries.prepare({"x": "SELECT 1"})["x"].bind({"now": 3}) == ()
    assert queries.prepare({"x": "SELECT :now"})["x"].bind({"now": 3}) == (3,)
    with pytest.raises(KeyError, match="two"):
        made.bind({"one": 1, "now": 3})
