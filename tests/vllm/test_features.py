"""What only a real vLLM shows: adapters, its prefix cache, its queue, its refusals, its slots."""

import asyncio
from uuid import uuid4

import openai
import pytest

from tests.asking import DEADLINE_SECONDS
from tests.end_to_end.processes import wait_for

LONG = "Here is a list of words. " + "apple pear plum cherry " * 60


@pytest.fixture
async def ai(service):
    async with openai.AsyncOpenAI(
        base_url=f"{service.url}/v1", api_key="none", max_retries=0, timeout=DEADLINE_SECONDS
    ) as client:
        yield client


async def ask(ai, model, text="Name three fruits.", **fields):
    extra = {"temperature": 0, "max_tokens": 8, **fields.pop("extra", {})}
    raw = await ai.chat.completions.with_raw_response.create(
        model=model, messages=[{"role": "user", "content": text}], extra_body=extra, **fields
    )
    return raw.parse(), raw.headers


async def test_an_adapter_is_asked_by_its_own_name_and_answers_otherwise_than_its_base(ai):
    base, _ = await ask(ai, "big", extra={"max_tokens": 24})
    tuned, headers = await ask(ai, "tuned", extra={"max_tokens": 24})
    assert (base.model, tuned.model) == ("big", "big-ft")
    assert headers["x-cascade-model"] == "big-ft"
    assert base.choices[0].message.content != tuned.choices[0].message.content


async def test_a_cache_salt_reaches_the_server_and_keeps_caches_apart(ai):
    text, salt, other = f"{uuid4()} {LONG}", uuid4().hex, uuid4().hex
    cached = []
    for given in (salt, salt, other):
        answer, _ = await ask(ai, "small", text, extra={"cache_salt": given})
        cached.append(answer.usage.prompt_tokens_details.cached_tokens)
    cold, warm, elsewhere = cached
    assert warm > cold
    assert warm >= answer.usage.prompt_tokens // 2
    assert elsewhere == cold


async def test_tenants_share_no_cache_where_the_tier_salts_them(ai):
    text = f"{uuid4()} {LONG}"
    cached = []
    for tenant in ("acme", "acme", "other"):
        headers = {"x-cascade-tenant": tenant}
        answer, _ = await ask(ai, "salted", text, extra_headers=headers)
        cached.append(answer.usage.prompt_tokens_details.cached_tokens)
    cold, warm, elsewhere = cached
    assert warm > cold
    assert elsewhere == cold


async def test_a_warm_prompt_is_billed_in_disjoint_buckets(ai, service):
    text = f"{uuid4()} {LONG}"
    await ask(ai, "big", text)
    answer, headers = await ask(ai, "big", text)
    usage = answer.usage
    cached = usage.prompt_tokens_details.cached_tokens
    assert 0 < cached < usage.prompt_tokens
    [attempt] = service.record(headers["x-cascade-request-id"])["attempts"]
    assert attempt["input_tokens"] == usage.prompt_tokens - cached
    assert attempt["cache_read_tokens"] == cached
    assert attempt["output_tokens"] == usage.completion_tokens
    bill = attempt["input_tokens"] * 0.2 + cached * 0.02 + usage.completion_tokens * 0.4
    assert float(headers["x-cascade-cost-usd"]) == pytest.approx(bill / 1e6)


async def test_log_probabilities_reach_the_judge_and_not_the_client(ai, service):
    for model, tier in (("lenient", "small"), ("strict", "big")):
        answer, headers = await ask(ai, model)
        assert headers["x-cascade-tier"] == tier
        assert answer.choices[0].logprobs is None
        first = service.record(headers["x-cascade-request-id"])["attempts"][0]
        assert 0 < first["score"] < 1
        assert first["outcome"] == ("accepted" if tier == "small" else "rejected")


async def test_a_client_gets_as_many_alternatives_as_it_asked_for_of_a_judged_answer(ai):
    answer, _ = await ask(ai, "lenient", logprobs=True, top_logprobs=1)
    entries = answer.choices[0].logprobs.content
    assert len(entries) == answer.usage.completion_tokens
    assert {len(entry.top_logprobs) for entry in entries} == {1}


async def test_a_prompt_too_long_for_a_tier_is_answered_by_the_next(ai):
    _, headers = await ask(ai, "widening", "word " * 200)
    assert headers["x-cascade-tier"] == "big"


async def test_the_servers_own_count_decides_whether_a_prompt_fits(ai):
    number = "1234567890123456 "  # one word to an estimate, a token a digit to the model
    _, headers = await ask(ai, "counting", number * 5)
    assert headers["x-cascade-tier"] == "counted"
    answer, headers = await ask(ai, "counting", number * 20)
    assert headers["x-cascade-tier"] == "big"
    assert answer.usage.prompt_tokens > 200


async def test_a_prompt_too_long_for_the_server_is_the_clients_fault(ai):
    with pytest.raises(openai.BadRequestError, match="4096"):
        await ask(ai, "small", "word " * 5000)
    with pytest.raises(openai.BadRequestError, match="window of 4096 tokens"):
        await ask(ai, "big", "word " * 5000)


async def test_a_model_that_the_server_does_not_have_is_no_answer_or_the_next_tiers(ai):
    with pytest.raises(openai.APIStatusError, match="nobody-serves-this"):
        await ask(ai, "mistaken")
    _, headers = await ask(ai, "forgiving")
    assert headers["x-cascade-tier"] == "small"
    with pytest.raises(openai.NotFoundError, match="no-such-name"):
        await ask(ai, "no-such-name")


async def test_fields_that_only_vllm_knows_reach_it(ai):
    answer, _ = await ask(ai, "small", extra={"max_tokens": 30, "ignore_eos": True})
    assert answer.usage.completion_tokens == 30
    answer, _ = await ask(
        ai, "small", "Say yes or no.", extra={"structured_outputs": {"choice": ["yes", "no"]}}
    )
    assert answer.choices[0].message.content in {"yes", "no"}


async def test_a_client_that_leaves_frees_its_slot_and_is_audited(ai, vllm, service):
    port = vllm.SMALL_PORT
    await until(lambda: vllm.gauge(port, "num_requests_running") == 0)
    stream = await ai.chat.completions.create(
        model="small",
        messages=[{"role": "user", "content": "Tell me a long story."}],
        stream=True,
        max_tokens=3000,
        extra_body={"ignore_eos": True},
    )
    request_id = stream.response.headers["x-cascade-request-id"]
    await anext(stream)
    assert vllm.gauge(port, "num_requests_running") == 1
    await stream.close()
    await until(lambda: vllm.gauge(port, "num_requests_running") == 0, seconds=15)
    [attempt] = service.record(request_id)["attempts"]
    assert attempt["outcome"] == "cancelled"


CROWD = 40
"""Five times as many as the server takes at once, so that some wait for a good while."""


async def test_requests_beyond_the_servers_slots_wait_there_and_are_answered(ai, vllm):
    asks = [
        asyncio.create_task(
            ask(ai, "small", f"Story {i}.", extra={"max_tokens": 120, "ignore_eos": True})
        )
        for i in range(CROWD)
    ]
    await until(lambda: vllm.gauge(vllm.SMALL_PORT, "num_requests_waiting") >= 1)
    answers = await asyncio.gather(*asks)
    assert [answer.usage.completion_tokens for answer, _ in answers] == [120] * CROWD


async def test_requests_beyond_a_tiers_own_limit_are_refused_with_a_time_to_come_back(ai):
    asks = [
        ask(ai, "single", f"Story {i}.", extra={"max_tokens": 60, "ignore_eos": True})
        for i in range(3)
    ]
    outcomes = await asyncio.gather(*asks, return_exceptions=True)
    [refused] = [each for each in outcomes if isinstance(each, openai.RateLimitError)]
    assert int(refused.response.headers["retry-after"]) >= 1
    assert sum(isinstance(each, tuple) for each in outcomes) == 2


async def until(condition, seconds=60):
    await asyncio.to_thread(wait_for, condition, seconds)
