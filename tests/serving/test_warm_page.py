"""The page on warm caches shows what works, and figures that are right."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cascade.cache_economics import (
    Batch,
    PrefixRates,
    break_even,
    in_parallel,
    in_sequence,
    prewarmed,
    requests_that_pay,
    uncached,
)
from cascade.pricing import PriceCard, Rates
from cascade.types import Usage
from serving.cli import cascade
from serving.commands.cache_prewarm import told
from serving.prewarm.paying import economics
from serving.prewarm.sending import Sent
from serving.tier_config import Breakpoints, CacheKeys, FanOut

PAGE = (Path(__file__).parents[2] / "docs" / "warm.md").read_text(encoding="utf-8")
EXAMPLE, DEFAULTS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_can_work(tmp_path, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "made up")
    file = tmp_path / "cascade.yaml"
    file.write_text(EXAMPLE)
    done = CliRunner().invoke(cascade, ["config", "check", "--config", str(file)])
    assert done.exit_code == 0, done.exception


def test_the_defaults_are_those_that_the_page_says():
    told = yaml.safe_load(DEFAULTS)
    assert told["breakpoints"] == Breakpoints().model_dump()
    assert told["cache_key"] == CacheKeys().model_dump()
    assert told["fan_out"] == FanOut().model_dump()


BATCH = Batch(prefix=20_000, suffix=0, requests=10)
RATES = PrefixRates(fresh=Decimal(2), read=Decimal("0.10"), write=Decimal("2.50"))


@pytest.mark.parametrize(
    ("row", "cost"),
    [
        ("without a cache", uncached),
        ("all at once", in_parallel),
        ("one first", in_sequence),
        ("an empty one ahead", prewarmed),
    ],
)
def test_the_table_has_what_ten_requests_cost_in_cents(row, cost):
    cents = cost(BATCH, RATES) / 10_000
    assert re.search(rf"^\| {row}[^|]*\| (.*) \|$", PAGE, re.MULTILINE)[1] in {
        f"{cents:.0f}",
        f"{cents:.1f}",
    }


@pytest.mark.parametrize(("write", "text"), [("1.25", "from 2 .*1.278"), ("2", "from 3 .*2.111")])
def test_the_break_evens_are_those_of_the_page(write, text):
    above = break_even(write=Decimal(write), read=Decimal("0.1"))
    first = requests_that_pay(write=Decimal(write), read=Decimal("0.1"))
    assert re.search(text, PAGE.replace("\n", " "))
    assert f"from {first} " in text
    assert f"{above:.3f}" in text


def test_the_command_prints_what_the_page_shows():
    rates = Rates(input=Decimal("0.02"), cache_read=Decimal("0.002"), output=Decimal("0.04"))
    sent = Sent(
        model="qwen2.5-coder-0.5b",
        usage=Usage(input=1512, cache_read=0, output=1),
        cost=Decimal("0.00003028"),
        seconds=68.84,
        request_id="1a22b82383a605439103881",
    )
    lines = told("house", sent, economics(sent, PriceCard(rates=rates), 10))
    assert "\n".join(lines) in PAGE
