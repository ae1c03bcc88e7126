"""From `provider:model` to a `Model`: one table of providers, each loaded when it is named.

Owns the table, the names and the reading of the environment that providers are known by. It does
not decide which model a task uses. Invariant: an unknown provider, a missing key or an unreadable
script is refused here, before any goal exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from holdfast.adapters.models.hosts import HOSTS, endpoint, missing_extra
from holdfast.adapters.models.prices import Price, price
from holdfast.domain.ports import Model
from holdfast.errors import Refused


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What `resolve` was asked for, with the price it found."""

    model: str
    environ: Mapping[str, str]
    redact: Callable[[str], str]
    timeout_s: float
    price: Price | None
    context_tokens_max: int


def resolve(
    spec: str,
    *,
    environ: Mapping[str, str],
    redact: Callable[[str], str],
    timeout_s: float,
    prices_file: Path | None = None,
    context_tokens_max: int = 32_768,
) -> Model:
    """The model that `spec` names: `openai:NAME`, `ollama:NAME` (may hold colons), `scripted:FILE`.

    `environ` gives the providers' keys and addresses under the names they are known by, such as
    `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL` and `OLLAMA_HOST`. `timeout_s` bounds one whole reply.
    `context_tokens_max` caps the window where the endpoint lets the caller choose it.
    Raises `Refused`; reaches nothing (`probe` does).
    """
    provider, _, model = spec.partition(":")
    if provider not in PROVIDERS:
        raise _unknown_provider(spec, provider)
    if not model:
        raise Refused(
            f"{spec!r} names no model",
            hint=f"such as {_EXAMPLES.get(provider, provider + ':NAME')}",
        )
    return PROVIDERS[provider](
        Asked(
            model=model,
            environ=environ,
            redact=redact,
            timeout_s=timeout_s,
            price=price(spec, prices_file),
            context_tokens_max=context_tokens_max,
        )
    )


# The factories import on use: each provider's library costs up to a second, and one is needed.


def _openai(asked: Asked) -> Model:
    at = endpoint(f"openai:{asked.model}", asked.environ)
    from holdfast.adapters.models.openai import OpenAICompatibleModel  # noqa: PLC0415  see above

    return OpenAICompatibleModel(
        asked.model, at=at, redact=asked.redact, timeout_s=asked.timeout_s, price=asked.price
    )


def _ollama(asked: Asked) -> Model:
    from holdfast.adapters.models.ollama import OllamaModel  # noqa: PLC0415  see above

    return OllamaModel(
        asked.model,
        host=asked.environ.get("OLLAMA_HOST", ""),
        redact=asked.redact,
        timeout_s=asked.timeout_s,
        price=asked.price,
        context_tokens_max=asked.context_tokens_max,
    )


def _scripted(asked: Asked) -> Model:
    from holdfast.adapters.models.scripted import ScriptedModel  # noqa: PLC0415  see above

    return ScriptedModel(
        Path(asked.model), redact=asked.redact, timeout_s=asked.timeout_s, price=asked.price
    )


def _anthropic(asked: Asked) -> Model:
    at = endpoint(spec := f"anthropic:{asked.model}", asked.environ)
    try:
        from holdfast.adapters.models.anthropic import AnthropicModel  # noqa: PLC0415  see above
    except ImportError as error:
        raise missing_extra(spec, "anthropic") from error
    return AnthropicModel(
        asked.model, at=at, redact=asked.redact, timeout_s=asked.timeout_s, price=asked.price
    )


def _hosted(provider: str, asked: Asked) -> Model:
    """A provider that pydantic-ai reaches."""
    at = endpoint(f"{provider}:{asked.model}", asked.environ)
    from holdfast.adapters.models.hosted import HostedModel  # noqa: PLC0415  see above

    return HostedModel(
        provider,
        asked.model,
        at=at,
        environ=asked.environ,
        redact=asked.redact,
        timeout_s=asked.timeout_s,
        price=asked.price,
    )


_OWN: Mapping[str, Callable[[Asked], Model]] = {
    "openai": _openai,
    "ollama": _ollama,
    "scripted": _scripted,
    "anthropic": _anthropic,
}
# Whose probe reaches nothing: their protocols have no common list of models.
HOSTED = tuple(name for name in HOSTS if name not in _OWN)
PROVIDERS: Mapping[str, Callable[[Asked], Model]] = {
    **_OWN,
    **{name: partial(_hosted, name) for name in HOSTED},
}
_EXAMPLES: Mapping[str, str] = {
    "openai": "openai:gpt-5-mini",
    "ollama": "ollama:qwen3:8b",
    "scripted": "scripted:replies.toml",
    "anthropic": "anthropic:claude-sonnet-5-5",
}
REPLAY = "replay"  # the one provider that needs a store, so `App.model` makes it


def _unknown_provider(spec: str, provider: str) -> Refused:
    from difflib import get_close_matches  # noqa: PLC0415  only on the way to an error

    names = [*PROVIDERS, REPLAY]
    near, known = get_close_matches(provider, names, n=1), ", ".join(names)
    return Refused(
        f"there is no model provider {provider!r} in {spec!r}; there are {known}",
        hint=f"did you mean {near[0]}:…?" if near else f"such as {_EXAMPLES['ollama']}",
        code="unknown_provider",
    )
