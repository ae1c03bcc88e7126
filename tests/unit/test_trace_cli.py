"""The command line of the trace, alone and as `holdfast trace`."""

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import cli
from holdfast.trace import __main__ as alone
from holdfast.trace import commands
from holdfast.trace.recorder import ToolCall
from trace_world import World, environment, lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    world = World(tmp_path / "t.db")
    recorder = world.recorder
    recorder.start_session("agent", "a\x1b[31m task")
    recorder.llm_call("m", tokens_in=10, tokens_out=5)
    recorder.llm_call("m")
    with ToolCall(recorder, "shell", {}, descriptors=False, session_id=""):
        print("out")
    try:
        wrong = 0
        1 / wrong
    except ZeroDivisionError as error:
        recorder.failure(error)
    world.close()
    return world.path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = alone.main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_every_verb_answers_for_people_and_as_json(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    for verb in commands.VERBS:
        if verb.name in ("export", "sync"):
            continue
        code, out, err = run(capsys, verb.name, "--file", str(file))
        assert (code, err) == (0, ""), verb.name
        assert out
        assert "\x1b" not in out
        code, out, err = run(capsys, verb.name, "--json", "--file", str(file))
        assert (code, err) == (0, ""), verb.name
        assert all(isinstance(row, dict) for row in lines(out))


def test_the_same_words_work_under_holdfast(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.main(["trace", "sessions", "--json", "--file", str(file)]) == 0
    (row,) = lines(capsys.readouterr().out)
    assert row["agent_name"] == "agent"
    assert cli.main(["trace", "tokens", "--file", str(file)]) == 0
    assert "15 in all  (1 calls did not say)" in capsys.readouterr().out
    assert cli.main(["trace", "--json", "tokens", "--file", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["total_tokens"] == 15


def test_events_are_filtered_and_limited(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    _, out, _ = run(capsys, "events", "--json", "--type", "llm_call", "--file", str(file))
    assert [row["event_type"] for row in lines(out)] == ["llm_call", "llm_call"]
    _, out, _ = run(capsys, "events", "--json", "--limit", "1", "--file", str(file))
    assert len(lines(out)) == 1
    _, out, _ = run(capsys, "tail", "--json", "--limit", "2", "--file", str(file))
    assert [row["event_type"] for row in lines(out)] == ["tool_output", "failure"]
    session_id = lines(out)[0]["session_id"]
    _, out, _ = run(capsys, "tokens", "--json", "--session", session_id, "--file", str(file))
    assert lines(out)[0]["models"]["m"]["calls"] == 2


def test_why_finds_a_failure_by_id_and_by_place(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    _, out, _ = run(capsys, "events", "--json", "--type", "failure", "--file", str(file))
    (event,) = lines(out)
    place = event["payload"]["location"]
    for what in (
        "failed",
        event["id"],
        place["file"],
        f"{Path(place['file']).name}:{place['line']}",
    ):
        code, out, _ = run(capsys, "why", what, "--tokens", "200", "--file", str(file))
        assert code == 0
        assert "wrong = 0" in out
    for what in ("other.py:1", "other.py", "nothing"):
        code, out, err = run(capsys, "why", what, "--file", str(file))
        assert (code, out) == (1, "")
        assert f"no failure is recorded for {what}" in err


def test_exports_go_to_stdout_or_a_file(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    _, out, _ = run(capsys, "export", "--file", str(file))
    assert len(lines(out)) == 5
    target = tmp_path / "trace.json"
    words = ["export", "--format", "chrome", "--output", str(target), "--file", str(file)]
    code, out, err = run(capsys, *words)
    assert (code, out) == (0, "")
    assert "wrote" in err
    assert json.loads(target.read_text())["traceEvents"]


def test_sync_that_is_off_says_what_is_missing(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLOUDFLARE_API_TOKEN", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    capsys.readouterr()
    code, out, err = run(capsys, "sync", "--json", "--file", str(file))
    assert code == 1
    assert lines(out)[0]["sent"] == 0
    assert "CLOUDFLARE_API_TOKEN not set" in err
    code, _, err = run(capsys, "sync", "--to", "otlp", "--file", str(file))
    assert code == 1
    assert "OTEL_EXPORTER_OTLP_ENDPOINT not set" in err


@pytest.mark.parametrize("verb", ["sessions", "events", "tail", "context", "tokens", "sync"])
def test_a_fresh_machine_gets_a_hint_and_no_error(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, verb, "--file", str(tmp_path / "none.db"))
    assert (code, out) == (0, "")
    assert "there is no trace at" in err
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_is_no_trace_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("notes " * 500)
    code, _, err = run(capsys, "sessions", "--file", str(path))
    assert code == 1
    assert "is not a trace" in err
    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).close()
    assert run(capsys, "sessions", "--file", str(empty))[0] == 1


def test_an_empty_trace_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path / "t.db")
    world.recorder.end_session(world.recorder.start_session("a"))
    world.close()
    connection = sqlite3.connect(world.path)
    connection.execute("DELETE FROM agent_sessions")
    connection.commit()
    connection.close()
    for verb in ("sessions", "events", "tail", "tokens", "context"):
        assert run(capsys, verb, "--file", str(world.path))[0] == 0


def test_the_environment_says_where_the_trace_is(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTLOG_FILE", str(file))
    capsys.readouterr()
    _, out, _ = run(capsys, "sessions", "--json")
    assert len(lines(out)) == 1


def test_follow_prints_what_other_processes_write_until_interrupted(
    file: Path, tmp_path: Path
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast.trace", "tail", "--follow", "--json", "--limit", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"AGENTLOG_FILE": str(file)}),
    )
    try:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["event_type"] == "failure"
        world = World(file)
        for number in range(3):
            world.recorder.decision(str(number), "a", session_id="other")
            found = json.loads(child.stdout.readline())
            assert found["payload"]["question"] == str(number)
        world.close()
    finally:
        child.send_signal(2)
        out, err = child.communicate(timeout=20)
    assert child.returncode == 130
    assert (out, err) == (b"", b"")


def test_who_follows_may_be_there_before_the_trace(tmp_path: Path) -> None:
    file = tmp_path / "later.db"
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast.trace", "tail", "--follow", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment({"AGENTLOG_FILE": str(file)}),
    )
    try:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stderr.readline() == f"waiting for a trace at {file}\n".encode()
        world = World(file)
        world.recorder.decision("q", "a", session_id="first")
        assert json.loads(child.stdout.readline())["payload"]["question"] == "q"
        world.close()
    finally:
        child.send_signal(2)
        child.communicate(timeout=20)
    assert child.returncode == 130


def test_a_reader_that_goes_away_is_no_error(file: Path) -> None:
    world = World(file)
    for number in range(2000):
        world.recorder.decision("q" * 200, str(number), session_id="other")
    world.close()
    command = f"{sys.executable} -m holdfast.trace events --json | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        env=environment({"AGENTLOG_FILE": str(file)}),
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == b""
    assert len(lines(done.stdout)) == 1


def test_a_file_that_cannot_be_written_is_told(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    for place in (tmp_path, tmp_path / "none" / "x"):
        code, out, err = run(capsys, "export", "--file", str(file), "--output", str(place))
        assert (code, out) == (1, "")
        assert err.startswith(f"cannot write {place}: ")


def test_without_a_verb_the_sessions_are_listed(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTLOG_FILE", str(file))
    capsys.readouterr()
    listed = run(capsys, "sessions")
    assert run(capsys) == listed
    assert cli.main(["trace"]) == 0
    assert capsys.readouterr().out == listed[1]
    assert cli.main(["trace", "--json"]) == 0
    assert lines(capsys.readouterr().out)


def test_an_alphabet_without_a_character_shows_its_number(file: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.trace", "context", "--file", str(file)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\xb7" in done.stdout


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        alone.main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(verb.name in out for verb in commands.VERBS)
