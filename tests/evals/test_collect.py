import asyncio
from decimal import Decimal

import pytest
from openai.types.chat import ChatCompletion

from cascade.backends.scripted import Script
from cascade.errors import BackendConnectionError, UnknownModelError
from cascade.types import Usage
from evals.collect import Asker, read
from tests.evals.outcomes import prompt
from tests.evals.services import cascade_of
from tests.services import running


def answer(text="4", usage=None):
    return ChatCompletion.model_validate(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": usage,
        }
    )


def test_an_outcome_is_read_from_the_answer_and_its_headers():
    usage = {
        "prompt_tokens": 40,
        "completion_tokens": 2,
        "total_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 30},
    }
    headers = {
        "x-cascade-tier": "large",
        "x-cascade-attempts": "2",
        "x-cascade-cost-usd": "0.000011614",
        "x-cascade-degraded": "false",
        "x-cascade-request-id": "r-1",
    }
    outcome = read(prompt(), "cascade", answer(usage=usage), headers)
    assert outcome.right
    assert (outcome.tier, outcome.attempts, outcome.request_id) == ("large", 2, "r-1")
    assert outcome.usage == Usage(input=10, cache_read=30, output=2)
    assert outcome.billed == Decimal("0.000011614")
    assert not outcome.degraded


def test_what_a_server_does_not_say_stays_unknown():
    outcome = read(prompt(), "m", answer("5"), {"x-cascade-cost-usd": "unknown"})
    assert not outcome.right
    assert outcome.billed is None
    assert outcome.usage == Usage()
    assert not read(prompt(), "m", answer(None), {}).right


async def ask(url, model, *prompts, **options):
    asker = Asker(f"{url}/v1", **options)
    seen = []
    try:
        return await asker.ask_all(model, prompts, seen.append), seen
    finally:
        await asker.aclose()


async def test_prompts_are_answered_in_their_order_by_the_policy_that_was_named():
    small = (Script(text="4", logprob=-0.1), Script(text="5", logprob=-3.0))
    async with running(cascade_of(small=small, large=("4",))) as service:
        outcomes, seen = await ask(service.url, "cascade", prompt("p-1"), prompt("p-2"))
    assert [one.prompt.id for one in outcomes] == ["p-1", "p-2"]
    assert [one.tier for one in outcomes] == ["small", "large"]
    assert [one.attempts for one in outcomes] == [1, 2]
    assert all(one.right and one.billed > 0 for one in outcomes)
    assert seen == outcomes


async def test_no_more_prompts_are_in_flight_than_allowed():
    flying, most = 0, 0
    gate = asyncio.Event()

    class Counting(Asker):
        async def _ask(self, model, asked):
            nonlocal flying, most
            flying += 1
            most = max(most, flying)
            await gate.wait()
            flying -= 1
            return read(asked, model, answer(), {})

    asker = Counting("http://127.0.0.1:1/v1", concurrency=3)
    task = asyncio.create_task(
        asker.ask_all("m", [prompt(str(i)) for i in range(9)], lambda _: None)
    )
    while flying < 3:
        await asyncio.sleep(0)
    gate.set()
    assert len(await task) == 9
    assert most == 3
    await asker.aclose()


async def test_a_prompt_that_gets_no_answer_is_an_outcome_with_its_error():
    large = (Script(error="BackendRefusedError"), "4")
    async with running(cascade_of(large=large)) as service:
        outcomes, _ = await ask(service.url, "always-large", prompt("p-1"), prompt("p-2"))
    assert "BackendRefusedError" in outcomes[0].error
    assert not outcomes[0].right
    assert outcomes[1].right


async def test_a_service_that_is_not_there_is_said_with_what_to_do():
    with pytest.raises(BackendConnectionError, match=r"127\.0\.0\.1:1/v1; start one with `make"):
        await ask("http://127.0.0.1:1", "cascade", prompt())


async def test_a_model_name_that_the_service_does_not_know_is_said():
    async with running(cascade_of()) as service:
        with pytest.raises(UnknownModelError, match="does not serve 'ladder'"):
            await ask(service.url, "ladder", prompt())
