"""The scripted server against the official clients, and its own checks against bad requests."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import ollama
import openai
import pytest

from holdfast.adapters.models import script
from holdfast.errors import Refused, Unavailable
from holdfast.testing import ScriptedServer
from holdfast.testing.__main__ import main

CALL = {"name": "read_file", "arguments": {"path": "ä🦊.py"}}
TALK = {
    "rules": [
        {
            "when": "special",
            "replies": [{"text": "A special reply."}],
        },
        {
            "replies": [
                {"text": "Grüße 🦊", "thinking": "Hmm.", "calls": [CALL]},
                {"text": "Done.", "usage": {"in": 9, "out": 2, "cached": 4}},
            ]
        },
    ],
    "chunk_bytes": 3,
}
HELLO: list[Any] = [{"role": "user", "content": "hello"}]
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "description": "Read.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
]


def post(url: str, path: str, body: Any) -> tuple[int, bytes]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, raw, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def official(server: ScriptedServer) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{server.url}/v1",
        api_key="k",
        max_retries=0,
        _strict_response_validation=True,
    )


def test_the_official_openai_client_accepts_every_answer() -> None:
    with ScriptedServer(TALK, strict=True) as server, official(server) as client:
        whole = client.chat.completions.create(model="scripted", messages=HELLO, tools=TOOLS)
        message = whole.choices[0].message
        assert message.content == "Grüße 🦊"
        assert message.tool_calls is not None
        assert message.tool_calls[0].type == "function"
        assert json.loads(message.tool_calls[0].function.arguments) == CALL["arguments"]
        assert whole.choices[0].finish_reason == "tool_calls"
        second: list[Any] = [
            *HELLO,
            message.model_dump(include={"role", "content", "tool_calls"}),
            {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "bytes"},
        ]
        done = client.chat.completions.create(model="scripted", messages=second)
        assert done.choices[0].message.content == "Done."
        assert done.usage is not None
        assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (9, 2)
        assert [model.id for model in client.models.list()] == ["scripted"]


def test_the_official_openai_client_reads_the_stream() -> None:
    with ScriptedServer(TALK, strict=True) as server, official(server) as client:
        text, arguments, usage = "", "", None
        stream = client.chat.completions.create(
            model="scripted",
            messages=HELLO,
            stream=True,
            stream_options={"include_usage": True},
        )
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or []:
                    assert call.function is not None
                    arguments += call.function.arguments or ""
        assert text == "Grüße 🦊"
        assert json.loads(arguments) == CALL["arguments"]
        assert usage is not None
        assert usage.completion_tokens > 0


def test_the_official_ollama_client_accepts_every_answer() -> None:
    with ScriptedServer(TALK, strict=True) as server, ollama.Client(server.url) as client:
        whole = client.chat("scripted", HELLO, tools=TOOLS, options={"num_ctx": 512})
        assert (whole.message.content, whole.message.thinking) == ("Grüße 🦊", "Hmm.")
        assert whole.message.tool_calls is not None
        assert whole.message.tool_calls[0].function.arguments == CALL["arguments"]
        parts = list(client.chat("scripted", HELLO, stream=True))
        assert "".join(part.message.content or "" for part in parts) == "Grüße 🦊"
        assert parts[-1].done
        assert parts[-1].eval_count
        assert [model.model for model in client.list().models] == ["scripted:latest"]
        assert client.ps().models[0].context_length == 32_768
        shown = client.show("scripted").modelinfo
        assert shown is not None
        assert shown["scripted.context_length"] == 32_768
        with pytest.raises(ollama.ResponseError, match="not found"):
            client.show("other")
    assert server.calls[0].dialect == "ollama"


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "usr", "content": "x"}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": 3}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x", "mood": 1}]}),
        ("/v1/chat/completions", {"messages": []}),
        ("/v1/chat/completions", {"temperature": "hot"}),
        ("/v1/chat/completions", {"num_ctx": 3}),
        ("/v1/chat/completions", {"tools": [{"type": "function"}]}),
        ("/v1/chat/completions", {"model": ""}),
        ("/v1/chat/completions", {"stream": True, "stream_options": {"what": 1}}),
        (
            "/v1/chat/completions",
            {"messages": [*HELLO, {"role": "tool", "tool_call_id": "a", "content": ""}]},
        ),
        (
            "/v1/chat/completions",
            {
                "messages": [
                    *HELLO,
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "a",
                                "type": "function",
                                "function": {"name": "f", "arguments": "{}"},
                            }
                        ],
                    },
                    {"role": "user", "content": "go on"},
                ]
            },
        ),
        (
            "/v1/chat/completions",
            {
                "messages": [
                    *HELLO,
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "a",
                                "type": "function",
                                "function": {"name": "f", "arguments": "{}"},
                            }
                        ],
                    },
                ]
            },
        ),
        ("/api/chat", {"messages": [{"content": "x"}]}),
        ("/api/chat", {"messages": [{"role": "ghost", "content": "x"}]}),
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "tool_call_id": "a"}]}),
        (
            "/api/chat",
            {
                "messages": [
                    {
                        "role": "assistant",
                        "content": "",
                        "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
                    }
                ]
            },
        ),
        ("/api/chat", {"options": {"num_ctx": "many"}}),
        ("/api/chat", {"options": {"num_contexts": 3}}),
        ("/api/chat", {"max_tokens": 3}),
        ("/api/chat", {"messages": None}),
        ("/api/chat", {"model": 3}),
    ],
)
def test_a_request_no_official_client_sends_is_refused_with_the_reason(
    path: str, change: dict[str, Any]
) -> None:
    good = {"model": "scripted", "messages": HELLO}
    with ScriptedServer(TALK, strict=True) as server:
        assert post(server.url, path, good)[0] == 200
        status, answer = post(server.url, path, {**good, **change})
        assert status == 400
        assert b"invalid request: " in answer
        assert server.calls[-1].problem.startswith("invalid request: ")
        assert [call.status for call in server.calls] == [200, 400]


@pytest.mark.parametrize("body", [b"{nope", b"[]", b"[" * 100_000, b"\xff"])
def test_a_body_that_is_no_request_is_refused_and_logged(body: bytes) -> None:
    with ScriptedServer(TALK) as server:
        assert post(server.url, "/api/chat", body)[0] == 400
        assert [call.status for call in server.calls] == [400]


def test_the_first_rule_whose_words_occur_answers() -> None:
    with ScriptedServer(TALK) as server:
        special = [{"role": "user", "content": "something special"}]
        _, answer = post(server.url, "/api/chat", {"model": "scripted", "messages": special})
        assert b"cial " in answer
        assert server.calls[0].rule == "rule 0 (when 'special')"


def test_equal_requests_get_equal_bytes_and_equal_hashes() -> None:
    body = {"model": "scripted", "messages": HELLO}
    with ScriptedServer(TALK) as server:
        for path in ("/api/chat", "/v1/chat/completions"):
            assert post(server.url, path, body) == post(server.url, path, body)
        assert len({call.sha256 for call in server.calls}) == 1


def test_the_end_of_the_script_is_a_500_that_names_the_rule() -> None:
    said = [*HELLO, *[{"role": "assistant", "content": "x"}] * 2]
    with ScriptedServer(TALK) as server:
        status, answer = post(server.url, "/api/chat", {"model": "scripted", "messages": said})
        assert status == 500
        assert b"script_exhausted: rule 1 has 2 replies, asked for 3" in answer
        assert (server.calls[0].rule, server.calls[0].turn) == ("rule 1", 2)
    with ScriptedServer({"rules": []}) as server:
        status, answer = post(server.url, "/api/chat", {"model": "scripted", "messages": HELLO})
        assert (status, b"no rule matches" in answer) == (500, True)


def test_what_is_not_served_is_not_found() -> None:
    with ScriptedServer(TALK) as server:
        assert post(server.url, "/api/pull", {})[0] == 404
        assert post(server.url, "/api/show", b"{nope")[0] == 404
        assert post(server.url, "/api/chat", {"model": "other", "messages": HELLO})[0] == 404
        version = json.loads(urllib.request.urlopen(f"{server.url}/api/version").read())
        assert version == {"version": "0.0.0-scripted"}


def test_a_body_beyond_the_limit_is_refused_before_it_is_read() -> None:
    with ScriptedServer(TALK) as server:
        connection = HTTPConnection(urlsplit(server.url).netloc, timeout=10)
        connection.putrequest("POST", "/api/chat")
        connection.putheader("Content-Length", str(64_000_001))
        connection.endheaders()
        assert connection.getresponse().status == 413
        connection.close()


def test_text_parts_count_as_the_first_user_message() -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "a special thing"}]}]
    with ScriptedServer(TALK) as server:
        post(server.url, "/v1/chat/completions", {"model": "scripted", "messages": parts})
        assert server.calls[0].rule == "rule 0 (when 'special')"


def test_without_the_packages_the_shape_is_still_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ollama", None)
    with pytest.raises(Unavailable, match="not installed"):
        ScriptedServer(TALK, strict=True)
    with ScriptedServer(TALK) as server:
        good = {"model": "scripted", "messages": HELLO}
        assert post(server.url, "/api/chat", good)[0] == 200
        assert post(server.url, "/api/chat", {**good, "messages": []})[0] == 400
        assert post(server.url, "/api/chat", {**good, "anything": 1})[0] == 200


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"rules": [{"replies": [{"txt": "x"}]}]}, r"\$\.rules\[0\]\.replies\[0\]"),
        ({"rules": [{}]}, "replies"),
        ({}, "rules"),
        ({"rules": [{"replies": [{"calls": [{"arguments": {}}]}]}]}, "name"),
        ({"rules": [{"replies": [{"text": 3}]}]}, "Expected `str`"),
    ],
)
def test_a_file_that_is_no_script_is_refused_with_the_place(
    data: dict[str, Any], says: str
) -> None:
    with pytest.raises(Refused, match=says):
        ScriptedServer(data)


def test_a_script_that_cannot_be_parsed_is_refused(tmp_path: Path) -> None:
    for name, text in (("a.toml", "= nope"), ("a.json", "{nope")):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        with pytest.raises(Refused, match="is not valid"):
            ScriptedServer(path)


def test_a_port_that_is_taken_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(Unavailable, match="cannot listen"):
            ScriptedServer(TALK, port=taken.getsockname()[1])


def test_a_handler_that_breaks_fails_the_test_that_uses_it() -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError

    server = ScriptedServer(TALK).start()
    server._desk.lookup = broken  # type: ignore[method-assign]  a planted bug
    with pytest.raises(ZeroDivisionError), server_block(server), pytest.raises(ConnectionError):
        urllib.request.urlopen(f"{server.url}/api/version")


class server_block:
    """`with` over a server that runs already."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    def __enter__(self) -> None:
        """Started by the caller."""

    def __exit__(self, *error: Any) -> None:
        self._server.__exit__(*error)


def test_a_script_can_be_toml_and_served_by_a_process_that_counts(tmp_path: Path) -> None:
    file, log = tmp_path / "script.toml", tmp_path / "calls.jsonl"
    file.write_text('[[rules]]\nwhen = "hel"\n[[rules.replies]]\ntext = "one"\n', encoding="utf-8")
    log.write_text('{"kept": true}\n', encoding="utf-8")
    command = [sys.executable, "-m", "holdfast.testing", "serve", str(file), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert told["pid"] == process.pid
            body = {"model": "scripted", "messages": HELLO, "stream": False}
            # A client that dies before it has read its answer was a call all the same.
            with socket.create_connection(("127.0.0.1", urlsplit(told["url"]).port)) as client:
                raw = json.dumps(body).encode()
                head = f"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: {len(raw)}\r\n\r\n"
                client.sendall(head.encode() + raw)
                assert client.recv(1)
            status, answer = post(told["url"], "/api/chat", body)
            assert (status, json.loads(answer)["message"]["content"]) == (200, "one")
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
    kept, *calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert kept == {"kept": True}
    assert [call["sequence"] for call in calls] == [1, 2]
    assert {call["rule"] for call in calls} == {"rule 0 (when 'hel')"}
    assert len({call["sha256"] for call in calls}) == 1


def test_the_command_line_refuses_what_is_no_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    try:
        assert main(["serve", str(tmp_path / "missing.toml")]) == 2
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert "cannot be read" in capsys.readouterr().err


def test_the_log_is_private_to_its_owner(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    with ScriptedServer(TALK, log=log) as server:
        post(server.url, "/api/chat", {"model": "scripted", "messages": HELLO})
    assert os.stat(log).st_mode & 0o077 == 0


def test_many_clients_at_once_are_all_answered_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    body = {"model": "scripted", "messages": HELLO}
    with ScriptedServer(TALK, log=log) as server, ThreadPoolExecutor(20) as clients:
        asked = [clients.submit(post, server.url, "/api/chat", body) for _ in range(60)]
        assert {each.result()[0] for each in asked} == {200}
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["sequence"] for line in lines] == list(range(1, 61))


def test_the_example_in_the_description_of_the_format_is_a_script(tmp_path: Path) -> None:
    example = textwrap.dedent(
        (script.__doc__ or "").partition("JSON:\n")[2].partition("\nOther")[0]
    )
    path = tmp_path / "example.toml"
    path.write_text(example, encoding="utf-8")
    loaded = script.load_script(path)
    assert loaded.chunk_bytes == 3
    assert [reply.status for reply in loaded.rules[0].replies] == [0, 429]
    assert loaded.rules[0].replies[0].calls[0].arguments_text == '{"path":"a.py"}'
