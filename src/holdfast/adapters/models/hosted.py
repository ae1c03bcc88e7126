"""Every other provider that pydantic-ai reaches, each a row of the table in this package.

Owns the making of their model; the rest is `direct`'s. Requests go over the SDK's own
client, so the bound on a reply's size is not ours there; the deadline is. A probe reaches nothing:
these protocols have no common list of models, so the first call tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai.models import infer_model
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from holdfast.adapters.models import transport
from holdfast.adapters.models.direct import DirectModel
from holdfast.adapters.models.keys import missing_key
from holdfast.adapters.models.prices import Price
from holdfast.errors import Refused


class HostedModel(DirectModel):
    """One model of a hosted provider; see `domain.ports.Model`.

    `key` names the variable that holds the key, `extra` what installs the SDK. `PROVIDER_BASE_URL`
    points an SDK that lets it be changed to another address. Raises `Refused` without key or SDK.
    """

    context_tokens: int | None = None

    def __init__(
        self,
        provider: str,
        model: str,
        *,
        key: str,
        extra: str,
        environ: Mapping[str, str],
        redact: Callable[[str], str],
        timeout_s: float,
        price: Price | None,
    ) -> None:
        api_key = transport.checked_key(environ.get(key, ""), variable=key)
        if not api_key:
            raise missing_key(f"{provider}:{model}", key)
        variable = f"{provider.upper().replace('-', '_')}_BASE_URL"
        base_url = environ.get(variable, "")
        if base_url:
            base_url = transport.checked_url(base_url, variable=variable)
        self._provider = _provider(provider, model, extra, api_key)
        if base_url:
            self._provider.client.base_url = base_url
        super().__init__(
            f"{provider}:{model}",
            infer_model(f"{provider}:{model}", lambda name: self._provider),
            endpoint=base_url or provider,
            redact=redact,
            timeout_s=timeout_s,
            price=price,
            settings=ModelSettings(max_retries=0),
        )

    async def probe(self) -> None:
        """Nothing to reach: the key is there, and the first call will tell."""

    async def aclose(self) -> None:
        close = getattr(self._provider.client, "close", None)
        if close is not None:
            await close()


def _provider(provider: str, model: str, extra: str, api_key: str) -> Any:
    try:
        made: Any = infer_provider_class(provider)  # every class of the table takes a key
        return made(api_key=api_key)
    except ImportError as error:
        raise Refused(
            f"{provider}:{model} needs a package that is not installed",
            hint=f"pip install 'holdfast[{extra or 'dev'}]'",
            code="missing_extra",
        ) from error
