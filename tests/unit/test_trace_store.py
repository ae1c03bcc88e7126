"""The file: two tables, enforced rows, totals, forks, busy and broken files."""

import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace import store
from holdfast.trace.events import Event, Session
from holdfast.trace.store import FileSink, Ids, connect, to_json


def call(ids: Ids, session_id: str = "s", tokens: int = 7, **payload: Any) -> Event:
    return Event(ids.new(), session_id, 5, "llm_call", {"model": "m", **payload}, tokens)


def opened(path: Path, **options: int) -> FileSink:
    sink = FileSink(path, **options)
    sink.open_session(Session("s", 1, "agent", "task"))
    return sink


def rows(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def tables(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view', 'trigger')"
    return {name for (name,) in connection.execute(query)}


def test_there_are_exactly_two_tables_and_a_third_would_be_seen(tmp_path: Path) -> None:
    connection = connect(tmp_path / "t.db")
    assert tables(connection) == {"agent_sessions", "events"}
    connection.execute("CREATE TABLE redactions (x)")
    assert tables(connection) != {"agent_sessions", "events"}
    connection.close()


def test_every_session_column_is_filled_after_start_calls_and_end(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    sink = opened(path)
    sink.write(call(Ids()))
    sink.close_session("s", 9)
    sink.close_session("s", 99)
    sink.close()
    assert rows(path, "SELECT * FROM agent_sessions") == [("s", 1, 9, "agent", "task", 7)]
    columns = [row[1] for row in rows(path, "PRAGMA table_info(agent_sessions)")]
    assert columns == ["session_id", "start_ts", "end_ts", "agent_name", "task", "total_tokens"]


def test_the_event_columns_are_the_five(tmp_path: Path) -> None:
    opened(tmp_path / "t.db").close()
    columns = [row[1] for row in rows(tmp_path / "t.db", "PRAGMA table_info(events)")]
    assert columns == ["id", "session_id", "ts", "event_type", "payload"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (("1", "s", 5, "session_start", "{}"), "CHECK"),
        (("1", "s", 5, "transition", "{}"), "CHECK"),
        (("1", "s", 5, "decision", "no json"), "CHECK"),
        (("1", "nobody", 5, "decision", "{}"), "FOREIGN KEY"),
        (("0", "s", 5, "decision", "{}"), "UNIQUE"),
    ],
)
def test_the_database_refuses_what_is_not_an_event(
    tmp_path: Path, row: tuple[Any, ...], why: str
) -> None:
    connection = connect(tmp_path / "t.db")
    insert = "INSERT INTO events VALUES (?, ?, ?, ?, ?)"
    connection.execute("INSERT INTO agent_sessions VALUES ('s', 1, 2, 'a', 't', 0)")
    connection.execute(insert, ("0", "s", 5, "decision", "{}"))
    with pytest.raises(sqlite3.IntegrityError, match=why):
        connection.execute(insert, row)
    connection.close()


def test_an_event_of_an_unknown_session_makes_its_row_and_a_later_start_names_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t.db"
    sink = FileSink(path)
    sink.write(call(Ids(), "elsewhere"))
    sink.flush()
    assert rows(path, "SELECT agent_name, start_ts FROM agent_sessions") == [("", 5)]
    sink.open_session(Session("elsewhere", 3, "agent", "task"))
    sink.close()
    assert rows(path, "SELECT agent_name, total_tokens FROM agent_sessions") == [("agent", 7)]


def test_opening_a_session_again_changes_nothing(tmp_path: Path) -> None:
    sink = opened(tmp_path / "t.db")
    sink.open_session(Session("s", 2, "other", "other"))
    sink.close()
    found = rows(tmp_path / "t.db", "SELECT start_ts, agent_name, task FROM agent_sessions")
    assert found == [(1, "agent", "task")]


def test_a_buffer_waits_and_a_failure_does_not(tmp_path: Path) -> None:
    path, ids = tmp_path / "t.db", Ids()
    sink = opened(path, buffer=3)
    counts = []
    for _ in range(4):
        sink.write(call(ids))
        counts.append(rows(path, "SELECT count(*) FROM events")[0][0])
    assert counts == [0, 0, 3, 3]
    sink.write(Event(ids.new(), "s", 5, "failure", {"error": {"type": "E", "msg": "m"}}))
    assert rows(path, "SELECT count(*) FROM events") == [(5,)]
    sink.close()


def test_totals_equal_the_sum_of_events_at_every_commit(tmp_path: Path) -> None:
    path, ids = tmp_path / "t.db", Ids()
    sink = opened(path, buffer=2)
    for number in range(5):
        sink.write(call(ids, tokens=number, tokens_in=number, tokens_out=0))
        total = "SELECT total(json_extract(payload, '$.i')) FROM events"
        assert rows(path, "SELECT total_tokens FROM agent_sessions") == rows(path, total)
    sink.close()


def test_ids_rise_and_never_repeat_in_any_thread() -> None:
    ids, found = Ids(), []

    def work() -> None:
        found.append([ids.new() for _ in range(2000)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [one for part in found for one in part]
    assert len(set(every)) == 16_000
    assert all(part == sorted(part) for part in found)
    assert {len(one) for one in every} == {16}


def test_eight_threads_lose_nothing(tmp_path: Path) -> None:
    path, ids = tmp_path / "t.db", Ids()
    sink = opened(path)
    threads = [
        threading.Thread(target=lambda: [sink.write(call(ids)) for _ in range(100)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close()
    assert rows(path, "SELECT count(*) FROM events") == [(800,)]
    assert rows(path, "SELECT total_tokens FROM agent_sessions") == [(5600,)]


def test_a_fork_writes_through_a_connection_of_its_own(tmp_path: Path) -> None:
    path, ids = tmp_path / "t.db", Ids()
    sink = opened(path, buffer=100)
    sink.write(call(ids))
    pid = os.fork()
    if pid == 0:  # pragma: no cover - another process
        sink.write(call(ids))
        os._exit(0 if sink.flush() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    sink.close()
    assert rows(path, "SELECT count(*), count(DISTINCT substr(id, 12)) FROM events") == [(2, 2)]


def test_a_write_from_within_a_commit_joins_the_queue_behind_it(tmp_path: Path) -> None:
    path, ids = tmp_path / "t.db", Ids()
    sink = opened(path)

    class Late(str):
        """Text whose collection records: what a garbage collector may do in any statement."""

        __slots__ = ()

        def __conform__(self, protocol: object) -> str:
            sink.write(call(ids))
            return "late"

    sink.write(Event(Late("x"), "s", 5, "decision", {"question": "q"}))
    assert sink.flush()
    sink.close()
    assert rows(path, "SELECT count(*) FROM events") == [(2,)]


def test_a_locked_file_keeps_the_queue_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "BUSY_S", 0.01)
    monkeypatch.setattr(store, "RETRY_S", 0.0)
    path, ids = tmp_path / "t.db", Ids()
    sink = opened(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    sink.write(call(ids))
    assert not sink.flush()
    other.execute("COMMIT")
    other.close()
    assert sink.flush()
    sink.close()
    assert rows(path, "SELECT count(*) FROM events") == [(1,)]


def test_a_file_that_cannot_exist_loses_only_what_the_queue_cannot_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "QUEUE_MAX", 5)
    monkeypatch.setattr(store, "RETRY_S", 0.0)
    directory = tmp_path / "missing"
    sink, ids = opened(directory / "t.db"), Ids()
    for _ in range(4):
        sink.write(call(ids))
    assert sink.lost == 2
    directory.mkdir()
    assert sink.flush()
    sink.close()
    assert rows(directory / "t.db", "SELECT count(*) FROM events") == [(2,)]


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"my notes" * 200)
    sink = opened(path)
    sink.write(call(Ids()))
    sink.close()
    assert path.read_bytes() == b"my notes" * 200


def test_after_a_failure_it_is_not_tried_again_at_once(tmp_path: Path) -> None:
    sink = opened(tmp_path / "missing" / "t.db")
    (tmp_path / "missing").mkdir()
    assert not sink.flush()


def test_stored_json_has_no_lone_surrogate_and_no_nan() -> None:
    assert to_json({"a": "\ud800é"}) == '{"a":"?é"}'
    with pytest.raises(ValueError, match="JSON compliant"):
        to_json(float("nan"))
