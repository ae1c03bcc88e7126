"""The whole loop against a model server we did not write, in three dialects and under its chaos."""

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.aimock import MODEL, Aimock, aimock
from e2e.support import Cli, broken_invariants, ended, git, make_repo, until

DIALECTS = ["ollama", "openai", "anthropic"]
STREAM = ["true", "false"]
WRITE = {"path": "x.txt", "content": "Grüße — 🦊\n"}


def calls(*named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"toolCalls": [{"name": name, "arguments": json.dumps(given)} for name, given in named]}


LOOP = [
    {"turn": {"content": "Let me look.", **calls(("read_file", {"path": "README.md"}))}},
    {"turn": calls(("read_file", {"path": "README.md"}), ("list_directory", {"path": "."}))},
    {"turn": calls(("write_file", WRITE), ("read_file", {"path": "x.txt"}))},
    {"turn": {"content": "It is there. 🦊"}},
]
FIXTURES = [{"match": {"turnIndex": at}, "response": each["turn"]} for at, each in enumerate(LOOP)]
FAULTS = {
    "malformed": {"malformedRate": 1},
    "disconnect": {"disconnectRate": 1},
    "rate limit": {"rateLimitRate": 1},
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    toml = "backoff_ms = 20\nbackoff_ms_max = 100\nmax_attempts = 50\n"
    return make_repo(tmp_path / "repo", {"README.md": "# Thing\n", "holdfast.toml": toml})


def words(dialect: str) -> list[str]:
    model = ["--model", f"{dialect}:{MODEL}"]
    return ["run", "Make x.txt", *model, "--check", "test -f x.txt", "--json"]


def proven(cli: Cli, result: dict[str, Any]) -> None:
    assert (result["state"], result["outcome"]) == ("complete", "passed")
    assert git(cli.repo, "show", f"{result['branch']}:x.txt") == WRITE["content"].strip()
    assert broken_invariants(cli.store) == []
    replayed = cli("replay", result["tasks"][0]["attempt"], "--json")
    assert replayed.code == 0, replayed.out


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("chunk", ["1", "20", "whole"])
def test_a_goal_passes_against_an_independent_server(
    repo: Path, tmp_path: Path, dialect: str, chunk: str
) -> None:
    more = () if chunk == "whole" else ("-c", chunk)
    with aimock(FIXTURES, tmp_path / "peer", *more) as peer:
        cli = Cli(repo, {**peer.environ(), "HOLDFAST_STREAM": str(chunk != "whole")})
        done = cli(*words(dialect))
        asked = [call["body"] for call in peer.asked() if call["method"] == "POST"]
        assert {body["stream"] for body in asked if "messages" in body} == {chunk != "whole"}
        assert done.code == 0, done.err + done.out
        assert done.result["attempts"] == 1
        assert done.result["usage"]["tokens"] > 0
        proven(cli, done.result)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("stream", STREAM)
def test_a_fault_that_passes_costs_attempts_and_not_the_goal(
    repo: Path, tmp_path: Path, dialect: str, fault: str, stream: str
) -> None:
    with aimock(FIXTURES, tmp_path / "peer") as peer:
        cli = Cli(repo, {**peer.environ(), "HOLDFAST_STREAM": stream})
        peer.chaos(**FAULTS[fault])
        process = cli.start(*words(dialect))
        failed = "SELECT count(*) FROM attempts WHERE outcome = 'failed'"
        until(lambda: cli.store.goals() and cli.store.one(failed), "an attempt that failed")
        peer.chaos()
        done = ended(process)
        assert done.code == 0, done.err + done.out
        assert done.result["attempts"] > 1
        if fault == "rate limit":
            first, second = cli.store.rows("SELECT * FROM attempts ORDER BY number LIMIT 2")
            waited = second["started_ms"] - first["ended_ms"]
            assert waited >= 1000, "its Retry-After is a second, our own backoff a tenth"
        proven(cli, done.result)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", STREAM)
def test_a_bare_500_ends_a_goal_unless_a_chain_leads_past_it(
    repo: Path, tmp_path: Path, dialect: str, stream: str
) -> None:
    """Its chaos mode `drop`: nobody knows whether this very request crashed the server."""
    with aimock(FIXTURES, tmp_path / "peer") as peer, aimock(FIXTURES, tmp_path / "two") as two:
        peer.chaos(dropRate=1)
        peers = {**peer.environ(), "DEEPSEEK_BASE_URL": f"{two.url}/v1"}
        cli = Cli(repo, {**peers, "HOLDFAST_STREAM": stream})
        done = cli(*words(dialect))
        assert (done.code, done.result["reason"]) == (1, "server_error")
        line = words(dialect)
        line[line.index("--model") + 1] = f"{dialect}:{MODEL},deepseek:{MODEL}"
        done = cli(*line, environ={"DEEPSEEK_API_KEY": "k"})
        assert (done.code, done.result["attempts"]) == (0, 1), done.err
        assert "answered 500" in done.err
        proven(cli, done.result)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", STREAM)
def test_a_slow_server_is_waited_for(repo: Path, tmp_path: Path, dialect: str, stream: str) -> None:
    with aimock(FIXTURES, tmp_path / "peer", "--chaos-latency", "300", "-l", "5") as peer:
        cli = Cli(repo, {**peer.environ(), "HOLDFAST_STREAM": stream})
        done = cli(*words(dialect))
        assert (done.code, done.result["attempts"]) == (0, 1), done.err
        proven(cli, done.result)


@pytest.mark.slow
def test_one_dialect_that_limits_its_rate_moves_along_a_chain(repo: Path, tmp_path: Path) -> None:
    with (
        aimock(FIXTURES, tmp_path / "one") as one,
        aimock(FIXTURES, tmp_path / "two") as two,
    ):
        one.chaos(rateLimitRate=1)
        environ = {**two.environ(), "ANTHROPIC_BASE_URL": one.url}
        cli = Cli(repo, environ)
        line = words("anthropic")
        line[line.index("--model") + 1] = f"anthropic:{MODEL},openai:{MODEL}"
        done = cli(*line)
        assert (done.code, done.result["attempts"]) == (0, 1), done.err
        assert "answered 429" in done.err
        proven(cli, done.result)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_official_client_takes_the_peer_for_real(
    tmp_path: Path, dialect: str, stream: bool
) -> None:
    """Strictly validated, so that a pass above means what it says."""
    with aimock(FIXTURES, tmp_path / "peer") as peer:
        text, arguments = CLIENTS[dialect](peer, stream)
    assert text == "Let me look."
    assert arguments == {"path": "README.md"}


def openai_client(peer: Aimock, stream: bool) -> tuple[str, Any]:
    from openai import OpenAI

    client = OpenAI(
        base_url=f"{peer.url}/v1", api_key="k", max_retries=0, _strict_response_validation=True
    )
    asked: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
    with client:
        if stream:
            chunks = list(client.chat.completions.create(**asked, stream=True))
            deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
            said = "".join(delta.content or "" for delta in deltas)
            parts = [call for delta in deltas for call in delta.tool_calls or ()]
            return said, json.loads("".join(part.function.arguments or "" for part in parts))
        message = client.chat.completions.create(**asked).choices[0].message
    return message.content or "", json.loads(message.tool_calls[0].function.arguments)


def anthropic_client(peer: Aimock, stream: bool) -> tuple[str, Any]:
    from anthropic import Anthropic

    client = Anthropic(
        base_url=peer.url, api_key="k", max_retries=0, _strict_response_validation=True
    )
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 99}
    asked["messages"] = [{"role": "user", "content": "hi"}]
    with client:
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
    [text, call] = message.content
    return text.text, call.input


def ollama_client(peer: Aimock, stream: bool) -> tuple[str, Any]:
    from ollama import Client

    client = Client(host=peer.url)
    messages = [{"role": "user", "content": "hi"}]
    if stream:
        parts = list(client.chat(model=MODEL, messages=messages, stream=True))
    else:
        parts = [client.chat(model=MODEL, messages=messages)]
    said = "".join(part.message.content or "" for part in parts)
    called = [call for part in parts for call in part.message.tool_calls or ()]
    client._client.close()
    return said, dict(called[0].function.arguments)


CLIENTS = {"openai": openai_client, "anthropic": anthropic_client, "ollama": ollama_client}


def test_a_peer_that_cannot_be_had_is_an_error_and_no_skip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from e2e import aimock as peer

    monkeypatch.setattr(peer, "INTEGRITY", "sha512-" + "A" * 86 + "==")
    monkeypatch.setenv("npm_config_offline", "true")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    with pytest.raises(AssertionError, match="cannot be installed"):
        peer.installed(tmp_path / "peers")
