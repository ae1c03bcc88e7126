"""The command line against a model server over real HTTP: each dialect, each way to call tools.

Whatever the server does that may pass by itself (429, a cut stream, a malformed body), the goal
still ends passed, and each failure is an attempt of its own in the store.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.support import Cli, broken_invariants, calls, git, make_repo, model_server, says, script

WRITE = {"path": "x.txt", "content": "x\n"}
NATIVE = calls(("write_file", WRITE))
IN_TEXT = says("```json\n" + json.dumps({"tool": "write_file", "arguments": WRITE}) + "\n```")
IN_XML = says(
    '<function_calls><invoke name="write_file"><parameter name="path">x.txt</parameter>'
    '<parameter name="content">x\n</parameter></invoke></function_calls>'
)
WAYS = {"native": NATIVE, "json": IN_TEXT, "xml": IN_XML}
DIALECTS = ("ollama:scripted", "openai:scripted", "anthropic:scripted")
FAULTS: dict[str, dict[str, Any]] = {
    "too many requests": {"status": 429, "retry_after": 0.05, "times": 1},
    "a gateway that is overloaded": {"status": 503, "times": 1},
    "a cut stream": {"cut_after_bytes": 40, "times": 1},
    "a malformed reply": {"malformed": '{"message": {"role": ', "times": 1},
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"README.md": "# Thing\n", "holdfast.toml": "backoff_ms=1"})


def run(repo: Path, played: dict[str, Any], model: str, *flags: str) -> dict[str, Any]:
    with model_server(played, repo.parent / "model") as server:
        cli = Cli(repo, server.environ())
        check = ("--check", "test -f x.txt", "--json")
        done = cli("run", "Make x.txt", "--model", model, *check, *flags)
        assert done.code == 0, done.err
        problems = [call["problem"] for call in server.asked() if call["status"] == 400]
    assert problems == []
    assert git(repo, "show", f"{done.result['branch']}:x.txt") == "x"
    assert broken_invariants(cli.store) == []
    return done.result


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("way", WAYS)
def test_a_goal_passes_in_each_dialect_and_with_each_way_of_calling(
    repo: Path, model: str, way: str
) -> None:
    played = script(WAYS[way], says("It is there."), chunk_bytes=3)
    result = run(repo, played, model, "--calls", "json" if way == "json" else "native")
    assert (result["outcome"], result["attempts"]) == ("passed", 1)
    assert result["usage"]["tokens"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_costs_an_attempt_and_not_the_goal(
    repo: Path, model: str, fault: str
) -> None:
    result = run(repo, script({**NATIVE, **FAULTS[fault]}, says("It is there.")), model)
    assert (result["outcome"], result["attempts"]) == ("passed", 2)
    rows = Cli(repo).store.rows("SELECT failure, outcome FROM attempts ORDER BY number")
    assert rows[0] == {"failure": "transient", "outcome": "failed"}


def test_a_server_that_stays_overloaded_exhausts_the_attempts(repo: Path) -> None:
    with model_server(script({**NATIVE, "status": 503}), repo.parent / "model") as server:
        cli = Cli(repo, server.environ())
        done = cli("run", "Make x.txt", "--model", "ollama:scripted", "--json")
        assert len(server.asked()) == 3
    assert (done.code, done.result["reason"]) == (4, "exhausted")
    assert done.result["attempts"] == 3
