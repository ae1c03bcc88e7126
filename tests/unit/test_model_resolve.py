"""From `provider:model` to a model: what is refused before anything is reached, and how."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.models import PROVIDERS, resolve
from holdfast.adapters.models.hosts import EXTRAS, HOSTS, installed
from holdfast.adapters.models.ollama import base_url, chat_body
from holdfast.adapters.models.replaying import ReplayingModel
from holdfast.adapters.models.replies import canonical_json, well_formed
from holdfast.adapters.models.transport import is_loopback
from holdfast.domain.ports import Message, Model, ModelReply, ModelRequest, ToolCall, Usage
from holdfast.errors import Divergence, Refused

ASK = ModelRequest(model="m", messages=(Message(role="user", content="hi"),))


def made(spec: str, environ: Mapping[str, str] = {}) -> Model:
    return resolve(spec, environ=environ, redact=str, timeout_s=30)


def test_names_keep_their_colons() -> None:
    model = made("ollama:qwen3:8b")
    assert model.name == "ollama:qwen3:8b"
    asyncio.run(model.aclose())


@pytest.mark.parametrize(
    ("spec", "environ", "says", "hint"),
    [
        ("olama:qwen3", {}, "no model provider 'olama'", "did you mean ollama:…?"),
        ("gpt-5", {}, "there are openai, ollama, scripted", "such as ollama:qwen3:8b"),
        ("deepseek:x", {}, "DEEPSEEK_API_KEY is not set", "set DEEPSEEK_API_KEY"),
        ("deepseek:", {}, "names no model", "such as deepseek:NAME"),
        ("google:x", {}, "GOOGLE_API_KEY is not set", "set GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("vllm:x", {}, "VLLM_BASE_URL is not set", "set VLLM_BASE_URL"),
        ("azure:x", {"AZURE_OPENAI_API_KEY": "k"}, "AZURE_OPENAI_ENDPOINT is not set", ""),
        ("mistral:x", {"MISTRAL_BASE_URL": "http://127.0.0.1:1"}, "MISTRAL_API_KEY is not", ""),
        ("ollama:", {}, "names no model", "such as ollama:qwen3:8b"),
        ("anthropic:claude", {}, "ANTHROPIC_API_KEY is not set", "set ANTHROPIC_API_KEY"),
        ("openai:gpt-5", {}, "OPENAI_API_KEY is not set", "set OPENAI_API_KEY"),
        (
            "openai:gpt-5",
            {"OPENAI_BASE_URL": "https://api.openai.com/v1/"},
            "OPENAI_API_KEY is not set",
            "",
        ),
        ("openai:x", {"OPENAI_BASE_URL": "localhost:1/v1"}, "no http or https address", "such as"),
        ("openai:x", {"OPENAI_BASE_URL": "http://[::1"}, "no http or https address", "such as"),
        ("openai:x", {"OPENAI_API_KEY": "ключ"}, "characters no key has", ""),
        ("ollama:x", {"OLLAMA_HOST": "ftp://host"}, "no http or https address", "such as"),
        ("ollama:x", {"OLLAMA_HOST": "host:port"}, "no http or https address", "such as"),
        ("scripted:/nowhere/at/all.toml", {}, "cannot be read", ""),
    ],
)
def test_what_cannot_work_is_refused_with_a_hint(
    spec: str, environ: Mapping[str, str], says: str, hint: str
) -> None:
    with pytest.raises(Refused) as caught:
        made(spec, environ)
    assert says in caught.value.message
    assert hint in caught.value.hint


def test_a_local_endpoint_needs_no_key() -> None:
    model = made("openai:qwen3", {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert (model.name, model.context_tokens) == ("openai:qwen3", None)
    asyncio.run(model.aclose())


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("1.2.3.4", "http://1.2.3.4:11434"),
        (":56789", "http://127.0.0.1:56789"),
        ("1.2.3.4:5", "http://1.2.3.4:5"),
        ("http://example.com", "http://example.com:80"),
        ("https://example.com", "https://example.com:443"),
        ("https://example.com:5/", "https://example.com:5"),
        ("example.com/path/", "http://example.com:11434/path"),
        ("[::1]", "http://[::1]:11434"),
        ("http://[::1]:5", "http://[::1]:5"),
        ("0.0.0.0:8", "http://127.0.0.1:8"),
        (" 1.2.3.4 ", "http://1.2.3.4:11434"),
    ],
)
def test_the_ollama_host_is_read_as_ollamas_own_client_reads_it(host: str, url: str) -> None:
    assert base_url(host) == url


def test_an_import_of_the_package_loads_no_providers_library() -> None:
    code = (
        "import json, sys, holdfast.adapters.models; sys.stdout.write(json.dumps([*sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"openai", "pydantic_ai", "httpx2", "pydantic"}
    assert heavy.isdisjoint(json.loads(done.stdout))


@pytest.mark.parametrize("provider", HOSTS)
def test_every_provider_is_refused_without_its_key_and_made_with_it(provider: str) -> None:
    host = HOSTS[provider]
    with pytest.raises(Refused) as caught:
        made(f"{provider}:x")
    missing = "bad_endpoint" if host.needs == "address" else "missing_key"
    assert caught.value.code == missing
    name = {"openrouter": "a/b", "bedrock-mantle": "openai.gpt-oss-120b"}.get(provider, "x")
    given = {host.keys[0]: "k", "AWS_REGION": "us-east-1", "SNOWFLAKE_ACCOUNT": "a-b"}
    if host.needs in ("address", "both"):
        given[host.address] = "http://127.0.0.1:9/v1"
    model = made(f"{provider}:{name}", given)
    assert model.name == f"{provider}:{name}"
    asyncio.run(model.aclose())


def test_no_provider_of_the_library_is_forgotten() -> None:
    """Left out: what is no chat, a person's sign-in, a detour of the library's own, and retired."""
    from typing import get_args

    from pydantic_ai.models import KnownModelName, OpenAIChatCompatibleProvider

    known = {name.partition(":")[0] for name in get_args(KnownModelName.__value__)}
    known |= {*get_args(OpenAIChatCompatibleProvider.__value__)}
    left = {name for name in known - {*PROVIDERS} if not name.startswith("gateway/")}
    assert left == {
        "google-decisions",
        "openai-decisions",
        "openai-chat",
        "typesafe",
        "github",
        "test",
    }


def test_without_its_extra_a_provider_is_refused_with_the_extra_to_install() -> None:
    script = """
import json, sys
for module in json.loads(sys.argv[1]).values():
    sys.modules[module] = None
from holdfast.adapters.models import resolve
from holdfast.adapters.models.hosts import HOSTS
from holdfast.errors import Refused
said = {}
for provider, host in HOSTS.items():
    if host.extra:
        given = {host.keys[0]: "k", "AWS_REGION": "us-east-1"}
        try:
            resolve(f"{provider}:openai.gpt-oss-120b", environ=given, redact=str, timeout_s=1)
        except Refused as error:
            said[provider] = [error.code, error.hint]
sys.stdout.write(json.dumps(said))
"""
    line = [sys.executable, "-c", script, json.dumps(dict(EXTRAS))]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {
        provider: ["missing_extra", f"pip install 'holdfast[{host.extra}]'"]
        for provider, host in HOSTS.items()
        if host.extra
    }
    assert all(installed(extra) for extra in EXTRAS)


def test_options_go_out_only_when_they_are_asked_for() -> None:
    bare = chat_body(ASK, num_ctx=512)
    assert bare["options"] == {"num_ctx": 512}
    assert "tools" not in bare
    full = ModelRequest(
        model="m", messages=ASK.messages, temperature=0.0, seed=0, output_tokens_max=5
    )
    assert chat_body(full, num_ctx=512)["options"] == {
        "num_ctx": 512,
        "temperature": 0.0,
        "seed": 0,
        "num_predict": 5,
    }


@pytest.mark.parametrize("text", ['{"path": ', "[1]", "", "[" * 100_000])
def test_arguments_that_are_no_object_go_back_to_ollama_under_a_name_that_says_so(
    text: str,
) -> None:
    call = ToolCall(id="a", name="f", arguments=text)
    asked = ModelRequest(
        model="m", messages=(Message(role="assistant", content="", calls=(call,)),)
    )
    [message] = chat_body(asked, num_ctx=512)["messages"]
    sent = message["tool_calls"][0]["function"]["arguments"]
    assert sent == {"INVALID_JSON": text}


def test_a_replaying_model_gives_the_reply_of_the_turn_for_no_money_and_then_diverges() -> None:
    def at(turn: int) -> ModelRequest:
        said = Message(role="assistant", content="…")
        return replace(ASK, messages=(*ASK.messages, *[said] * turn))

    async def play() -> None:
        replies = [
            ModelReply(text="one", usage=Usage(tokens_in=3, cost_nusd=7)),
            ModelReply(text="two"),
        ]
        model = ReplayingModel("ollama:m", replies)
        await model.probe()
        assert [(await model.complete(at(turn))).text for turn in (0, 0, 1)] == [
            "one",
            "one",
            "two",
        ]
        assert (await model.complete(at(0))).usage == Usage(tokens_in=3, cost_nusd=0)
        with pytest.raises(Divergence, match="asks for model call 3, and 2 were recorded") as gone:
            await model.complete(at(2))
        assert gone.value.step == "model call 3"
        assert (model.name, model.context_tokens) == ("ollama:m", None)
        await model.aclose()

    asyncio.run(play())


def test_half_characters_are_joined_or_replaced() -> None:
    assert well_formed("\ud83e\udd8a") == "🦊"
    assert well_formed("a\ud83eb") == "a�b"
    assert json.loads(canonical_json({"b": "ä", "a": [1.5, None]})) == {"a": [1.5, None], "b": "ä"}


def test_a_scripted_model_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"rules":[{"replies":[]}],"context_tokens":77}', encoding="utf-8")
    model = made(f"scripted:{path}")
    assert (model.name, model.context_tokens) == (f"scripted:{path}", 77)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:1", True),
        ("http://[::1]:1", True),
        ("http://localhost/v1", True),
        ("http://model.localhost", True),
        ("http://10.0.0.1", False),
        ("https://localhost.example.com", False),
    ],
)
def test_only_this_machine_is_reached_without_a_proxy(url: str, here: bool) -> None:
    assert is_loopback(url) is here
