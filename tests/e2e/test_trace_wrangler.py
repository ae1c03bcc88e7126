"""A real local D1 (`wrangler d1 execute --local`) takes the schema and every exported statement."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.npm_peer import NODE, PATH, installed
from holdfast.trace import d1
from holdfast.trace.recorder import ToolCall
from holdfast.trace.store import SCHEMA
from trace_world import World

VERSION = "4.164.0"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wrangler() -> Path:
    folder = installed("wrangler", VERSION, scripts=True)
    return folder / "node_modules" / "wrangler" / "bin" / "wrangler.js"


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def as_text(statement: d1.Statement) -> str:
    """The statement with its parameters written in; D1's HTTP API binds them instead."""
    pieces = statement["sql"].split("?")
    values = [literal(value) for value in statement["params"]] + [""]
    return "".join(piece + value for piece, value in zip(pieces, values, strict=True))


class LocalD1:
    def __init__(self, script: Path, directory: Path) -> None:
        self.script, self.directory = script, directory
        (directory / "wrangler.json").write_text(
            json.dumps(
                {
                    "name": "trace",
                    "compatibility_date": "2026-01-01",
                    "d1_databases": [
                        {"binding": "DB", "database_name": "trace", "database_id": "0" * 32}
                    ],
                }
            )
        )

    def run(self, statements: list[str]) -> list[dict[str, Any]]:
        path = self.directory / "statements.sql"
        path.write_text(";\n".join(statements) + ";\n", encoding="utf-8")
        done = subprocess.run(
            [
                *(NODE / "bin" / "node", self.script, "d1", "execute", "trace", "--local"),
                *("--json", "--file", path, "--config", self.directory / "wrangler.json"),
            ],
            cwd=self.directory,
            env={
                "PATH": PATH,
                "HOME": str(self.directory),
                "CI": "1",
                "WRANGLER_SEND_METRICS": "false",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


def test_schema_and_rows_are_taken_and_read_back_the_same(wrangler: Path, tmp_path: Path) -> None:
    world = World(tmp_path / "t.db")
    recorder = world.recorder
    recorder.start_session("it's", 'a "task" with 漢字 and ; -- signs')
    recorder.llm_call("m", tokens_in=10, tokens_out=5, prompt="what's\nnew?")
    with ToolCall(recorder, "shell", {}, descriptors=False, session_id="") as call:
        print("out 'quoted'")
        call.exit_code = 1
    recorder.decision("q?", "a", "r")
    recorder.failure(ValueError("x"))
    recorder.end_session()
    recorder.start_session("open")
    local = LocalD1(wrangler, tmp_path)
    with world.reading() as connection:
        statements = [as_text(statement) for statement in d1.statements(connection, {})]
        sessions = connection.execute("SELECT * FROM agent_sessions ORDER BY 1").fetchall()
        events = connection.execute("SELECT * FROM events ORDER BY 1").fetchall()
    # Twice: sending again changes nothing.
    local.run([*SCHEMA, *statements, *statements])
    found = local.run(
        ["SELECT * FROM agent_sessions ORDER BY 1", "SELECT * FROM events ORDER BY 1", d1.THERE]
    )
    rows = [[tuple(row.values()) for row in item["results"]] for item in found]
    assert rows[0] == sessions
    assert rows[1] == events
    assert rows[2] == [(events[0][1], len(events), events[-1][0])]
    world.close()


def test_a_sixth_type_of_event_is_refused_there_too(wrangler: Path, tmp_path: Path) -> None:
    local = LocalD1(wrangler, tmp_path)
    row = "INSERT INTO events VALUES ('1', 's', 1, 'transition', '{}')"
    session = "INSERT INTO agent_sessions VALUES ('s', 1, 2, 'a', 't', 0)"
    with pytest.raises(AssertionError, match="CHECK constraint failed"):
        local.run([*SCHEMA, session, row])
