import json
import sys
from decimal import Decimal
from importlib.metadata import version

import pytest

from cascade.backends.litellm_prices import cache_from, cache_of, card_from, card_of
from cascade.caches import CacheCard
from cascade.errors import ConfigError
from cascade.types import Usage

D = Decimal
BASE = {
    "litellm_provider": "openai",
    "input_cost_per_token": D("0.000001"),
    "output_cost_per_token": D("0.000002"),
}


def card(**fields):
    return card_from({"m": {**BASE, **fields}}, "m")


READ_AND_WRITTEN = {"input": 1000, "cache_read": 8000, "output": 100}


@pytest.mark.parametrize(
    ("model", "usage", "millionths"),
    [
        (
            "anthropic/claude-sonnet-4-6",
            Usage(**READ_AND_WRITTEN, cache_write={"5m": 1000}),
            10_650,
        ),
        (
            "anthropic/claude-sonnet-4-6",
            Usage(**READ_AND_WRITTEN, cache_write={"1h": 1000}),
            12_900,
        ),
        ("openai/gpt-5-mini", Usage(input=2000, cache_read=8000, output=100), 900),
        (
            "openai/gpt-5.6-terra",
            Usage(input=1000, cache_read=6000, cache_write={"default": 3000}, output=100),
            11_900,
        ),
        ("openai/gpt-5.4", Usage(input=100_000, cache_read=200_000, output=100), 602_250),
    ],
    ids=["write 5m", "write 1h", "read", "read and write", "long prompt"],
)
def test_known_bills_are_reproduced_from_the_installed_map(model, usage, millionths):
    assert card_of(model).price(usage).total * 1_000_000 == millionths


def test_the_map_is_read_without_importing_litellm():
    code = (
        "import sys; from cascade.backends.litellm_prices import card_of; "
        "card_of('openai/gpt-5-mini'); assert 'litellm' not in sys.modules"
    )
    import subprocess

    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_file_is_the_map_that_litellm_itself_uses():
    from cascade.backends.litellm_api import import_litellm

    known = import_litellm().model_cost["gpt-5-mini"]
    rates = card_of("openai/gpt-5-mini").rates
    assert float(rates.input) == pytest.approx(known["input_cost_per_token"] * 1e6)


def test_a_rate_is_exact():
    entry = json.loads('{"cost": 1.234567890123456e-07}', parse_float=D)
    rates = card(input_cost_per_token=entry["cost"]).rates
    assert rates.input == D("0.1234567890123456")


def test_a_model_is_found_with_and_without_its_provider():
    prices = {"anthropic.claude": {**BASE, "litellm_provider": "bedrock_converse"}, "m": BASE}
    assert card_from(prices, "bedrock/anthropic.claude").rates.input == 1
    assert card_from(prices, "openai/m").rates.input == 1
    with pytest.raises(ConfigError, match=r"does not know the model \(azure/m\)"):
        card_from(prices, "azure/m")


def test_a_long_prompt_has_the_rates_of_the_highest_limit_below_it():
    long = {
        f"{kind}_above_{limit}k_tokens": D(rate) / 1_000_000
        for limit, rate in ((200, 5), (128, 3))
        for kind in ("input_cost_per_token", "cache_read_input_token_cost")
    }
    found = card(cache_read_input_token_cost=D("0.0000001"), **long)
    assert [limit for limit, _ in found.long_prompt_rates] == [128_000, 200_000]
    assert found.price(Usage(input=150_000, output=0)).total == D("0.45")
    assert found.price(Usage(input=250_000, output=1_000_000)).total == D("1.25") + 2


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"input_cost_per_token": None}, "no price by token"),
        ({"output_cost_per_token": 0}, "no price by token"),
        ({"supports_prompt_caching": True}, "no price for cache reads"),
        (
            {"supports_prompt_caching": True, "cache_read_input_token_cost": D("0.0")},
            "no price for cache reads",
        ),
        ({"output_cost_per_reasoning_token": D("0.000003")}, "prices reasoning tokens apart"),
        ({"input_cost_per_request": D("0.005")}, "prices requests apart"),
    ],
)
def test_what_a_card_cannot_hold_is_refused_and_says_what_to_do(fields, fault):
    with pytest.raises(ConfigError, match=f"{fault}.*write the price as"):
        card(**fields)


def test_a_reasoning_rate_that_is_that_of_the_answer_is_no_rate_of_its_own():
    assert card(output_cost_per_reasoning_token=BASE["output_cost_per_token"]).rates.output == 2


def test_without_a_word_on_caching_only_a_cache_read_makes_a_bill_unknown():
    found = card()
    assert found.price(Usage(input=1_000_000, output=0)).total == 1
    assert found.price(Usage(input=0, cache_read=1, output=0)) is None


def test_a_write_that_is_cheaper_than_the_prompt_is_a_slip_and_not_a_price():
    found = card(cache_creation_input_token_cost=D("0.0000005"))
    assert found.price(Usage(input=0, cache_write={"default": 1}, output=0)) is None
    dear = card(cache_creation_input_token_cost=D("0.00000125"))
    written = dear.price(Usage(input=0, cache_write={"default": 1_000_000}, output=0))
    assert written.total == D("1.25")


@pytest.mark.parametrize(
    ("model", "provider", "ttls"),
    [
        ("m", "openai", {"default"}),
        ("m", "minimax", {"default"}),
        ("m", "anthropic", {"default", "5m"}),
        ("databricks/claude-m", "databricks", {"default", "5m"}),
    ],
)
def test_writes_for_five_minutes_are_only_sold_by_who_runs_anthropics_models(model, provider, ttls):
    long = "_above_200k_tokens"
    entry = {
        **BASE,
        "litellm_provider": provider,
        "cache_creation_input_token_cost": D("0.00000125"),
        f"input_cost_per_token{long}": D("0.000002"),
        f"cache_creation_input_token_cost{long}": D("0.0000025"),
    }
    found = card_from({model: entry}, model)
    assert set(found.rates.cache_write) == ttls
    assert set(found.long_prompt_rates[0][1].cache_write) == ttls


def test_a_card_says_which_map_it_is_from():
    assert card_of("openai/gpt-5-mini").source == f"litellm {version('litellm')}"
    assert card().source is None


def test_writes_for_half_a_day_have_their_own_rate():
    found = card(
        cache_creation_input_token_cost=D("0.00000125"),
        cache_creation_input_token_cost_above_12hr=D("0.000002"),
    )
    assert found.write_rate("12h") == D("0.000002")
    assert found.write_rate() == D("0.00000125")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            "anthropic/claude-sonnet-4-6",
            CacheCard(kind="ttl", ttl_seconds=300, minimum_tokens=1024, marked=True),
        ),
        (
            "anthropic/claude-opus-4-6",
            CacheCard(kind="ttl", ttl_seconds=300, minimum_tokens=4096, marked=True),
        ),
        (
            "openai/gpt-5-mini",
            CacheCard(kind="ttl", block=128, ttl_seconds=300, minimum_tokens=1024),
        ),
        ("openai/gpt-5.6-terra", CacheCard(kind="ttl", ttl_seconds=1800, minimum_tokens=1024)),
        ("deepseek/deepseek-chat", None),
        ("openai/gpt-3.5-turbo", None),
        ("openai/gpt-99", None),
    ],
    ids=[
        *("anthropic", "a longer minimum", "openai", "openai with breakpoints"),
        *("promises no time", "does not cache", "not in the map"),
    ],
)
def test_how_a_provider_keeps_prompts_is_known_where_it_is_documented(model, expected):
    assert cache_of(model) == expected


def test_another_house_that_serves_anthropics_models_keeps_them_as_long():
    entry = {
        **BASE,
        "litellm_provider": "bedrock_converse",
        "supports_prompt_caching": True,
        "cache_read_input_token_cost": D("0.0000001"),
        "prompt_cache_min_tokens": D("2048.0"),
    }
    found = cache_from({"m": entry}, "bedrock/m")
    assert (found.ttl_seconds, found.minimum_tokens) == (300, 2048)
    unstated = entry | {"prompt_cache_min_tokens": None}
    assert cache_from({"m": unstated}, "bedrock/m") is None
