"""A scripted model server on the loopback: real HTTP, three dialects, faults on demand.

Owns the sockets, the request log and the playing of faults. What to answer is the script's business
(`holdfast.adapters.models.script`), how it looks `dialects`', whether the request is valid
`validate`'s. Invariants: it listens on 127.0.0.1 only; every chat request is in the log before the
first byte of its answer leaves; apart from faults that count down, equal requests get equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.adapters.models.replies import canonical_json
from holdfast.adapters.models.script import (
    Prompter,
    Script,
    ScriptedReply,
    load_script,
    parse_script,
)
from holdfast.errors import Unavailable
from holdfast.testing import dialects, validate

BODY_BYTES_MAX = 64_000_000
IDLE_S_MAX = 60.0
_CHAT = {
    "/api/chat": "ollama",
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One chat request, as the log has it. `status` is what was answered, `rule` empty if none.

    `sequence` counts from 1 in one server's life; `sha256` is of the canonical body, so that a
    repeated request shows.
    """

    sequence: int
    dialect: str
    model: str
    rule: str
    turn: int
    sha256: str
    status: int
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class _Answer:
    status: int
    body: bytes
    problem: str = ""
    rule: str = ""
    turn: int = 0
    reply: ScriptedReply | None = None


class ScriptedServer:
    """Serves one script until closed; a context manager. `script` is a path or plain values.

    `log` gets one JSON line per chat request, appended in one write. `strict` demands the official
    clients' packages for the validation (raises `Unavailable` without them). Raises `Refused` when
    the script is none. Leaving the block raises what a handler raised.
    """

    def __init__(
        self,
        script: Path | Mapping[str, Any],
        *,
        log: Path | None = None,
        port: int = 0,
        strict: bool = False,
    ) -> None:
        loaded = load_script(script) if isinstance(script, Path) else parse_script(script)
        self._desk = _Desk(loaded, log, strict=strict)
        try:
            self._http = _Server(port, self._desk)
        except OSError as error:
            raise Unavailable(f"cannot listen on 127.0.0.1:{port}: {error}") from error
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.02,), name="scripted-model", daemon=True
        )

    @property
    def url(self) -> str:
        """Without a trailing slash: OLLAMA_HOST and ANTHROPIC_BASE_URL as it is, OPENAI_BASE_URL
        with `/v1` behind."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every chat request so far, in the order of arrival."""
        return tuple(self._desk.calls)

    def environ(self) -> dict[str, str]:
        """The variables that point every provider here."""
        return {
            "OLLAMA_HOST": self.url,
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": self._desk.script.api_key or "test-key",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": self._desk.script.api_key or "test-key",
        }

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop listening and wake every delayed answer. Idempotent."""
        self._desk.closing.set()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if error is None and self._http.crashes:
            raise self._http.crashes[0]


class _Desk:
    """Decides what to answer and keeps the log; shared by all handler threads."""

    def __init__(self, script: Script, log: Path | None, *, strict: bool) -> None:
        self.script = script
        self.closing = threading.Event()
        self.calls: list[Call] = []
        self._prompter = Prompter(script)
        self._lock = threading.Lock()
        self._log = log
        self._checks: dict[str, Callable[[], validate.Check]] = {
            dialect: cache(partial(make, strict=strict))
            for dialect, make in validate.MAKERS.items()
        }
        if strict:
            for check in self._checks.values():
                check()

    def chat(self, dialect: str, raw: bytes, authorization: str) -> _Answer:
        """The answer to a chat request, written to the log."""
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            body = {}
            answer = self._refuse(dialect, 400, f"the body is no JSON: {error}")
        else:
            answer = self._answer(dialect, body, authorization)
        self._write(dialect, body, answer)
        return answer

    def lookup(self, path: str, raw: bytes, authorization: str, dialect: str) -> _Answer:
        """The answer to anything but a chat."""
        models, window = self.script.models, self.script.context_tokens
        if (refusal := self._unauthorized(dialect, authorization)) is not None:
            return refusal
        match path:
            case "/api/version":
                value: Mapping[str, Any] = {"version": "0.0.0-scripted"}
            case "/api/tags":
                value = dialects.ollama_tags(models)
            case "/api/ps":
                value = dialects.ollama_ps(models, window)
            case "/api/show":
                name = _object(raw).get("model")
                if not self._knows(name):
                    return self._refuse(dialect, 404, f"model {name!r} not found")
                value = dialects.ollama_show(window)
            case "/v1/models" if dialect == "anthropic":
                value = dialects.anthropic_models(models)
            case "/v1/models":
                value = dialects.openai_models(models)
            case _:
                return self._refuse(dialect, 404, f"there is nothing at {path}")
        return _Answer(status=200, body=canonical_json(value).encode())

    def _answer(self, dialect: str, body: Any, authorization: str) -> _Answer:
        if (refusal := self._unauthorized(dialect, authorization)) is not None:
            return refusal
        if not isinstance(body, dict):
            return self._refuse(dialect, 400, "the body is no object")
        if problem := self._checks[dialect]()(body):
            return self._refuse(dialect, 400, f"invalid request: {problem}")
        if not self._knows(body["model"]):
            return self._refuse(dialect, 404, f"model {body['model']!r} not found")
        with self._lock:
            cue = self._prompter.cue(dialects.MESSAGES[dialect](body))
        if (reply := cue.reply) is None:
            refusal = self._refuse(dialect, 500, cue.problem)
            return replace(refusal, rule=cue.rule, turn=cue.turn)
        if reply.status:
            shown = dialects.error_body(dialect, reply.status, "scripted failure")
            status, sent = reply.status, reply.body.encode() or shown
        elif reply.malformed is not None:
            status, sent = 200, reply.malformed.encode()
        else:
            status, sent = 200, b"".join(dialects.FRAMES[dialect](reply, body, cue.turn))
        return _Answer(status=status, body=sent, rule=cue.rule, turn=cue.turn, reply=reply)

    def _unauthorized(self, dialect: str, authorization: str) -> _Answer | None:
        key = self.script.api_key
        if not key or dialect == "ollama" or authorization in (key, f"Bearer {key}"):
            return None
        return self._refuse(dialect, 401, "Incorrect API key provided")

    def _knows(self, name: Any) -> bool:
        known = {*self.script.models, *(f"{model}:latest" for model in self.script.models)}
        return name in known

    def _refuse(self, dialect: str, status: int, problem: str) -> _Answer:
        body = dialects.error_body(dialect, status, problem)
        return _Answer(status=status, body=body, problem=problem)

    def _write(self, dialect: str, body: Any, answer: _Answer) -> None:
        model = body.get("model", "") if isinstance(body, dict) else ""
        with self._lock:
            call = Call(
                sequence=len(self.calls) + 1,
                dialect=dialect,
                model=model if isinstance(model, str) else "",
                rule=answer.rule,
                turn=answer.turn,
                sha256=hashlib.sha256(canonical_json(body).encode("utf-8", "replace")).hexdigest(),
                status=answer.status,
                problem=answer.problem,
            )
            self.calls.append(call)
            if self._log is not None:
                line = canonical_json(asdict(call)).encode() + b"\n"
                handle = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                try:
                    os.write(handle, line)
                finally:
                    os.close(handle)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, desk: _Desk) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.desk = desk
        self.crashes: list[BaseException] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        # A client that goes away in the middle is what these tests are about.
        if error is not None and not isinstance(error, ConnectionError | TimeoutError):
            self.crashes.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_S_MAX
    server: _Server

    def do_GET(self) -> None:
        self._send(self._lookup(b""))

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= BODY_BYTES_MAX:
            self.send_error(413)
            return
        raw = self.rfile.read(length)
        desk = self.server.desk
        if self._path() in _CHAT:
            self._send(desk.chat(_CHAT[self._path()], raw, self._authorization()))
        else:
            self._send(self._lookup(raw))

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: the log of calls is the log."""

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _lookup(self, raw: bytes) -> _Answer:
        """Two dialects have their lists at one path; Anthropic's clients name a version."""
        openai_like = "anthropic" if self.headers.get("Anthropic-Version") else "openai"
        dialect = openai_like if self.path.startswith("/v1/") else "ollama"
        return self.server.desk.lookup(self._path(), raw, self._authorization(), dialect)

    def _authorization(self) -> str:
        return self.headers.get("X-Api-Key") or self.headers.get("Authorization") or ""

    def _send(self, answer: _Answer) -> None:
        reply = answer.reply
        if reply is not None and reply.delay_s and self.server.desk.closing.wait(reply.delay_s):
            self.close_connection = True
            return
        self.send_response(answer.status)
        if reply is not None and reply.status and reply.retry_after is not None:
            wish = reply.retry_after
            self.send_header("Retry-After", wish if isinstance(wish, str) else f"{wish:g}")
        self.send_header("Content-Type", self._content_type(answer))
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        limit = None if reply is None else reply.cut_after_bytes
        for piece in _split(answer.body[:limit], self.server.desk.script.chunk_bytes):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if limit is not None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.wfile.write(b"0\r\n\r\n")

    def _content_type(self, answer: _Answer) -> str:
        if answer.body.startswith((b"data: ", b"event: ")):
            return "text/event-stream; charset=utf-8"
        is_stream = self.path == "/api/chat" and answer.status == 200
        return "application/x-ndjson" if is_stream else "application/json"


def _split(body: bytes, chunk_bytes: int) -> Iterator[bytes]:
    size = chunk_bytes or 16_384
    for start in range(0, len(body), size):
        yield body[start : start + size]


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
