"""What a model call costs: one dated table file, exact integers, and no guess.

Owns the table's format and the arithmetic. It does not fetch prices and does not meter budgets.
Invariants: a model that no table names has no price (None), which is never zero; money is a whole
number of 10⁻⁹ US dollars, computed in decimal, so that sums over a journal are exact; of the
shipped table only the row that is asked for is parsed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from holdfast.domain.ports import Usage
from holdfast.errors import Refused
from holdfast.frozen import frozen

# US dollars per million tokens to 10⁻⁹ US dollars per token.
_NUSD_PER_TOKEN = Decimal(1000)
_DATED = re.compile(r"[-@]20\d\d-?[01]\d-?[0-3]\d$")


@frozen
class Price:
    """US dollars per million tokens. `usd_cached` is for input read from a prompt cache,
    `usd_written` for input written to one.

    `long` is the price of a whole call whose input exceeds `long_above` tokens.
    """

    usd_in: Decimal
    usd_out: Decimal
    usd_cached: Decimal
    usd_written: Decimal
    long_above: int = 0
    long: Price | None = None


class Given(TypedDict):
    """What every adapter is made with, whatever it speaks."""

    redact: Callable[[str], str]
    timeout_s: float
    price: Price | None
    stream: bool


def price(model: str, prices_file: Path | None = None) -> Price | None:
    """The price of `provider:model`: `prices_file` if it names it, else the shipped table.

    A row `"provider:*"` prices every model of a provider that no row of the same file names. A
    missing `prices_file` is an empty one. The shipped table takes a name in any case, and a dated
    one that it does not have at the price of the undated. Raises `Refused` when a file cannot be
    read.
    """
    wide = f"{model.partition(':')[0]}:*"
    own = _own(prices_file)
    names = (model.lower(), _DATED.sub("", model.lower()), wide)
    if found := own.get(model) or own.get(wide):
        return found
    return next(filter(None, map(partial(_shipped_row, _shipped()), names)), None)


def cost_nusd(price: Price, usage: Usage) -> int:
    """The cost of `usage` in 10⁻⁹ US dollars; a half is rounded up, once, at the end."""
    if price.long is not None and usage.tokens_in > price.long_above:
        price = price.long
    fresh = usage.tokens_in - usage.tokens_cached - usage.tokens_written
    exact = (
        fresh * price.usd_in
        + usage.tokens_cached * price.usd_cached
        + usage.tokens_written * price.usd_written
        + usage.tokens_out * price.usd_out
    )
    return int((exact * _NUSD_PER_TOKEN).to_integral_value(rounding=ROUND_HALF_UP))


def unpriced(model: str, prices_file: Path) -> Refused:
    """The refusal of a money budget for a model whose price is unknown, with the line to add."""
    return Refused(
        f"the price of {model} is unknown, so a budget in US dollars cannot be kept",
        hint=(
            f'add to {prices_file}, with the real US dollars per million tokens: "{model}" = '
            '{ in = "1.25", out = "10.00", cached = "0.125" }'
        ),
        code="unknown_price",
    )


def table_date() -> str:
    """The day, as YYYY-MM-DD, whose prices the shipped table has."""
    head = _shipped().partition(b"\n\n")[0]
    return str(tomllib.loads(head.decode())["date"])


def _shipped() -> bytes:
    return Path(__file__).with_name("prices.toml").read_bytes()


def _shipped_row(table: bytes, name: str) -> Price | None:
    """The price in the line that begins with `name`: 3,500 lines are found faster than parsed."""
    key = f"{json.dumps(name)} = "
    _, found, rest = table.partition(f"\n{key}".encode())
    row = rest.partition(b"\n")[0].decode()
    return _parse(key + row, "prices.toml")[name] if found else None


def _own(prices_file: Path | None) -> dict[str, Price]:
    if prices_file is None or not prices_file.is_file():
        return {}
    try:
        return _parse(prices_file.read_text(encoding="utf-8"), str(prices_file))
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the prices in {prices_file} cannot be read: {error}") from error


def _parse(text: str, where: str) -> dict[str, Price]:
    try:
        rows = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where} is not valid TOML: {error}", hint="mend or remove it") from error
    return {name: _row(name, row, where) for name, row in rows.items() if name != "date"}


def _row(name: str, row: Any, where: str) -> Price:
    try:
        long = row.get("long")
        base = _usd({key: value for key, value in row.items() if key != "long"})
        if long is None:
            return base
        above = long["above"]
        if type(above) is not int or above < 0:
            raise ValueError(above)
        dear = _usd({key: value for key, value in long.items() if key != "above"})
        return replace(base, long_above=above, long=dear)
    except (AttributeError, KeyError, TypeError, ValueError, InvalidOperation) as error:
        raise Refused(
            f"{where} gives {name!r} no usable price",
            hint='a row is { in = "1.25", out = "10.00" }, dollars per million tokens as text',
        ) from error


def _usd(row: dict[str, Any]) -> Price:
    if not {"in", "out"} <= row.keys() <= {"in", "out", "cached", "written"}:
        raise ValueError(row)
    if not all(isinstance(value, str) for value in row.values()):
        raise TypeError(row)
    usd = {key: Decimal(value) for key, value in row.items()}
    if not all(value.is_finite() and value >= 0 for value in usd.values()):
        raise ValueError(row)
    return Price(
        usd_in=usd["in"],
        usd_out=usd["out"],
        usd_cached=usd.get("cached", usd["in"]),
        usd_written=usd.get("written", usd["in"]),
    )
