"""The page on prices states what the code makes of each case."""

import re
from pathlib import Path

import pytest

from cascade.backends.litellm_prices import cache_of, card_of
from cascade.backends.usage import from_anthropic, from_openai
from cascade.errors import ConfigError
from serving.config import ConfigFile
from serving.tier_wiring import build_tier

PAGE = (Path(__file__).parents[2] / "docs" / "prices.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE))
OWN = "{backend: openai_http, url: 'http://127.0.0.1:9/v1', model: m"


def openai(prompt, read, written=0):
    return from_openai(
        {
            "prompt_tokens": prompt,
            "completion_tokens": 100,
            "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        }
    )


def anthropic(ttl):
    return from_anthropic(
        {
            "input_tokens": 1000,
            "output_tokens": 100,
            "cache_read_input_tokens": 8000,
            "cache_creation_input_tokens": 1000,
            "cache_creation": {f"ephemeral_{ttl}_input_tokens": 1000},
        }
    )


SONNET = "anthropic/claude-sonnet-4-6"
LITELLM = {
    "prompt_tokens": 10_000,
    "completion_tokens": 100,
    "cache_read_input_tokens": 8000,
    "cache_creation_input_tokens": 1000,
}


@pytest.mark.parametrize(
    ("case", "model", "usage"),
    [
        (
            "claude-sonnet-4-6, 8,000 read, 1,000 written for 5 minutes",
            SONNET,
            from_openai(LITELLM),
        ),
        ("the same, written for an hour", SONNET, anthropic("1h")),
        ("the first, reported as Anthropic does (`input_tokens` 1,000)", SONNET, anthropic("5m")),
        ("gpt-5-mini, 8,000 read", "openai/gpt-5-mini", openai(10_000, 8000)),
        (
            "gpt-5.6-terra, 6,000 read, 3,000 written",
            "openai/gpt-5.6-terra",
            openai(10_000, 6000, 3000),
        ),
        (
            "gpt-5.4, 300,000 prompt tokens instead, 200,000 read",
            "openai/gpt-5.4",
            openai(300_000, 200_000),
        ),
    ],
)
def test_a_known_model_costs_what_the_page_says(case, model, usage):
    assert f"{card_of(model).price(usage).total * 1_000_000:,.0f}" == ROWS[case]


def tier_of(tmp_path, price):
    file = tmp_path / "cascade.yaml"
    file.write_text(f"tiers:\n  own: {OWN}{price}}}\n")
    return build_tier("own", ConfigFile(file).config.tiers["own"], None)


def test_a_server_of_your_own_costs_what_the_page_says(tmp_path):
    usage = openai(10_000, 8000)
    stated = tier_of(tmp_path, ", price: {input: 0.5, cache_read: 0.05, output: 2}")
    told = ROWS["your own server at 0.5 / 0.05 / 2, 8,000 read"]
    assert f"{stated.price(usage).total * 1_000_000:,.0f}" == told
    assert ROWS["your own server without a price"] == "unknown, never 0"
    assert tier_of(tmp_path, "").price(usage) is None
    with pytest.raises(ConfigError, match=r"own\.price\.cache_read: Field required"):
        tier_of(tmp_path, ", price: {input: 0.5, output: 2}")


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (SONNET, "5 minutes; an hour"),
        ("openai/gpt-5-mini", "5 are assumed"),
        ("openai/gpt-5.6-terra", "30 minutes at least"),
    ],
)
def test_a_provider_keeps_prompts_as_long_as_the_page_says(model, told):
    minutes = int(re.search(r"(\d+)(?= minutes| are assumed)", told)[1])
    assert told in PAGE
    assert cache_of(model).ttl_seconds == 60 * minutes
