"""Prices: exact integers that equal a calculation by hand, and no price where none is known."""

import importlib.util
import re
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest

from holdfast.adapters.models import PROVIDERS, prices
from holdfast.adapters.models.prices import Price, cost_nusd, price, table_date, unpriced
from holdfast.domain.ports import Usage
from holdfast.errors import Refused


def known(model: str, prices_file: Path | None = None) -> Price:
    found = price(model, prices_file)
    assert found is not None
    return found


def test_the_shipped_table_is_dated_and_every_row_of_it_can_be_read() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", table_date())
    assert known("openai:gpt-5-mini").usd_in == Decimal("0.25")


def test_the_shipped_table_is_what_its_script_makes_of_the_pinned_package() -> None:
    path = Path(__file__).parents[2] / "scripts/generate_prices.py"
    spec = importlib.util.spec_from_file_location("generate_prices", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made = script.table()
    assert made.encode() == prices._shipped(), "run scripts/generate_prices.py"
    rows = prices._parse(made, "prices.toml")
    assert len(rows) > 3_000
    assert all(price(name) == row for name, row in rows.items() if name.startswith("mistral:"))
    assert not script.SOURCES.keys() - set(PROVIDERS)


@pytest.mark.parametrize(
    ("model", "usd"),
    [  # in, out, cached, written; copied by hand from the package's data
        ("google:gemini-2.5-flash", "0.3 2.5 0.03 0.3"),
        ("mistral:mistral-small-latest", "0.15 0.6 0.015 0.15"),
        ("groq:llama-3.3-70b-versatile", "0.59 0.79 0.59 0.59"),
        ("deepseek:deepseek-chat", "0.27 1.1 0.07 0.27"),
        ("cohere:command-r-08-2024", "0.15 0.6 0.15 0.15"),
        ("xai:grok-3", "3 15 0.75 3"),
        ("bedrock:us.anthropic.claude-sonnet-4-20250514-v1:0", "3 15 0.3 3.75"),
        ("openrouter:openai/gpt-oss-120b", "0.1 0.5 0.1 0.1"),
        ("together:meta-llama/Llama-3.3-70B-Instruct-Turbo", "0.88 0.88 0.88 0.88"),
        ("openai-responses:gpt-5", "1.25 10 0.125 1.25"),
        ("anthropic:claude-sonnet-4-5-20250929", "3 15 0.3 3.75"),
    ],
)
def test_every_kind_of_provider_has_its_prices(model: str, usd: str) -> None:
    row = known(model)
    columns = (row.usd_in, row.usd_out, row.usd_cached, row.usd_written)
    assert columns == tuple(Decimal(value) for value in usd.split())


def test_a_price_that_depends_on_the_hour_is_the_dearest_of_the_day() -> None:
    assert known("deepseek:deepseek-v4-flash").usd_in == Decimal("0.3")  # half of it by night


def test_a_dated_name_has_its_own_price_or_that_of_the_undated() -> None:
    assert known("openai:gpt-4o-2024-05-13").usd_in == Decimal(5)
    assert known("openai:gpt-4o").usd_in == Decimal("2.5")
    assert known("openai:gpt-4o-2031-01-31") == known("openai:gpt-4o")
    assert price("openai:gpt-4o-turbo") is None


def test_a_name_that_would_reach_into_another_row_has_no_price() -> None:
    for name in ('x" = {}\n"openai:gpt-5', "openai:", "openai:gpt-5\n", "date", ""):
        assert price(name) is None


def test_a_cost_equals_the_calculation_by_hand() -> None:
    # gpt-5: 1.25 in, 10 out, 0.125 cached, per million:
    # 900 × 1250 + 100 × 125 + 50 × 10000 = 1,125,000 + 12,500 + 500,000
    usage = Usage(tokens_in=1000, tokens_out=50, tokens_cached=100)
    assert cost_nusd(known("openai:gpt-5"), usage) == 1_637_500


def test_a_half_is_rounded_up_once_at_the_end() -> None:
    row = Price(
        usd_in=Decimal("0.0005"),
        usd_out=Decimal("0.0005"),
        usd_cached=Decimal(0),
        usd_written=Decimal(0),
    )
    assert cost_nusd(row, Usage(tokens_in=1)) == 1
    assert cost_nusd(row, Usage(tokens_in=1, tokens_out=1)) == 1
    assert cost_nusd(row, Usage(tokens_in=2, tokens_out=1)) == 2


def test_a_long_call_costs_the_long_price_throughout() -> None:
    row = known("openai:gpt-5.5")
    assert cost_nusd(row, Usage(tokens_in=272_000, tokens_out=1)) == 272_000 * 5_000 + 30_000
    assert cost_nusd(row, Usage(tokens_in=272_001, tokens_out=1)) == 272_001 * 10_000 + 45_000


def test_local_models_are_free_and_unknown_models_have_no_price() -> None:
    assert cost_nusd(known("ollama:qwen3:8b"), Usage(tokens_in=10**9, tokens_out=10**9)) == 0
    assert cost_nusd(known("scripted:x.toml"), Usage(tokens_in=5)) == 0
    assert price("openai:never-heard-of") is None
    assert price("nobody:gpt-5") is None


def test_a_file_of_the_users_own_overrides_and_adds(tmp_path: Path) -> None:
    mine = tmp_path / "prices.toml"
    mine.write_text(
        '"openai:gpt-5" = { in = "1", out = "2" }\n"ollama:*" = { in = "3", out = "4" }\n',
        encoding="utf-8",
    )
    assert known("openai:gpt-5", mine).usd_out == Decimal(2)
    assert known("openai:gpt-5", mine).usd_cached == Decimal(1)
    assert known("ollama:qwen3", mine).usd_in == Decimal(3)
    assert known("openai:gpt-5-mini", mine) == known("openai:gpt-5-mini")
    assert known("openai:gpt-5", tmp_path / "missing.toml") == known("openai:gpt-5")


def test_the_line_a_refusal_names_is_one_the_file_accepts(tmp_path: Path) -> None:
    mine = tmp_path / "prices.toml"
    refusal = unpriced("openai:qwen3:8b", mine)
    assert str(mine) in refusal.hint
    line = refusal.hint.partition("tokens: ")[2]
    assert tomllib.loads(line).keys() == {"openai:qwen3:8b"}
    mine.write_text(line + "\n", encoding="utf-8")
    assert known("openai:qwen3:8b", mine).usd_in == Decimal("1.25")


@pytest.mark.parametrize(
    "row",
    [
        "3",
        "{ in = 1.25, out = 10 }",
        '{ in = "1.25" }',
        '{ in = "1", out = "2", extra = "3" }',
        '{ in = "cheap", out = "2" }',
        '{ in = "-1", out = "2" }',
        '{ in = "NaN", out = "2" }',
        '{ in = "1", out = "2", long = { in = "1", out = "2" } }',
        '{ in = "1", out = "2", long = { above = true, in = "1", out = "2" } }',
        '{ in = "1", out = "2", long = { above = -1, in = "1", out = "2" } }',
        '{ in = "1", out = "2", long = 3 }',
    ],
)
def test_a_row_that_is_no_price_is_refused_by_name(tmp_path: Path, row: str) -> None:
    mine = tmp_path / "prices.toml"
    mine.write_text(f'"openai:x" = {row}\n', encoding="utf-8")
    with pytest.raises(Refused, match="'openai:x' no usable price"):
        price("openai:x", mine)


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    mine = tmp_path / "prices.toml"
    mine.write_text("= broken", encoding="utf-8")
    with pytest.raises(Refused, match=re.escape(str(mine))):
        price("openai:x", mine)
    mine.write_bytes(b"\xff\xfe")
    with pytest.raises(Refused, match="cannot be read"):
        price("openai:x", mine)
