"""A receiver written by others takes OTLP/JSON over HTTP and gives the spans back.

`@genkit-ai/telemetry-server` (npm) is small enough for CI and reads JSON alone; the protobuf form
is decoded by the official classes (`test_trace_export`), and taken by Phoenix with `make phoenix`.
"""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.npm_peer import NODE, PATH, installed
from holdfast.trace import otlp
from holdfast.trace.post import Done
from holdfast.trace.recorder import ToolCall
from trace_world import World

VERSION = "1.43.0"
# It listens on 127.0.0.1 unless told otherwise; its port must be known before it listens.
SERVE = """
const net = require("net");
const {startTelemetryServer, LocalFileTraceStore, LocalFileLogStore} =
  require("@genkit-ai/telemetry-server");
const free = net.createServer().listen(0, "127.0.0.1", () => {
  const port = free.address().port;
  const place = {storeRoot: process.argv[2], indexRoot: process.argv[2]};
  free.close(async () => {
    await startTelemetryServer({
      port, traceStore: new LocalFileTraceStore(place), logStore: new LocalFileLogStore(place),
    });
    console.log(`http://127.0.0.1:${port}`);
  });
});
"""

pytestmark = pytest.mark.slow


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[str]:
    folder = installed("@genkit-ai/telemetry-server", VERSION)
    script = folder / "serve.cjs"
    script.write_text(SERVE)
    log = (tmp_path / "collector.log").open("wb")
    child = subprocess.Popen(
        [NODE / "bin" / "node", script, tmp_path],
        cwd=tmp_path,
        env={"PATH": PATH, "HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    assert child.stdout is not None
    try:
        yield _address(child, tmp_path / "collector.log")
    finally:
        child.terminate()
        child.wait(30)
        child.stdout.close()
        log.close()


def _address(child: "subprocess.Popen[str]", log: Path) -> str:
    assert child.stdout is not None
    for line in child.stdout:  # it also tells what it does
        if line.startswith("http://127.0.0.1:"):
            return line.strip()
    raise AssertionError(f"the receiver ended: {log.read_text()}")


def test_a_receiver_of_others_takes_the_spans_and_gives_them_back(
    collector: str, tmp_path: Path
) -> None:
    world = World(tmp_path / "t.db")
    recorder = world.recorder
    outer = recorder.start_session("planner", "ship it")
    recorder.start_session("coder")
    recorder.llm_call("gpt-x", tokens_in=10, tokens_out=5, prompt="hi", finish_reason="stop")
    with ToolCall(recorder, "shell", {"cmd": "ls"}, descriptors=False, session_id="") as call:
        call.exit_code = 2
    recorder.end_session()
    recorder.end_session(outer)
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{collector}/api/otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
    }
    with world.reading() as connection:
        assert otlp.sync(connection, environ) == Done(4)
        assert otlp.sync(connection, environ) == Done(4), "sending twice gives the same spans"
        sent = {span["name"]: span for span in otlp.spans(connection)}
    world.close()
    (trace_id,) = {span["traceId"] for span in sent.values()}
    with urllib.request.urlopen(f"{collector}/api/traces/{trace_id}", timeout=10) as answer:
        rows: list[dict[str, Any]] = list(json.load(answer)["spans"].values())
    found = {row["displayName"]: row for row in rows}
    assert len(rows) == 4
    assert set(found) == set(sent)
    for name, row in found.items():
        assert row["spanId"] == sent[name]["spanId"]
        assert row.get("parentSpanId") == sent[name].get("parentSpanId")
        assert row["endTime"] == int(sent[name]["endTimeUnixNano"]) // 1_000_000
    chat = found["chat gpt-x"]
    assert chat["spanKind"] == "CLIENT"
    assert int(chat["attributes"]["gen_ai.usage.input_tokens"]) == 10
    assert chat["attributes"]["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["execute_tool shell"]["status"]["code"] == 2
