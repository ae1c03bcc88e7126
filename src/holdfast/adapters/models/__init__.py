"""From `provider:model` to a `Model`: one table of providers, each loaded when it is named.

Owns the table, the names and the reading of the environment that providers are known by. It does
not decide which model a task uses. Invariant: an unknown provider, a missing key or an unreadable
script is refused here, before any goal exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.adapters.models.hosts import HOSTS, endpoint, missing_extra
from holdfast.adapters.models.prices import Given, price
from holdfast.domain.ports import Model
from holdfast.errors import Refused

_EXAMPLES: Mapping[str, str] = {
    "openai": "openai:gpt-5-mini",
    "ollama": "ollama:qwen3:8b",
    "scripted": "scripted:replies.toml",
    "anthropic": "anthropic:claude-sonnet-5-5",
}
# Whose probe reaches nothing: their protocols have no common list of models.
HOSTED = tuple(name for name in HOSTS if name not in _EXAMPLES)
PROVIDERS = (*_EXAMPLES, *HOSTED)
REPLAY = "replay"  # the one provider that needs a store, so `App.model` makes it


def resolve(
    spec: str,
    *,
    environ: Mapping[str, str],
    redact: Callable[[str], str],
    timeout_s: float,
    prices_file: Path | None = None,
    stream: bool = True,
) -> Model:
    """The model that `spec` names: `openai:NAME`, `ollama:NAME` (may hold colons), `scripted:FILE`.

    `environ` gives the providers' keys and addresses under the names they are known by, such as
    `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL` and `OLLAMA_HOST`. `timeout_s` bounds one whole reply,
    which comes in pieces unless `stream` is off.
    Raises `Refused`; reaches nothing (`probe` does).
    """
    provider, _, model = spec.partition(":")
    if provider not in PROVIDERS:
        raise _unknown_provider(spec, provider)
    if not model:
        hint = f"such as {_EXAMPLES.get(provider, provider + ':NAME')}"
        raise Refused(f"{spec!r} names no model", hint=hint)
    known = price(spec, prices_file)
    given = Given(redact=redact, timeout_s=timeout_s, price=known, stream=stream)
    # Imported on use: each provider's library costs up to a second, and one is needed.
    if provider == "scripted":
        from holdfast.adapters.models.scripted import ScriptedModel  # noqa: PLC0415  see above

        return ScriptedModel(Path(model), **given)
    if provider == "ollama":
        from holdfast.adapters.models.ollama import OllamaModel  # noqa: PLC0415  see above

        return OllamaModel(model, host=environ.get("OLLAMA_HOST", ""), **given)
    at = endpoint(spec, environ)
    try:
        if provider == "openai":
            from holdfast.adapters.models.openai import OpenAICompatibleModel  # noqa: PLC0415  see above

            return OpenAICompatibleModel(model, at=at, **given)
        if provider == "anthropic":
            from holdfast.adapters.models.anthropic import AnthropicModel  # noqa: PLC0415  see above

            return AnthropicModel(model, at=at, **given)
        from holdfast.adapters.models.hosted import HostedModel  # noqa: PLC0415  see above

        return HostedModel(provider, model, at=at, environ=environ, **given)
    except ImportError as error:
        if not HOSTS[provider].extra:  # then it is no extra that is missing
            raise
        raise missing_extra(spec, HOSTS[provider].extra) from error


def _unknown_provider(spec: str, provider: str) -> Refused:
    from difflib import get_close_matches  # noqa: PLC0415  only on the way to an error

    names = [*PROVIDERS, REPLAY]
    near, known = get_close_matches(provider, names, n=1), ", ".join(names)
    return Refused(
        f"there is no model provider {provider!r} in {spec!r}; there are {known}",
        hint=f"did you mean {near[0]}:…?" if near else f"such as {_EXAMPLES['ollama']}",
        code="unknown_provider",
    )
