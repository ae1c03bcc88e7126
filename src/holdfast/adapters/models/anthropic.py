"""Anthropic's own API: the client, the probe and prompt caching; the rest is `direct`'s.

Every request marks the end of the tools, of the system prompt and of the conversation as cached.
A conversation only grows at its end, so each turn reads what the turn before wrote.
Invariant: nothing is taken from this process's environment but what `resolve` was given.
"""

from __future__ import annotations

from collections.abc import Callable

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel as WireModel
from pydantic_ai.models.anthropic import AnthropicModelSettings
from pydantic_ai.providers.anthropic import AnthropicProvider

from holdfast.adapters.models import transport
from holdfast.adapters.models.direct import ListedModel
from holdfast.adapters.models.hosts import Endpoint
from holdfast.adapters.models.prices import Price

VERSION = "2023-06-01"


class AnthropicModel(ListedModel):
    """One model at Anthropic or at an endpoint that speaks its protocol; see `domain.ports.Model`.

    Its address has no `/v1`. A seed is not sent: the protocol has none.
    """

    _list = "v1/models?limit=1000"

    def __init__(
        self,
        model: str,
        *,
        at: Endpoint,
        redact: Callable[[str], str],
        timeout_s: float,
        price: Price | None,
    ) -> None:
        key = at.key or transport.NO_KEY
        headers = {"X-Api-Key": key, "Anthropic-Version": VERSION}
        self._client = transport.open_client(at.url, timeout_s=timeout_s, headers=headers)
        sdk = AsyncAnthropic(base_url=at.url, api_key=key, http_client=self._client, max_retries=0)
        super().__init__(
            f"anthropic:{model}",
            WireModel(model, provider=AnthropicProvider(anthropic_client=sdk)),
            endpoint=at.url,
            redact=redact,
            timeout_s=timeout_s,
            price=price,
            settings=AnthropicModelSettings(
                anthropic_cache_instructions=True,
                anthropic_cache_tool_definitions=True,
                anthropic_cache_messages=True,
            ),
            # The protocol has lost its sampling parameters: its own client refuses to send them.
            takes_temperature=False,
            empty_turns=False,
        )
