from dataclasses import replace

import openai
import pytest

from cascade.backends.scripted import Script
from tests.apis import baseline
from tests.chats import ASK, client


async def test_the_openai_client_gets_an_answer_and_headers_say_how(serve):
    service = await serve()
    async with client(service) as ai:
        raw = await ai.chat.completions.with_raw_response.create(model="cascade", messages=ASK)
    answer = raw.parse()
    assert answer.choices[0].message.content == "four"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].logprobs is None
    assert answer.model == "small-model"
    assert answer.usage.prompt_tokens == 10
    assert answer.usage.completion_tokens == 2
    headers = {n: v for n, v in raw.headers.items() if n.startswith("x-cascade")}
    [result] = service.log.results
    assert float(headers.pop("x-cascade-overhead-ms")) > 0
    assert headers.pop("x-cascade-baseline-usd") == baseline(result)
    assert headers == {
        "x-cascade-request-id": result.request.id,
        "x-cascade-policy": "ladder",
        "x-cascade-tier": "small",
        "x-cascade-model": "small-model",
        "x-cascade-attempts": "1",
        "x-cascade-degraded": "false",
        "x-cascade-cost-usd": "0.000014",
    }


async def test_an_experiment_names_itself_and_its_arm_and_is_sticky(serve):
    service = await serve()
    seen = set()
    async with client(service) as ai:
        for _ in range(3):
            raw = await ai.chat.completions.with_raw_response.create(model="auto", messages=ASK)
            assert raw.headers["x-cascade-experiment"] == "auto"
            seen.add(raw.headers["x-cascade-arm"])
    assert len(seen) == 1
    assert {result.arm for result in service.log.results} == seen


async def test_everything_the_client_sent_reaches_the_model(serve):
    service = await serve()
    # Marks of a provider reach only a tier that says it knows them, as this one does.
    assert "cache_control" in service.snapshot.tiers["small"].accepts
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    messages = [
        {"role": "system", "content": "be brief", "cache_control": {"type": "ephemeral"}},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
    ]
    extra = {
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "response_format": {"type": "text"},
        "stop": ["x"],
        "seed": 3,
        "logit_bias": {"1": -1},
        "reasoning_effort": "low",
        "max_completion_tokens": 50,
        "user": "u",
        "unheard_of": {"a": [None]},
    }
    body = {"model": "always-small", "messages": messages, "tools": tools, **extra}
    async with client(service) as ai:
        await ai.chat.completions.create(
            model="always-small", messages=messages, tools=tools, extra_body=extra
        )
    [asked] = service.backend("small").requests
    assert asked.messages == messages
    assert asked.tools == tools
    assert asked.params == extra
    assert asked.session == body["user"]


async def test_a_providers_marks_do_not_reach_a_tier_that_does_not_know_them(serve):
    service = await serve()
    tiers = service.snapshot.tiers
    tiers["small"] = replace(tiers["small"], accepts=frozenset())
    mark = {"cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    said = {"type": "text", "text": "3"}
    body = {
        "model": "always-small",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "1+2?", **mark}]},
            {"role": "assistant", "content": [thought, said], "reasoning_content": "hm"},
            {"role": "user", "content": "thanks", "name": "mara"},
        ],
        "prompt_cache_key": "k",
        "seed": 3,
    }
    async with client(service) as ai:
        await ai.post("/chat/completions", body=body, cast_to=object)
    [asked] = service.backend("small").requests
    assert asked.messages == [
        {"role": "user", "content": [{"type": "text", "text": "1+2?"}]},
        {"role": "assistant", "content": [said]},
        {"role": "user", "content": "thanks", "name": "mara"},
    ]
    assert asked.params == {"seed": 3}


async def test_models_lists_what_can_be_asked_for(serve):
    service = await serve()
    async with client(service) as ai:
        names = [model.id async for model in ai.models.list()]
        assert names == ["auto", "cascade", "always-small", "small", "large"]
        assert (await ai.models.retrieve("auto")).id == "auto"
        with pytest.raises(openai.NotFoundError):
            await ai.models.retrieve("none")


async def test_with_n_every_choice_is_returned(serve):
    service = await serve()
    async with client(service) as ai:
        answer = await ai.chat.completions.create(model="cascade", messages=ASK, n=2)
    assert [choice.index for choice in answer.choices] == [0, 1]


async def test_tool_calls_are_returned_with_null_content(serve):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    service = await serve(small=[Script(text="", tool_calls=[call], finish_reason="tool_calls")])
    async with client(service) as ai:
        answer = await ai.chat.completions.create(model="cascade", messages=ASK)
        assert answer.choices[0].message.content is None
        assert answer.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
        stream = await ai.chat.completions.create(model="cascade", messages=ASK, stream=True)
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.tool_calls[0].function.name == "f"


async def test_the_clients_logprobs_come_back_when_asked_for(serve):
    service = await serve()
    async with client(service) as ai:
        answer = await ai.chat.completions.create(
            model="cascade", messages=ASK, logprobs=True, top_logprobs=1
        )
    entries = answer.choices[0].logprobs.content
    assert entries[0].token == "four"
    assert len(entries[0].top_logprobs) == 1
