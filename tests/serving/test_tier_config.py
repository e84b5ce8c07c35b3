"""The keys of a tier: prices and caches, litellm's map, tokenizers, salts."""

from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.caches import CacheCard
from cascade.errors import ConfigError
from cascade.types import ChatRequest, Usage
from serving.config import ConfigFile
from serving.wiring import Wiring
from tests.upstream import DONE, Upstream, serving, words

OPUS = "{backend: litellm_api, model: anthropic/claude-opus-4-6}"
MARKED = CacheCard(kind="ttl", ttl_seconds=300, minimum_tokens=4096, marked=True)
MINI = "{backend: litellm_api, model: openai/gpt-5-mini, price: litellm}"
OWN = "{backend: openai_http, url: 'http://127.0.0.1:9/v1', model: m}"
LAUNCHED = "{backend: openai_http, launch: {engine: llama_cpp, model: qwen2.5-coder-0.5b}}"


def plus(tier, more):
    return tier.removesuffix("}") + ", " + more + "}"


def wired(tmp_path, tier):
    path = tmp_path / "cascade.yaml"
    path.write_text(f"tiers:\n  t: {tier}\n")
    file = ConfigFile(path)
    try:
        return Wiring(file.config, tmp_path).snapshot()
    except ConfigError as error:
        raise file.explain(error) from None


def test_the_map_prices_the_model_of_an_api_tier(tmp_path):
    rates = wired(tmp_path, MINI).tiers["t"].prices.rates
    assert [str(rate) for rate in (rates.input, rates.cache_read, rates.output)] == [
        "0.25",
        "0.025",
        "2",
    ]


def test_a_self_hosted_model_has_each_rate_it_was_given(tmp_path):
    """10,000 prompt tokens, 8,000 of them cached, and 100 of the answer."""
    asked = Usage(input=2000, cache_read=8000, output=100)
    stated = plus(OWN, "price: {input: 0.5, cache_read: 0.05, output: 2}")
    tier = wired(tmp_path, stated).tiers["t"]
    assert tier.price(asked).total * 1_000_000 == 1000 + 400 + 200
    assert tier.prices.source is None


def test_a_self_hosted_model_without_a_price_costs_an_unknown_amount_and_never_nothing(tmp_path):
    tier = wired(tmp_path, OWN).tiers["t"]
    assert tier.price(Usage(input=2000, cache_read=8000, output=100)) is None


def test_any_tier_can_have_the_price_of_a_model_that_the_map_knows(tmp_path):
    priced = wired(tmp_path, plus(OWN, "price: {litellm: openai/gpt-5-mini}"))
    assert priced.tiers["t"].prices == wired(tmp_path, MINI).tiers["t"].prices


@pytest.mark.parametrize(
    ("tier", "fault"),
    [
        (MINI.replace("5-mini", "99"), r"tiers\.t\.price: .*not know the model.*write the price"),
        (MINI.replace("price: litellm", "price: lite"), r"tiers\.t\.price: .*'litellm'"),
        (MINI.replace("price: litellm", "price: {litellm: 3}"), r"tiers\.t\.price\.litellm"),
        (
            MINI.replace("price: litellm", "price: {litellm: a, b: c}"),
            r"tiers\.t\.price\.b: unknown key",
        ),
        (MINI.replace("price: litellm", "price: {}"), r"tiers\.t\.price\.input"),
        (MINI.replace("price: litellm", "price: 3"), r"tiers\.t\.price: .*dictionary"),
        (MINI.replace("price: litellm", "price: [1]"), r"tiers\.t\.price: .*dictionary"),
        (
            plus(OWN, "price: {input: 1, output: 2}"),
            r"tiers\.t\.price\.cache_read: Field required",
        ),
        (
            plus(
                OWN,
                "price: {gpu_usd_per_hour: 2, prefill_tokens_per_second: 9, "
                "decode_tokens_per_second: 1}",
            ),
            r"tiers\.t\.price\.cached_tokens_per_second: Field required",
        ),
        (
            "{backend: litellm_api, model: 3}",
            r"tiers\.t\.model: Input should be a valid string",
        ),
        (plus(OWN, "cache: slots"), r"tiers\.t: cache: slots goes by .*cache: {slots: 4}"),
        (plus(OWN, "cache: lots"), r"tiers\.t\.cache: .*'slots' or 'none'"),
        (plus(OWN, "cache: 3"), r"tiers\.t\.cache: .*'slots' or 'none'"),
        (plus(OWN, "cache: {blocks: 0}"), r"tiers\.t\.cache\.blocks: .*greater than or equal to 1"),
        (
            plus(OWN, "cache: {blocks: 16, capacity_tokens: 9}"),
            r"tiers\.t\.cache: capacity_tokens 9 does not hold a block of 16",
        ),
        (plus(OWN, "cache: {blocks: 16, ttl: 3}"), r"tiers\.t\.cache\.ttl: unknown key"),
        (plus(OWN, "cache: {slots: 2, step: 3}"), r"tiers\.t\.cache\.step: unknown key"),
        (plus(OWN, "cache: {minimum: 9}"), r"tiers\.t\.cache\.ttl: Field required"),
        (plus(OWN, "cache: {ttl: 0}"), r"tiers\.t\.cache\.ttl: .*greater than 0"),
        (plus(LAUNCHED, "cache: {slots: 3}"), r"tiers\.t: .*cache of 2 slots: say cache: slots"),
        (plus(LAUNCHED, "cache: {ttl: 3}"), r"tiers\.t: .*cache of 2 slots: say cache: slots"),
        (plus(OWN, "price: litellm"), r"tiers\.t: .*say which model's price"),
        (plus(OWN, "tokenizer: sglang"), r"tiers\.t\.tokenizer: .*llama_cpp.*vllm"),
        (plus(MINI, "tokenizer: vllm"), r"tiers\.t\.tokenizer: unknown key"),
        (plus(MINI, "salt_tenants: true"), r"tiers\.t: salt_tenants is for backend openai_http"),
        (plus(OWN, "salt_key_env: X"), r"tiers\.t: salt_key_env without salt_tenants"),
        (plus(OWN, "salt_key: x"), r"tiers\.t\.salt_key: .*salt_key_env"),
        (
            plus(OWN, "salt_tenants: true, salt_key_env: CASCADE_TEST_UNSET"),
            r"tiers\.t\.salt_key_env: .*CASCADE_TEST_UNSET is not set",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_line_and_key(tmp_path, tier, fault):
    with pytest.raises(ConfigError, match=rf"cascade\.yaml:2: {fault}"):
        wired(tmp_path, tier)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        (LAUNCHED, CacheCard(kind="slots", slots=2, capacity_tokens=21_845)),
        (plus(LAUNCHED, "cache: slots"), CacheCard(kind="slots", slots=2, capacity_tokens=21_845)),
        (plus(LAUNCHED, "cache: {slots: 2}"), CacheCard(kind="slots", slots=2)),
        (
            LAUNCHED.replace("-0.5b", "-0.5b, slots: 4, cache_ram_mib: 0"),
            CacheCard(kind="slots", slots=4),
        ),
        (LAUNCHED.replace("qwen2.5-coder-0.5b", "/m/a.gguf"), CacheCard(kind="slots", slots=2)),
        (plus(LAUNCHED, "cache: none"), None),
        (OWN, None),
        (
            plus(OWN, "cache: {slots: 4, capacity_tokens: 9000}"),
            CacheCard(kind="slots", slots=4, capacity_tokens=9000),
        ),
        (
            plus(OWN, "cache: {blocks: 16, capacity_tokens: 400000}"),
            CacheCard(kind="blocks", block=16, capacity_tokens=400_000),
        ),
        (plus(OWN, "cache: {blocks: 16}"), CacheCard(kind="blocks", block=16)),
        (
            plus(OWN, "cache: {ttl: 300, minimum: 1024, step: 128}"),
            CacheCard(kind="ttl", ttl_seconds=300, minimum_tokens=1024, block=128),
        ),
        (MINI, CacheCard(kind="ttl", ttl_seconds=300, minimum_tokens=1024, block=128)),
        (plus(MINI, "cache: {ttl: 60}"), CacheCard(kind="ttl", ttl_seconds=60)),
        (plus(MINI, "cache: none"), None),
        ("{backend: litellm_api, model: openai/gpt-99}", None),
        (OPUS, None),
        (plus(OPUS, "accepts: [cache_control]"), MARKED),
        (plus(OPUS, "breakpoints: true"), replace(MARKED, marked=False)),
        (plus(OPUS, "breakpoints: {ttl: 1h}"), replace(MARKED, ttl_seconds=3600, marked=False)),
    ],
)
def test_how_a_tier_keeps_prompts_is_stated_or_known(tmp_path, tier, expected):
    assert wired(tmp_path, tier).tiers["t"].cache == expected


def test_what_the_map_says_of_a_cache_is_part_of_the_version(tmp_path):
    stated = wired(tmp_path, MINI).version
    config = ConfigFile(tmp_path / "cascade.yaml").config
    price_only = {"price of t": repr(wired(tmp_path, MINI).tiers["t"].prices)}
    assert stated != config.version(price_only)
    assert wired(tmp_path, MINI).version == stated


def test_a_price_from_the_map_is_part_of_the_version(tmp_path):
    versions = [
        wired(tmp_path, plus(OWN, f"price: {{litellm: {model}}}")).version
        for model in ("openai/gpt-5-mini", "openai/gpt-5.4", "openai/gpt-5-mini")
    ]
    assert versions[0] == versions[2]
    path = tmp_path / "cascade.yaml"
    config = ConfigFile(path).config
    assert config.priced_by_map == ["t"]
    assert config.version() != versions[0]


@pytest.mark.parametrize(
    ("tier", "counts"),
    [
        (OWN, False),
        (plus(OWN, "tokenizer: none"), False),
        (plus(OWN, "tokenizer: vllm"), True),
        (LAUNCHED, True),
        (plus(LAUNCHED, "tokenizer: none"), False),
        (MINI, False),
        ("{backend: scripted}", False),
    ],
)
def test_a_tier_counts_where_it_is_said_how_and_where_cascade_launched_it(tmp_path, tier, counts):
    assert (wired(tmp_path, tier).tiers["t"].tokenizer is not None) == counts


async def test_a_tier_behind_all_its_guards_counts_and_says_when_it_is_too_short(tmp_path):
    async with serving(Upstream(pieces=[b'{"count": 70}'])) as upstream:
        guarded = "tokenizer: vllm, context_tokens: 64, limits: {concurrent: 1}"
        tier = wired(tmp_path, plus(OWN.replace("http://127.0.0.1:9/v1", upstream.url), guarded))
        asked = ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}])
        assert "the prompt of 70" in await tier.tiers["t"].overlong(asked)
        await tier.tiers["t"].backend.aclose()


async def salt_of(tmp_path, more):
    async with serving(Upstream(pieces=[*words("a"), DONE])) as upstream:
        tier = plus(OWN.replace("http://127.0.0.1:9/v1", upstream.url), more)
        backend = wired(tmp_path, tier).tiers["t"].backend
        await backend.complete(ChatRequest(id="r", tenant="a", messages=[]))
        await backend.aclose()
        return upstream.bodies[0].get("cache_salt")


async def test_salts_last_as_long_as_the_secret_they_are_made_with(tmp_path, monkeypatch):
    monkeypatch.setenv("CASCADE_TEST_SALT", "secret")
    kept = "salt_tenants: true, salt_key_env: CASCADE_TEST_SALT"
    assert await salt_of(tmp_path, kept) == await salt_of(tmp_path, kept)
    assert await salt_of(tmp_path, "salt_tenants: true") not in {
        None,
        await salt_of(tmp_path, "salt_tenants: true"),
        await salt_of(tmp_path, kept),
    }
    assert await salt_of(tmp_path, "salt_tenants: false") is None


DOWN = """{backend: scripted, answers: [{error: BackendServerError}, {error: BackendServerError},
  {error: BackendServerError}, {error: BackendServerError}, {error: BackendServerError}, ok],
  retry: null}"""


async def test_a_tier_whose_server_recovered_is_asked_again_before_its_cool_down_is_over(tmp_path):
    tier = wired(tmp_path, DOWN).tiers["t"]
    asked = ChatRequest(id="r", messages=[])
    for _ in range(5):
        with pytest.raises(Exception, match="scripted"):
            await tier.backend.complete(asked)
    with pytest.raises(Exception, match="cooling down"):
        await tier.backend.complete(asked)
    tier.recovered()
    assert (await tier.backend.complete(asked)).text == "ok"


def test_without_a_cool_down_there_is_nothing_to_end(tmp_path):
    wired(tmp_path, "{backend: scripted, cooldown: null}").tiers["t"].recovered()


@pytest.mark.parametrize(
    ("more", "dollars"),
    [
        ("breakpoints: true", "3.75"),
        ("breakpoints: {ttl: 1h}", "6"),
        ("accepts: [cache_control]", "3.75"),
    ],
)
def test_what_is_quoted_is_written_for_as_long_as_the_tiers_marks_say(tmp_path, more, dollars):
    sonnet = "{backend: litellm_api, model: anthropic/claude-sonnet-4-6, price: litellm}"
    card = wired(tmp_path, plus(sonnet, more)).tiers["t"].prices
    assert card.write_rate() * 1_000_000 == Decimal(dollars)


def test_long_prompts_are_written_for_an_hour_too_and_a_price_without_an_hour_stays(tmp_path):
    claude = "{backend: litellm_api, model: anthropic/claude-sonnet-4-6, breakpoints: {ttl: 1h}}"
    writes = "cache_write: {5m: 2, 1h: 3}"
    longer = f"[{{above: 1000, input: 1, cache_read: 1, output: 1, {writes}}}]"
    stated = "price: {input: 1, cache_read: 1, output: 1, cache_write: {default: 2}"
    card = wired(tmp_path, plus(claude, f"{stated}, long_prompts: {longer}}}")).tiers["t"].prices
    assert card.written_for(10) == "default"
    assert card.written_for(2000) == "1h"
    assert card.write_rate(prompt=2000) * 1_000_000 == 3
    assert card.write_rate("5m", prompt=2000) * 1_000_000 == 2, "a client's own mark has its price"
