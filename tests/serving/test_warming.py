"""The keys of a tier that keep its cache warm, from cascade.yaml to what is sent."""

import asyncio

import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import ConfigError
from cascade.types import ChatRequest
from serving import tier_config as cfg
from serving.warming import keeping_warm
from tests import anthropic
from tests.serving.test_tier_config import MINI, OWN, plus, wired
from tests.upstream import DONE, Upstream, serving, words

CLAUDE = "{backend: litellm_api, model: anthropic/claude-sonnet-4-6, api_key_env: CASCADE_TEST_KEY}"
LONG = "x" * 4 * 1100
FIVE, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("CASCADE_TEST_KEY", "k")


def asked(system=LONG, **fields):
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "hi"}]
    return ChatRequest(id="r", messages=messages, session="s", **fields)


async def sent(tmp_path, tier, request, pieces):
    headers = {"Content-Type": "text/event-stream"}
    async with serving(Upstream(pieces=pieces, headers=headers)) as upstream:
        url = upstream.url.removesuffix("/v1") if "anthropic/" in tier else upstream.url
        backend = wired(tmp_path, plus(tier, f"url: '{url}'")).tiers["t"]
        async for _ in backend.stream(request):
            pass
        await backend.backend.aclose()
        return upstream.bodies[-1]


async def to_claude(tmp_path, more, request=None):
    pieces = anthropic.message("ok", usage={"input_tokens": 3, "output_tokens": 1})
    return await sent(tmp_path, plus(CLAUDE, more), request or asked(), pieces)


async def to_openai(tmp_path, tier, request=None):
    return await sent(tmp_path, tier, request or asked(), [*words("ok"), DONE])


@pytest.mark.parametrize(
    ("key", "mark"),
    [
        ("breakpoints: true", FIVE),
        ("breakpoints: {ttl: 1h}", HOUR),
        ("breakpoints: false", None),
        ("accepts: []", None),
    ],
)
async def test_marks_go_out_where_they_are_asked_for(tmp_path, key, mark):
    body = await to_claude(tmp_path, key)
    assert body["system"][0].get("cache_control") == mark


async def test_the_models_own_minimum_decides(tmp_path):
    short = asked("x" * 4 * 900)
    body = await to_claude(tmp_path, "breakpoints: true", short)
    assert "cache_control" not in body["system"][0]
    stated = "breakpoints: true, cache: {ttl: 300, minimum: 800}"
    body = await to_claude(tmp_path, stated, short)
    assert body["system"][0]["cache_control"] == FIVE


async def test_the_clients_marks_stay_where_the_tier_accepts_them(tmp_path):
    theirs = ChatRequest(
        id="r",
        messages=[
            {"role": "system", "content": LONG},
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": HOUR}]},
        ],
    )
    body = await to_claude(tmp_path, "breakpoints: true, accepts: [cache_control]", theirs)
    assert body["system"][0]["cache_control"] == HOUR
    assert body["messages"][0]["content"][0]["cache_control"] == HOUR
    body = await to_claude(tmp_path, "breakpoints: true", theirs)
    assert body["system"][0]["cache_control"] == FIVE
    assert body["messages"][0]["content"][0]["cache_control"] == FIVE


API = "{backend: litellm_api, model: openai/gpt-5-mini, api_key_env: CASCADE_TEST_KEY}"
HTTP = "{backend: openai_http, model: gpt-5-mini}"


@pytest.mark.parametrize("tier", [API, HTTP])
async def test_a_key_goes_out_where_it_is_asked_for(tmp_path, tier):
    assert "prompt_cache_key" not in await to_openai(tmp_path, tier)
    body = await to_openai(tmp_path, plus(tier, "cache_key: true"))
    assert body["prompt_cache_key"].endswith("-0")


async def test_a_clients_key_is_kept_where_the_tier_accepts_it(tmp_path):
    theirs = asked(params={"prompt_cache_key": "mine"})
    keyed = plus(API, "cache_key: true")
    assert (await to_openai(tmp_path, keyed, theirs))["prompt_cache_key"] != "mine"
    accepting = plus(keyed, "accepts: [prompt_cache]")
    assert (await to_openai(tmp_path, accepting, theirs))["prompt_cache_key"] == "mine"


SLOW = "{backend: scripted, answers: [{text: one, first_token_seconds: 0.1}, two], fan_out: true}"


async def test_requests_that_share_a_cold_prefix_wait_for_the_first(tmp_path):
    ended = []

    async def ask(tier, name):
        text = (await tier.backend.complete(asked())).text
        ended.append((name, text))

    tier = wired(tmp_path, SLOW).tiers["t"]
    await asyncio.gather(ask(tier, "first"), ask(tier, "second"))
    assert ended == [("first", "one"), ("second", "two")]
    ended.clear()
    at_once = wired(tmp_path, SLOW.replace(", fan_out: true", "")).tiers["t"]
    await asyncio.gather(ask(at_once, "first"), ask(at_once, "second"))
    assert ended == [("second", "two"), ("first", "one")]


async def test_what_is_shared_and_cold_can_be_told_by_whoever_knows():
    entry = cfg.Tier(backend="scripted", fan_out=True)
    ended = []

    async def ask(backend):
        ended.append((await backend.complete(asked())).text)

    for shared, order in [(None, ["two", "one"]), (("k", 2000), ["one", "two"])]:
        ended.clear()
        slow = ScriptedBackend(answers=[Script(text="one", first_token_seconds=0.1), "two"])
        backend = keeping_warm(slow, entry, None, shared_prefix=lambda _, told=shared: told)
        await asyncio.gather(ask(backend), ask(backend))
        assert ended == order


@pytest.mark.parametrize(
    ("tier", "fault"),
    [
        (plus(MINI, "breakpoints: true"), r"tiers\.t: breakpoints are for Anthropic's models"),
        (plus(OWN, "breakpoints: true"), r"tiers\.t: breakpoints are .*not for m"),
        (plus(CLAUDE, "breakpoints: {ttl: 2h}"), r"tiers\.t\.breakpoints\.ttl"),
        (plus(CLAUDE, "breakpoints: {every: 1}"), r"tiers\.t\.breakpoints\.every: unknown key"),
        (
            plus(CLAUDE, "breakpoints: {ttl: 1h, history_ttl: 5m}"),
            r"tiers\.t\.breakpoints\.history_ttl: unknown key",
        ),
        (plus(CLAUDE, "cache_key: true"), r"tiers\.t: cache_key is for OpenAI's models"),
        (plus(MINI, "cache_key: {per_minute: 0}"), r"tiers\.t\.cache_key\.per_minute"),
        (plus(MINI, "fan_out: {wait_seconds: 0}"), r"tiers\.t\.fan_out\.wait_seconds"),
        (plus(MINI, "fan_out: 3"), r"tiers\.t\.fan_out: .*dictionary"),
    ],
)
def test_what_cannot_work_is_refused_with_line_and_key(tmp_path, tier, fault):
    with pytest.raises(ConfigError, match=rf"cascade\.yaml:2: {fault}"):
        wired(tmp_path, tier)
