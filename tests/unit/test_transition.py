"""Only `transition()` writes a state, and it always writes the event that says so."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from desk import Desk
from holdfast.errors import Corrupt, IllegalTransition, Stale
from holdfast.store import Tx, queries, transition
from holdfast.store.tx import INLINE_BYTES_MAX

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
STATED = ("goals", "plans", "tasks", "attempts", "steps")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


def writes_state(sql: str) -> bool:
    """Whether a statement inserts into, or sets the state of, a table that has one."""
    for table in STATED:
        if re.search(rf"\b(INSERT INTO|DELETE FROM|REPLACE INTO)\s+{table}\b", sql, re.I):
            return True
        update = re.search(rf"\bUPDATE\s+{table}\s+SET\s+(.*?)(\bWHERE\b|\Z)", sql, re.I | re.S)
        if update and re.search(r"\bstate\s*=", update.group(1)):
            return True
    return False


def test_only_transition_statements_write_a_state_and_each_asks_for_its_source() -> None:
    found = 0
    for name, sql in queries.load().items():
        assert writes_state(sql) == name.startswith("transition."), name
        if name.startswith("transition.") and "UPDATE" in sql:
            found += 1
            assert ":target" in sql, name
            assert re.search(r"AND state = :source", sql), f"{name} does not ask for the source"
    assert found >= 8


def test_the_reading_of_statements_would_see_a_forbidden_one() -> None:
    assert writes_state("UPDATE goals SET reason = 'x', state = 'complete' WHERE id = 1")
    assert writes_state("insert into attempts (task_id) VALUES (1)")
    assert not writes_state("UPDATE attempts SET steps = 1 WHERE state = 'open'")


def test_no_other_module_writes_sql_of_its_own() -> None:
    for path in SOURCE.rglob("*.py"):
        if "trace" in path.parts or path.parent.name == "store":
            continue
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\b(UPDATE|INSERT INTO|DELETE FROM)\s+\w+\s", text), path.name


def test_a_state_statement_cannot_be_run_around_transition(desk: Desk) -> None:
    with pytest.raises(AssertionError, match="written by transition"):
        desk.call(lambda tx: tx.run("transition.goal", id=1))


def test_a_transition_needs_a_legal_event_and_the_row_in_its_source(desk: Desk) -> None:
    goal = desk.goal()

    def move(tx: Tx, source: str, event: str) -> str:
        values = {"id": goal, "ended_ms": None}
        return transition(
            tx, "goal", event, source=source, entity=str(goal), goal=goal, values=values
        )

    before = len(desk.rows("SELECT 1 FROM log"))
    with pytest.raises(IllegalTransition):
        desk.call(move, "executing", "complete")
    with pytest.raises(Stale, match="no longer verifying; complete was not applied"):
        desk.call(move, "verifying", "complete")
    assert len(desk.rows("SELECT 1 FROM log")) == before
    assert desk.call(move, "executing", "verify") == "verifying"
    last = desk.rows("SELECT * FROM log ORDER BY seq DESC LIMIT 1")[0]
    assert (last["machine"], last["source"], last["event"], last["target"], last["at_ms"]) == (
        "goal",
        "executing",
        "verify",
        "verifying",
        desk.clock.now_ms(),
    )


def test_small_content_stays_in_its_column_and_large_content_becomes_a_blob(desk: Desk) -> None:
    small, large = b"x" * INLINE_BYTES_MAX, b"x" * (INLINE_BYTES_MAX + 1)
    assert desk.call(lambda tx: tx.pack(small)) == small.decode()
    packed = desk.call(lambda tx: tx.pack(large))
    assert packed.startswith("@")
    assert desk.call(lambda tx: tx.pack(large)) == packed
    assert desk.engine.read(lambda tx: tx.unpack(packed)) == large
    assert len(desk.rows("SELECT 1 FROM blobs")) == 1


def test_a_blob_that_is_missing_or_changed_is_corrupt(desk: Desk) -> None:
    digest = desk.call(lambda tx: tx.put(b"kept"))
    with pytest.raises(Corrupt, match="is missing"):
        desk.engine.read(lambda tx: tx.get("0" * 64))
    desk.execute("UPDATE blobs SET bytes = x'00'")
    with pytest.raises(Corrupt, match="is not what was written"):
        desk.engine.read(lambda tx: tx.get(digest))
    assert desk.engine.read(lambda tx: tx.get(digest, verify=False)) == b"\0"


def test_a_statement_named_twice_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "text", lambda file: "-- name: a\nSELECT 1;\n-- name: a\nSELECT 2")
    with pytest.raises(AssertionError, match="names 'a' twice"):
        queries.load()


def test_the_engine_closes_twice_and_a_question_must_have_an_answer(desk: Desk) -> None:
    with pytest.raises(AssertionError, match="answered no row"):
        desk.engine.read(lambda tx: tx.number("goal.get", id=99))
    desk.close()
