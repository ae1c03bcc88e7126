"""A real OpenTelemetry collector (Phoenix) takes the spans and gives them back.

Phoenix with what it needs is 850 MB, too heavy for CI: `make phoenix` installs it beside the
environment and runs this. CI sends the spans as JSON to another receiver (`test_trace_collector`)
and decodes the protobuf form with the official classes (`test_trace_export`).
"""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace import otlp
from holdfast.trace.post import Done
from holdfast.trace.recorder import ToolCall
from trace_world import World

PHOENIX = Path(__file__).parents[2] / ".venv" / "phoenix" / "bin" / "phoenix"
START_S = 120.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PHOENIX.exists(),
        reason="skipped: Phoenix (850 MB) is not installed; `make phoenix` does and runs this",
    ),
]


def free_port() -> int:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        return int(reserved.getsockname()[1])


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[str]:
    port = free_port()
    log = (tmp_path / "phoenix.log").open("wb")
    child = subprocess.Popen(
        [PHOENIX, "serve"],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(free_port()),
            "PHOENIX_WORKING_DIR": str(tmp_path),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        },
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + START_S
    try:
        while True:
            assert child.poll() is None, (tmp_path / "phoenix.log").read_text()
            assert time.monotonic() < deadline, "Phoenix did not start"
            try:
                get(f"{url}/v1/projects")
                break
            except (OSError, ValueError):
                child_wait(child)
        yield url
    finally:
        child.terminate()
        child.wait(30)
        log.close()


def child_wait(child: subprocess.Popen[bytes]) -> None:
    """A quarter of a second, less if the child ends."""
    try:
        child.wait(0.25)
    except subprocess.TimeoutExpired:
        return


def test_a_real_collector_takes_the_spans_and_gives_them_back(
    collector: str, tmp_path: Path
) -> None:
    world = World(tmp_path / "t.db")
    recorder = world.recorder
    outer = recorder.start_session("planner", "ship it")
    recorder.start_session("coder")
    recorder.llm_call("gpt-x", tokens_in=10, tokens_out=5, prompt="hi", response="yo")
    with ToolCall(recorder, "shell", {"cmd": "ls"}, descriptors=False, session_id="") as call:
        call.exit_code = 2
    recorder.failure(ValueError("x"))
    recorder.end_session()
    recorder.end_session(outer)
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector}
    with world.reading() as connection:
        assert otlp.sync(connection, environ) == Done(4)
        assert otlp.sync(connection, environ) == Done(4)
        sent = {span["name"]: span for span in otlp.spans(connection)}
    world.close()
    deadline = time.monotonic() + START_S
    found: dict[str, Any] = {}
    while len(found) < 4:
        assert time.monotonic() < deadline, "the spans did not arrive"
        try:
            rows = get(f"{collector}/v1/projects/default/spans?limit=100")["data"]
        except urllib.error.HTTPError:
            continue  # the project appears with its first span
        found = {row["name"]: row for row in rows}
    assert set(found) == set(sent)
    for name, row in found.items():
        assert row["context"]["span_id"] == sent[name]["spanId"]
        assert row["context"]["trace_id"] == sent[name]["traceId"]
        assert (row["parent_id"] or None) == sent[name].get("parentSpanId")
    assert found["chat gpt-x"]["attributes"]["gen_ai.usage.input_tokens"] == 10
    # The collector understands the names: it has made its own kinds and counts of them.
    assert found["chat gpt-x"]["attributes"]["llm.token_count.total"] == 15
    kinds = {name: row["span_kind"] for name, row in found.items()}
    assert kinds["chat gpt-x"] == "LLM"
    assert kinds["execute_tool shell"] == "TOOL"
    assert kinds["invoke_agent coder"] == "AGENT"
    assert found["execute_tool shell"]["status_code"] == "ERROR"
    assert [event["name"] for event in found["invoke_agent coder"]["events"]] == ["exception"]
