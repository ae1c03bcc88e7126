"""Writes the shipped price table from the data of the pinned package genai-prices.

`table()` gives its text, so that a test can say when it is not what this makes. A model is left out
when its price is not one of tokens alone. Where the price depends on the hour the dearest one is
taken, and where it has several steps the dearest above the first: a budget may end early, not late.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices
from pydantic_ai.models import KnownModelName

OUT = Path(__file__).parents[1] / "src/holdfast/adapters/models/prices.toml"
DATE = date(2026, 11, 21)  # the prices of this day; set it when the table is made anew
# Our providers and whose prices they are; who is not here (a server of one's own, a reseller that
# the package does not know) has no price until the home's prices.toml gives one.
SOURCES = {
    "openai": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "azure": "azure",
    "azure-responses": "azure",
    "bedrock": "aws",
    "bedrock-mantle": "aws",
    "cerebras": "cerebras",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "github-copilot": "github-copilot",
    "google": "google",
    "google-cloud": "google",
    "groq": "groq",
    "meta": "meta",
    "mistral": "mistral",
    "moonshotai": "moonshotai",
    "openrouter": "openrouter",
    "ovhcloud": "ovhcloud",
    "together": "together",
    "xai": "x-ai",
    "zai": "zai",
}
AREAS = ("us", "eu", "apac", "jp", "au")  # what a Bedrock inference profile's name begins with
FREE = ("ollama", "replay", "scripted")
COLUMNS = {
    "in": "input_mtok",
    "out": "output_mtok",
    "cached": "cache_read_mtok",
    "written": "cache_write_mtok",
}
BEYOND_TOKENS = ("requests_kcount", "output_reasoning_mtok")
HEAD = """\
# Made by `make docs`; edits here are lost. One row a line: it is searched, not parsed.
# US dollars per million tokens, as text so that no digit is lost. `cached` is input read from the
# provider's prompt cache, `written` input written to it (default of both: as `in`); `long` holds
# for calls with more input than `above`. Names are in lower case.
# Source: the providers' public price pages as collected by the package genai-prices {version}.
# A file of your own with rows of this form overrides these.
date = "{date}"
"""


def table() -> str:
    """The whole file."""
    found = {provider.id: provider for provider in get_snapshot().providers}
    parts = [HEAD.format(version=version("genai-prices"), date=DATE)]
    parts.append("".join(f'"{name}:*" = {{ in = "0", out = "0" }}\n' for name in FREE))
    for ours, theirs in SOURCES.items():
        rows = dict(_rows(ours, found[theirs], found))
        parts.append("".join(f'"{ours}:{name}" = {rows[name]}\n' for name in sorted(rows)))
    return "\n".join(parts)


def _rows(ours: str, provider: Provider, found: dict[str, Provider]) -> Iterator[tuple[str, str]]:
    """(name, row) of every model that the provider serves, its own before others' it resells."""
    for name in _names(ours, provider, found):
        model = provider.find_model(name, all_providers=list(found.values()))
        row = _row(model) if model else None
        if row:
            yield name, row


def _names(ours: str, provider: Provider, found: dict[str, Provider]) -> set[str]:
    """What its models are called: in the package and by pydantic-ai."""
    names = {
        name.partition(":")[2]
        for name in get_args(KnownModelName.__value__)
        if name.partition(":")[0] == ours
    }
    resold = [found[name] for name in provider.fallback_model_providers or ()]
    for model in [model for each in (provider, *resold) for model in each.models]:
        names |= {model.id, *_spelled(model.match)}
    if ours == "bedrock":  # the package has one row for all regions
        names |= {name.replace("regional.", f"{area}.") for name in names for area in AREAS}
    return {name.lower() for name in names if name.isascii() and name.isprintable()}


def _spelled(clause: Any) -> Iterator[str]:
    """The whole names in a rule for matching names; a prefix is one unless it ends in a joint."""
    for inner in getattr(clause, "or_", ()):
        yield from _spelled(inner)
    whole = getattr(clause, "equals", None) or getattr(clause, "starts_with", "")
    if whole and whole[-1].isalnum():
        yield whole


def _row(model: ModelInfo) -> str | None:
    half_hours = [datetime.combine(DATE, time(n // 2, n % 2 * 30), UTC) for n in range(48)]
    price = max((model.get_prices(at) for at in half_hours), key=_dearness)
    if price.input_mtok is None or price.output_mtok is None:
        return None
    if any(getattr(price, key, None) for key in BEYOND_TOKENS):
        return None
    priced = {ours: getattr(price, theirs) for ours, theirs in COLUMNS.items()}
    priced = {column: value for column, value in priced.items() if value is not None}
    base = _usd({column: _base(value) for column, value in priced.items()})
    steps = [v.tiers[0].start for v in priced.values() if isinstance(v, TieredPrices)]
    if not steps:
        return f"{{ {base} }}"
    long = _usd({column: _dearest(value) for column, value in priced.items()})
    return f"{{ {base}, long = {{ above = {min(steps)}, {long} }} }}"


def _dearness(price: ModelPrice) -> tuple[Decimal, Decimal]:
    return _dearest(price.input_mtok or Decimal(0)), _dearest(price.output_mtok or Decimal(0))


def _base(value: Decimal | TieredPrices) -> Decimal:
    return value.base if isinstance(value, TieredPrices) else value


def _dearest(value: Decimal | TieredPrices) -> Decimal:
    return max(tier.price for tier in value.tiers) if isinstance(value, TieredPrices) else value


def _usd(columns: dict[str, Decimal]) -> str:
    return ", ".join(f'{column} = "{value.normalize():f}"' for column, value in columns.items())


if __name__ == "__main__":
    OUT.write_text(table(), encoding="utf-8")
