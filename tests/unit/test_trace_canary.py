"""Canaries: every known key format in ten places, looked for in everything that leaves a trace."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from holdfast.trace import __main__ as alone
from holdfast.trace import d1, export, otlp, read
from holdfast.trace.recorder import ToolCall
from holdfast.trace.redact import from_environment
from trace_samples import SECRETS, hidden_part
from trace_world import World, everything

OWN = {"DEPLOY_TOKEN": "w0rd-of-no-known-format-77", "DB_PASSWORD": "correct horse battery"}
CANARIES = {**{reason: hidden_part(reason) for reason in SECRETS}, **OWN}
PLACES = {
    *("local", "nested", "attribute", "message", "argv", "environment", "child", "diff"),
    *("prompt", "header"),
}


class Client:
    def __init__(self, secret: str) -> None:
        self.setting = secret


def crash(secret: str) -> None:
    local = secret
    nested = {"deep": [{"deeper": (secret, {secret: 1})}]}
    client = Client(secret)
    headers = {"Authorization": secret, "X-Other": f"value {secret}"}
    argv = ["app.py", "--option", secret, f"--other={secret}"]
    raise ValueError(f"refused: {secret}", local, nested, client, headers, argv)


def plant(world: World, secret: str, repository: Path) -> set[str]:
    """Puts one secret into each of the ten places; returns their names."""
    recorder = world.recorder
    sys.argv[:] = ["app.py", "--option", secret]
    recorder.start_session(f"agent {secret}", f"task {secret}")
    try:
        crash(secret)
    except ValueError as error:
        recorder.failure(error)
    recorder.llm_call(
        f"model {secret}",
        prompt=[{"role": "user", "content": f"use {secret} please"}],
        response={"headers": {"authorization": secret}, "text": secret},
        error=ValueError(secret),
    )
    with ToolCall(recorder, "sh", {"env": secret}, descriptors=False, session_id="") as call:
        print(f"printed {secret}")
        environ = {**os.environ, "PLANTED": secret}
        subprocess.run(
            ["sh", "-c", 'printf "%s\\n" "$PLANTED"; printf "%s" "$PLANTED" >&2'],
            env=environ,
            check=True,
        )
        call.exit_code = 0
    recorder.decision(f"why {secret}", secret, secret, {"context": secret})
    (repository / "settings.txt").write_text(f"value {secret}\n")
    recorder.git_diff(path=str(repository))
    recorder.end_session()
    return PLACES


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("canary")
    repository = directory / "repository"
    repository.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    world = World(directory / "t.db", secrets=from_environment(OWN))
    argv = list(sys.argv)
    try:
        for reason in CANARIES:
            assert len(plant(world, {**SECRETS, **OWN}[reason], repository)) == 10
    finally:
        sys.argv[:] = argv
    yield world
    world.close()


def seen_in(text: str) -> list[str]:
    """Which canaries a text shows, as they are, escaped as JSON, or in their first half alone."""
    return [
        reason
        for reason, part in CANARIES.items()
        if part in text or json.dumps(part)[1:-1] in text or part[: max(12, len(part) // 2)] in text
    ]


def test_there_are_at_least_forty_formats_in_ten_places() -> None:
    assert len(SECRETS) >= 40
    assert len(PLACES) == 10
    assert set(OWN) == set(from_environment(OWN))


def test_a_canary_that_sings_is_heard() -> None:
    for reason, part in CANARIES.items():
        assert reason in seen_in(f"leaked {part} here")
        assert reason in seen_in(json.dumps({"leaked": part}))


def test_everything_was_recorded(planted: World) -> None:
    kinds = [event.kind for event in planted.events()]
    expected = ["failure", "llm_call", "failure", "tool_output", "decision", "git_diff"]
    assert kinds.count("llm_call") == len(CANARIES)
    assert kinds.count("git_diff") == len(CANARIES)
    assert set(kinds) == set(expected)
    failure = planted.events("failure")[0]
    assert set(failure.payload["locals"]) >= {"local", "nested", "client", "headers", "argv"}
    assert planted.recorder.lost == 0


def test_no_canary_is_in_the_database_or_its_neighbours(planted: World) -> None:
    assert planted.sink.flush()
    assert seen_in(everything(planted.path)) == []


@pytest.mark.parametrize("format", get_args(export.Format))
def test_no_canary_is_in_an_export(planted: World, format: Any) -> None:
    with planted.reading() as connection:
        assert seen_in("\n".join(export.lines(connection, format))) == []


def test_no_canary_is_in_what_is_sent_to_d1_or_a_collector(planted: World) -> None:
    from holdfast.trace.wire import encode

    with planted.reading() as connection:
        body = json.dumps(list(d1.statements(connection, {})))
        assert seen_in(body) == []
        sent = encode(otlp.request(connection)).decode("utf-8", "backslashreplace")
        assert seen_in(sent) == []


def test_no_canary_is_printed_by_any_verb(
    planted: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert planted.sink.flush()
    with planted.reading() as connection:
        sessions = [row["session_id"] for row in read.sessions(connection, -1)]
    words = [["sessions"], ["events"], ["tail", "--limit", "9999"], ["events", "--json"]]
    words += [["context", "--tokens", "3000", "--session", one] for one in sessions]
    capsys.readouterr()
    for line in words:
        assert alone.main([*line, "--file", str(planted.path)]) == 0
    assert seen_in("".join(capsys.readouterr())) == []


def test_a_mark_stands_in_place_and_nothing_says_what_was_removed(planted: World) -> None:
    with planted.reading() as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        assert {name for (name,) in tables} == {"agent_sessions", "events"}
    text = everything(planted.path)
    marks = {reason for reason in SECRETS if f"[redacted:{reason}]" in text}
    # Of these two the sample begins with a telling name, which hides it first.
    assert set(SECRETS) - marks <= {"aws_secret_key", "bearer"}
    assert "[redacted:credential:DEPLOY_TOKEN]" in text
