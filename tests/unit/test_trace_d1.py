"""D1: a fake of its HTTP API over real SQLite, with the documented nested answers."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace import d1
from holdfast.trace.post import Done
from trace_world import World

TOKEN = "cf-" + "token-123456"


class FakeD1:
    """Answers `/accounts/A/d1/database/D/query` in the documented shape, over real SQLite.

    `{result: [{results, success, meta}], success, errors, messages}`: one result per statement.
    """

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self.database.execute("PRAGMA foreign_keys = ON")
        self.database.row_factory = sqlite3.Row
        self.bodies: list[bytes] = []
        self.fail: list[Any] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code, answer = outer.answer(self.path, self.headers["Authorization"], body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()
        self.environ = {
            "CLOUDFLARE_ACCOUNT_ID": "A",
            "CLOUDFLARE_D1_DATABASE_ID": "D",
            "CLOUDFLARE_API_TOKEN": TOKEN,
            "CLOUDFLARE_API_BASE_URL": f"http://127.0.0.1:{self.http.server_port}",
        }

    def answer(self, path: str, authorization: str, body: bytes) -> tuple[int, Any]:
        self.bodies.append(body)
        if self.fail:
            found = self.fail.pop(0)
            if found is not None:
                code, answer, applied = found
                if applied:
                    self.run(json.loads(body)["batch"])
                return code, answer
        if path != "/accounts/A/d1/database/D/query" or authorization != f"Bearer {TOKEN}":
            return 403, {"success": False, "errors": [{"code": 10000}], "result": None}
        try:
            result = self.run(json.loads(body)["batch"])
        except sqlite3.Error as error:
            errors = [{"code": 7500, "message": str(error)}]
            return 200, {"success": False, "errors": errors, "messages": [], "result": []}
        return 200, {"success": True, "errors": [], "messages": [], "result": result}

    def run(self, batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        result = []
        self.database.execute("BEGIN")
        try:
            for statement in batch:
                assert all(isinstance(value, str) for value in statement["params"])
                rows = self.database.execute(statement["sql"], statement["params"]).fetchall()
                meta = {"changes": 0, "duration": 0.1, "served_by": "fake"}
                result.append({"results": [dict(r) for r in rows], "success": True, "meta": meta})
        except sqlite3.Error:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")
        return result

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.database.execute(f"SELECT * FROM {table} ORDER BY 1")]

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
        self.database.close()


@pytest.fixture
def fake() -> Iterator[FakeD1]:
    found = FakeD1()
    yield found
    found.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "t.db")
    found.recorder.start_session("a", "it's a task")
    for number in range(70):
        found.recorder.llm_call("m", tokens_in=number, tokens_out=1, prompt=f"q {number}")
    yield found
    found.close()


def sync(world: World, environ: dict[str, str]) -> Done:
    with world.reading() as connection:
        return d1.sync(connection, environ, wait=lambda _: None)


def local(world: World, table: str) -> list[tuple[Any, ...]]:
    with world.reading() as connection:
        return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def same(world: World, fake: FakeD1) -> bool:
    tables = ("agent_sessions", "events")
    return all(local(world, table) == fake.rows(table) for table in tables)


def test_both_tables_arrive_with_the_types_of_their_columns(world: World, fake: FakeD1) -> None:
    assert sync(world, fake.environ) == Done(71)
    assert same(world, fake)
    assert isinstance(fake.rows("agent_sessions")[0][1], int)
    assert fake.rows("agent_sessions")[0][2] is None


def test_a_second_sync_sends_only_what_is_new(world: World, fake: FakeD1) -> None:
    sync(world, fake.environ)
    assert sync(world, fake.environ) == Done(1)
    world.recorder.decision("q", "a")
    world.recorder.end_session()
    assert sync(world, fake.environ) == Done(2)
    assert same(world, fake)


def test_an_event_committed_late_below_the_last_one_is_sent_too(world: World, fake: FakeD1) -> None:
    sync(world, fake.environ)
    session_id = local(world, "agent_sessions")[0][0]
    early = ("0", session_id, 1, "decision", "{}")
    connection = sqlite3.connect(world.path)
    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", early)
    connection.commit()
    connection.close()
    assert sync(world, fake.environ) == Done(72)
    assert same(world, fake)


@pytest.mark.parametrize(
    ("fails", "problem"),
    [
        ([(500, b"", False)], ""),
        ([None, None, (502, b"<html>", True)], ""),
        ([None, None, None, (503, b"", True), (503, b"", True), (503, b"", False)], "answered 503"),
        ([(200, b"no json", False)], "something else than JSON"),
        ([(200, {"result": None, "success": False, "errors": [{"code": 7403}]}, False)], "7403"),
        ([(200, [], False)], "no reason given"),
        ([(200, {"success": True, "result": [{"success": False}]}, False)], "a statement"),
        ([(401, b"{}", False)], "answered 401"),
    ],
)
def test_whatever_fails_a_repeated_sync_ends_with_the_same_rows(
    world: World, fake: FakeD1, fails: list[Any], problem: str
) -> None:
    fake.fail = fails
    done = sync(world, fake.environ)
    assert problem in done.error
    assert bool(problem) == bool(done.error)
    assert TOKEN not in done.error
    fake.fail = []
    assert sync(world, fake.environ).error == ""
    assert same(world, fake)


def test_it_is_off_unless_all_three_variables_are_set(world: World, fake: FakeD1) -> None:
    for name in d1.VARIABLES:
        environ = {key: value for key, value in fake.environ.items() if key != name}
        assert sync(world, environ) == Done(0, f"D1 is off: {name} not set")
    assert fake.bodies == []


def test_a_wrong_token_is_refused_by_name_of_the_code(world: World, fake: FakeD1) -> None:
    done = sync(world, {**fake.environ, "CLOUDFLARE_API_TOKEN": "wrong"})
    assert "403" in done.error


def test_an_answer_without_rows_means_that_nothing_is_there() -> None:
    assert d1._rows([]) == []
    assert d1._rows([{"results": None}]) == []
