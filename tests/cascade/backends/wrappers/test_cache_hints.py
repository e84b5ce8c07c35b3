from copy import deepcopy
from dataclasses import replace
from functools import partial

import pytest

from cascade.backends.litellm_api import import_litellm
from cascade.backends.scripted import ScriptedBackend
from cascade.backends.wrappers.cache_hints import CacheKeys, HintedBackend, shard_of
from cascade.tiers.breakpoints import Breakpoints, marked
from cascade.types import ChatRequest
from tests import anthropic
from tests.guards import Clock
from tests.litellm_service import (  # noqa: F401  # fixtures among them
    ADD,
    CLAUDE,
    make,
    said,
    upstream,
)

FIVE, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
USAGE = {"input_tokens": 3, "output_tokens": 1}


def asked(*messages, **fields):
    return ChatRequest(id="r", messages=list(messages), **fields)


def user(content):
    return {"role": "user", "content": content}


def system(content):
    return {"role": "system", "content": content}


@pytest.fixture
def sent(upstream, make):
    """What Anthropic is sent for a request, litellm having translated it."""

    async def body(request, rule=Breakpoints(), model=CLAUDE):  # noqa: B008 - a frozen value
        upstream.pieces = anthropic.message("ok", usage=USAGE)
        backend = HintedBackend(make(model=model), partial(marked, rule=rule))
        assert (await backend.complete(request)).text == "ok"
        return upstream.bodies[-1]

    return body


async def test_anthropic_is_sent_the_marks_at_the_ends_of_tools_system_history_and_prompt(sent):
    body = await sent(
        asked(
            system("be brief"),
            user("a"),
            {"role": "assistant", "content": "b"},
            user("c"),
            {"role": "assistant", "content": "d"},
            user("e"),
            tools=[ADD, {**ADD, "function": {**ADD["function"], "name": "sub"}}],
        ),
        Breakpoints(ttl="1h"),
    )
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, HOUR]
    assert body["system"] == [{"type": "text", "text": "be brief", "cache_control": HOUR}]
    marks = [part.get("cache_control") for each in body["messages"] for part in each["content"]]
    assert marks == [None, None, None, HOUR, HOUR]


async def test_anthropic_is_sent_the_mark_on_the_last_of_an_agents_tool_results(sent):
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    body = await sent(asked(system("s"), user("a"), call, result, tools=[ADD]))
    [block] = body["messages"][-1]["content"]
    assert (block["type"], block["cache_control"]) == ("tool_result", FIVE)


async def test_anthropic_is_sent_the_mark_on_the_last_tool_call_of_an_answer(sent):
    call = {"role": "assistant", "content": "let me see", "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "3"}
    body = await sent(asked(user("a"), call, result, user("go on"), tools=[ADD]))
    assert body["messages"][1]["content"][-1]["type"] == "tool_use"
    marked_blocks = [
        block["type"]
        for each in body["messages"]
        for block in each["content"]
        if "cache_control" in block
    ]
    assert marked_blocks == ["text", "tool_result", "text"]
    body = await sent(asked(user("a"), call, user("never mind"), tools=[ADD]))
    assert body["messages"][1]["content"][-1]["cache_control"] == FIVE


async def test_a_thought_before_a_marked_answer_stays_before_it_and_unmarked(sent):
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    answer = {"role": "assistant", "content": "b", "thinking_blocks": [thought]}
    body = await sent(asked(user("a"), answer, user("c")))
    assert body["messages"][1]["content"] == [
        thought,
        {"type": "text", "text": "b", "cache_control": FIVE},
    ]


async def test_an_image_at_the_end_of_the_history_is_marked(sent):
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    body = await sent(asked(user([image]), user("what is this?")))
    blocks = [block for each in body["messages"] for block in each["content"]]
    assert [(b["type"], b.get("cache_control")) for b in blocks] == [
        ("image", FIVE),
        ("text", FIVE),
    ]


async def test_a_developers_prompt_is_anthropics_system_prompt_and_is_marked_as_one(sent):
    body = await sent(asked({"role": "developer", "content": "be brief"}, user("a")))
    assert body["system"] == [{"type": "text", "text": "be brief", "cache_control": FIVE}]


async def test_openai_is_sent_the_key(upstream, make):
    said(upstream, "ok")
    backend = HintedBackend(make(model="openai/gpt-5-mini"), CacheKeys())
    await backend.complete(asked(system("s"), user("a"), session="s-1"))
    assert upstream.bodies[-1]["prompt_cache_key"].endswith("-0")


class Traffic:
    """Requests for one prefix, so many a minute, each of the next session."""

    def __init__(self, sessions=1000, **options):
        self.clock = Clock()
        self.keys = CacheKeys(clock=self.clock, **options)
        self.sessions = sessions
        self.count = 0

    def run(self, per_minute, minutes):
        seen = []
        for _ in range(int(per_minute * minutes)):
            self.clock.pass_(60.0 / per_minute)
            seen.append(self.key(f"s{self.count % self.sessions}"))
            self.count += 1
        return seen

    def key(self, session, **fields):
        request = asked(system("s"), user("a"), session=session, **fields)
        return self.keys(request).params["prompt_cache_key"]


def test_a_slow_prefix_has_one_key():
    assert len(set(Traffic().run(12, 10))) == 1


def test_a_busy_prefix_has_as_many_keys_as_its_rate_needs():
    traffic = Traffic()
    traffic.run(120, 10)
    last = traffic.run(120, 5)
    keys = set(last)
    assert 8 <= len(keys) <= 9
    assert max(last.count(key) for key in keys) / 5 < 20


def test_a_conversation_stays_on_its_key():
    traffic = Traffic(sessions=50)
    traffic.run(120, 10)
    first, second = (traffic.run(120, 50 / 120) for _ in range(2))
    assert first == second
    assert len(set(first)) > 1


def test_keys_go_again_when_the_rate_falls():
    traffic = Traffic()
    traffic.run(120, 10)
    traffic.run(5, 20)
    assert len(set(traffic.run(5, 5))) == 1


def test_a_rate_that_wavers_around_a_step_does_not_move_conversations():
    traffic = Traffic()
    traffic.run(33, 10)
    keys = [traffic.key("s-1") for rate in (29, 31) * 10 for _ in traffic.run(rate, 1)[:1]]
    assert len(set(keys)) == 1


def test_a_key_is_the_tenants_and_the_prefixs():
    keys = CacheKeys()
    base = asked(system("s"), user("a"), session="s-1", tools=[ADD])
    others = [
        replace(base, tenant="other"),
        replace(base, messages=[system("t"), user("a")]),
        replace(base, tools=None),
    ]
    assert len({keys(each).params["prompt_cache_key"] for each in [base, *others]}) == 4
    again = replace(base, messages=[system("s"), user("b")])
    assert keys(again).params == keys(base).params
    assert all(len(keys(each).params["prompt_cache_key"]) <= 64 for each in others)


def test_another_process_gives_the_same_key():
    request = asked(system("s"), user("a"), session="s-1")
    known = {"prompt_cache_key": "12c8dfdd0f2f80513d6151f364376c22-0"}
    assert CacheKeys()(request).params == known


def test_a_key_of_the_clients_own_is_kept():
    request = asked(user("a"), params={"prompt_cache_key": "mine"})
    assert CacheKeys()(request) is request


def test_only_so_many_prefixes_are_remembered():
    keys = CacheKeys(max_prefixes=10)
    for number in range(50):
        keys(asked(system(str(number)), user("a")))
    assert keys.remembered == 10


SESSIONS = [f"session-{number}" for number in range(4000)]


def test_sessions_are_spread_evenly_over_shards():
    counts = [0] * 8
    for session in SESSIONS:
        counts[shard_of(session, 8)] += 1
    assert max(counts) < 1.15 * min(counts)


@pytest.mark.parametrize("shards", [1, 2, 7, 20])
def test_one_shard_more_moves_only_the_sessions_that_it_gets(shards):
    moved = [s for s in SESSIONS if shard_of(s, shards) != shard_of(s, shards + 1)]
    assert {shard_of(s, shards + 1) for s in moved} == {shards}
    assert len(moved) / len(SESSIONS) == pytest.approx(1 / (shards + 1), rel=0.15)


async def test_closing_closes_the_inner_backend():
    inner = ScriptedBackend()
    await HintedBackend(inner).aclose()
    assert inner.closed


AGENT = marked(
    asked(
        system("s"),
        user("a"),
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "assistant", "content": "b"},
        user("c"),
        tools=[ADD],
    ),
    Breakpoints(ttl="1h"),
)


def translated(config, model):
    """What litellm makes of the marked request for another provider of the same models."""
    options = config.map_openai_params({"tools": deepcopy(AGENT.tools)}, {}, model, False)
    return config.transform_request(
        model=model,
        messages=deepcopy(AGENT.messages),
        optional_params=options,
        litellm_params={},
        headers={},
    )


@pytest.mark.filterwarnings("ignore:Items .* on TypedDict class:UserWarning")
def test_bedrock_is_sent_marks_as_cache_points():
    model = "anthropic.claude-sonnet-4-6"
    body = translated(import_litellm().AmazonConverseConfig(), model)
    mark = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert body["system"][-1] == mark
    assert body["toolConfig"]["tools"][-1] == mark
    ends = [each["content"][-1] == mark for each in body["messages"]]
    assert ends == [False, False, False, True, True]


@pytest.mark.filterwarnings("ignore:Items .* on TypedDict class:UserWarning")
def test_openrouter_is_sent_marks_in_content_parts():
    body = translated(import_litellm().OpenrouterConfig(), "anthropic/claude-sonnet-4.6")
    assert body["tools"][-1]["cache_control"] == HOUR
    parts = [each["content"][-1] for each in body["messages"] if isinstance(each["content"], list)]
    assert [part["cache_control"] for part in parts] == [HOUR, HOUR, HOUR]
