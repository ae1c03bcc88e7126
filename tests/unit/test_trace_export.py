"""Exports: JSON lines, Chrome traces, OTLP in JSON and protobuf, and the sender."""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast.trace import export, otlp, post, wire
from holdfast.trace.recorder import ToolCall
from trace_world import World, lines


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "t.db")
    recorder = found.recorder
    outer = recorder.start_session("planner", "ship it")
    recorder.llm_call(
        "gpt-x",
        tokens_in=10,
        tokens_out=5,
        tokens_written=3,
        tokens_reasoning=2,
        finish_reason="stop",
        prompt="hi",
        operation="plan",
    )
    recorder.start_session("coder")
    recorder.llm_call("gpt-x", tokens_in=1, tokens_out=1, tokens_cached=1, error=ValueError("busy"))
    with ToolCall(recorder, "shell", {"cmd": "ls"}, descriptors=False, session_id="") as call:
        print("out")
        call.exit_code = 2
    with ToolCall(recorder, "noop", {}, descriptors=False, session_id=""):
        pass
    recorder.decision("which?", "this")
    recorder.failure(KeyError("k"))
    recorder.end_session()
    recorder.end_session(outer)
    recorder.start_session("open")
    yield found
    found.close()


class Server:
    """A real HTTP server on this machine that answers from a script and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                outer.asked.append((self.path, headers, body))
                default = (200, {}, b"{}")
                code, more, answer = outer.answers.pop(0) if outer.answers else default
                self.send_response(code)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def text_of(world: World, format: Any, session_id: str = "") -> str:
    with world.reading() as connection:
        return "\n".join(export.lines(connection, format, session_id=session_id))


def test_json_lines_hold_every_row_under_readable_names(world: World) -> None:
    found = lines(text_of(world, "jsonl"))
    assert [row["type"] for row in found] == ["session"] * 3 + ["event"] * 6
    assert found[0]["agent_name"] == "planner"
    call = next(row for row in found if row.get("event_type") == "llm_call")
    assert call["payload"]["tokens_total"] == 15
    assert {
        row["session_id"] for row in lines(text_of(world, "jsonl", found[1]["session_id"]))
    } == {found[1]["session_id"]}


def test_a_chrome_trace_has_slices_for_calls_and_instants_for_the_rest(world: World) -> None:
    found = json.loads(text_of(world, "chrome"))
    by_phase: dict[str, list[str]] = {}
    for row in found["traceEvents"]:
        by_phase.setdefault(row["ph"], []).append(row["name"])
        assert row["pid"] == 1
    assert by_phase["X"] == ["planner", "coder", "gpt-x", "gpt-x", "shell", "noop"]
    assert by_phase["i"] == ["which?", "KeyError"]
    assert by_phase["M"] == ["thread_name"] * 3


def test_an_export_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    assert export.write(["a", "b"], path) == 2
    assert path.read_text() == "a\nb\n"

    def broken() -> Iterator[str]:
        yield "c"
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        export.write(broken(), path)
    assert path.read_text() == "a\nb\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def spans_of(world: World) -> dict[str, dict[str, Any]]:
    with world.reading() as connection:
        return {span["name"]: span for span in otlp.spans(connection)}


def attributes(item: dict[str, Any]) -> dict[str, Any]:
    return {row["key"]: next(iter(row["value"].values())) for row in item["attributes"]}


def test_sessions_calls_and_tools_are_spans_by_the_genai_names(world: World) -> None:
    spans = spans_of(world)
    assert list(spans) == [
        "invoke_workflow planner",
        "plan gpt-x",
        "invoke_agent coder",
        "chat gpt-x",
        "execute_tool shell",
        "execute_tool noop",
        "invoke_agent open",
    ]
    root, agent = spans["invoke_workflow planner"], spans["invoke_agent coder"]
    chat, tool = spans["chat gpt-x"], spans["execute_tool shell"]
    assert "parentSpanId" not in root
    assert agent["parentSpanId"] == root["spanId"]
    assert chat["parentSpanId"] == tool["parentSpanId"] == agent["spanId"]
    assert {len(span["traceId"]) for span in spans.values()} == {32}
    assert root["traceId"] == tool["traceId"] != spans["invoke_agent open"]["traceId"]
    assert attributes(spans["plan gpt-x"])["gen_ai.usage.input_tokens"] == "10"
    assert attributes(chat)["gen_ai.usage.cache_read.input_tokens"] == "1"
    assert attributes(chat)["error.type"] == "ValueError"
    assert chat["kind"] == 3
    assert attributes(tool)["gen_ai.tool.name"] == "shell"
    assert attributes(tool)["gen_ai.tool.call.result"] == "out\n"
    assert attributes(tool)["error.type"] == "_OTHER"
    assert tool["status"] == {"code": 2}
    assert "status" not in spans["execute_tool noop"]
    assert [event["name"] for event in agent["events"]] == ["agentlog.decision", "exception"]
    assert attributes(agent["events"][1])["exception.type"] == "KeyError"
    assert agent["status"] == {"code": 2}


def test_usage_stands_on_the_model_calls_alone(world: World) -> None:
    with_usage = [
        name
        for name, span in spans_of(world).items()
        if any("usage" in key for key in attributes(span))
    ]
    assert with_usage == ["plan gpt-x", "chat gpt-x"]


def test_the_protobuf_is_what_the_official_classes_read(world: World) -> None:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with world.reading() as connection:
        request = otlp.request(connection)
    scope = request["resourceSpans"][0]["scopeSpans"][0]
    scope["spans"][0]["attributes"] += [
        {"key": "n", "value": {"intValue": "-5"}},
        {"key": "d", "value": {"doubleValue": 1.5}},
        {"key": "b", "value": {"boolValue": True}},
    ]
    message = ExportTraceServiceRequest()
    message.ParseFromString(wire.encode(request))
    decoded = MessageToDict(message, use_integers_for_enums=True)
    found = decoded["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span, expected in zip(found, scope["spans"], strict=True):
        assert bytes_of(span["traceId"]) == expected["traceId"]
        assert span["name"] == expected["name"]
        assert span["kind"] == expected["kind"]
        assert span["startTimeUnixNano"] == expected["startTimeUnixNano"]
        assert span.get("attributes", []) == expected["attributes"]
        assert [row["name"] for row in span.get("events", [])] == [
            row["name"] for row in expected.get("events", [])
        ]
        assert span.get("status") == expected.get("status")


def test_the_json_is_what_the_official_classes_read(world: World) -> None:
    import base64

    from google.protobuf.json_format import Parse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def in_base64(item: Any) -> Any:
        """OTLP/JSON writes ids in hex where protobuf's own JSON has base64."""
        if isinstance(item, list):
            return [in_base64(one) for one in item]
        if not isinstance(item, dict):
            return item
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode()
            if key in ("traceId", "spanId", "parentSpanId")
            else in_base64(value)
            for key, value in item.items()
        }

    found = json.loads(text_of(world, "otlp"))
    message = Parse(json.dumps(in_base64(found)), ExportTraceServiceRequest())
    assert len(message.resource_spans[0].scope_spans[0].spans) == 7


def bytes_of(text: str) -> str:
    import base64

    return base64.b64decode(text).hex()


def test_a_key_the_wire_does_not_know_is_refused() -> None:
    with pytest.raises(KeyError):
        wire.encode({"nonsense": 1})


def send(world: World, environ: dict[str, str]) -> tuple[post.Done, list[float]]:
    waits: list[float] = []
    with world.reading() as connection:
        return otlp.sync(connection, environ, wait=waits.append), waits


def test_spans_go_to_the_endpoint_of_the_environment(world: World, server: Server) -> None:
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": server.url + "/",
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, other=c,broken",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "3000",
        "OTEL_SERVICE_NAME": "mine",
    }
    assert send(world, environ)[0] == post.Done(7)
    path, headers, body = server.asked[0]
    assert path == "/v1/traces"
    assert headers["x-key"] == "a b"
    assert headers["other"] == "c"
    assert headers["content-type"] == "application/x-protobuf"
    assert b"mine" in body
    as_json = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": server.url + "/own",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json",
    }
    assert send(world, as_json)[0] == post.Done(7)
    path, headers, body = server.asked[1]
    assert path == "/own"
    assert headers["content-type"] == "application/json"
    assert len(json.loads(body)["resourceSpans"][0]["scopeSpans"][0]["spans"]) == 7


def test_many_spans_go_in_several_requests(
    world: World, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "SPANS_MAX", 3)
    assert send(world, {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url})[0] == post.Done(7)
    assert len(server.asked) == 3


def test_without_an_endpoint_or_with_grpc_nothing_is_sent(world: World) -> None:
    assert "not set" in send(world, {})[0].error
    grpc = {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    assert "'grpc' is not supported" in send(world, grpc)[0].error


def test_a_busy_collector_is_asked_again_and_a_refusing_one_is_not(
    world: World, server: Server
) -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url}
    server.answers = [(503, {"Retry-After": "2"}, b""), (429, {}, b""), (200, {}, b"{}")]
    assert send(world, environ) == (post.Done(7), [2.0, 1.0])
    server.answers = [(503, {"Retry-After": "900"}, b"")] * 3
    done, waits = send(world, environ)
    assert "answered 503" in done.error
    assert waits == [post.WAIT_S_MAX] * 2
    server.answers = [(401, {}, b"secret text")]
    done, waits = send(world, environ)
    assert done == post.Done(0, "http://127.0.0.1 answered 401 Unauthorized")
    assert waits == []


def test_only_this_machine_may_be_reached_without_tls(world: World) -> None:
    done, _ = send(world, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://user:pw@example.com:4318"})
    assert done.error == "http://example.com is neither https nor this machine"
    done, _ = send(world, {"OTEL_EXPORTER_OTLP_ENDPOINT": "file:///etc/passwd"})
    assert "neither https" in done.error


def test_a_collector_that_is_not_there_is_an_error_after_three_attempts(world: World) -> None:
    import socket

    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        done, waits = send(world, {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}"})
    assert "did not answer" in done.error
    assert len(waits) == post.ATTEMPTS_MAX - 1


def test_an_empty_trace_exports_to_nothing(tmp_path: Path, server: Server) -> None:
    world = World(tmp_path / "empty.db")
    session_id = world.recorder.start_session("a")
    world.recorder.end_session()
    connection = sqlite3.connect(tmp_path / "empty.db")
    connection.execute("DELETE FROM agent_sessions")
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url}
    assert otlp.sync(connection, environ) == post.Done(0)
    assert json.loads("\n".join(export.lines(connection, "chrome")))["traceEvents"] == []
    assert server.asked == []
    connection.close()
    world.close()
    assert session_id
