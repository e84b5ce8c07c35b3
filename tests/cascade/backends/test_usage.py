"""Known bills, from the report of the provider to the dollars, by every way a report can come."""

from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
import pytest

from cascade.backends.litellm_api import LitellmBackend
from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.backends.usage import from_anthropic, from_openai
from cascade.pricing import PriceCard, Rates
from cascade.types import ChatRequest, Usage
from tests.anthropic import message
from tests.upstream import DONE, Upstream, serving, words

D = Decimal
SONNET = PriceCard(
    rates=Rates(
        input=D(3), cache_read=D("0.30"), cache_write={"5m": D("3.75"), "1h": D(6)}, output=D(15)
    )
)
GPT_5_MINI = PriceCard(rates=Rates(input=D("0.25"), cache_read=D("0.025"), output=D(2)))
TERRA = PriceCard(
    rates=Rates(input=D(2), cache_read=D("0.20"), cache_write={"default": D("2.5")}, output=D(12))
)
GPT_5_4 = PriceCard(
    rates=Rates(input=D("2.5"), cache_read=D("0.25"), output=D(15)),
    long_prompt_rates=[(272_000, Rates(input=D(5), cache_read=D("0.5"), output=D("22.5")))],
)
OWN_WITHOUT_PRICE = PriceCard(rates=Rates())
OWN_WITHOUT_CACHE_RATE = PriceCard(rates=Rates(input=D(1), output=D(2)))
OWN = PriceCard(rates=Rates(input=D(1), cache_read=D("0.1"), output=D(2)))


@dataclass(frozen=True)
class Case:
    card: PriceCard
    report: dict[str, Any]
    usage: Usage
    millionths: int | None
    anthropic: bool = False


def anthropic(card, report, usage, millionths):
    shown = {"output_tokens": 100, **report}
    return Case(card, shown, usage, millionths, anthropic=True)


def openai(card, prompt, details, usage, millionths):
    report = {"prompt_tokens": prompt, "completion_tokens": 100, "prompt_tokens_details": details}
    return Case(card, report, usage, millionths)


READ_AND_WRITTEN = {
    "input_tokens": 1000,
    "cache_read_input_tokens": 8000,
    "cache_creation_input_tokens": 1000,
}
FOR_5_MINUTES = Usage(input=1000, cache_read=8000, cache_write={"5m": 1000}, output=100)
CASES = {
    "written for 5 minutes": anthropic(
        SONNET,
        {
            **READ_AND_WRITTEN,
            "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 0},
        },
        FOR_5_MINUTES,
        10_650,
    ),
    "written for 1 hour": anthropic(
        SONNET,
        {
            **READ_AND_WRITTEN,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1000},
        },
        Usage(input=1000, cache_read=8000, cache_write={"1h": 1000}, output=100),
        12_900,
    ),
    "input without the cached": anthropic(SONNET, READ_AND_WRITTEN, FOR_5_MINUTES, 10_650),
    "read": openai(
        GPT_5_MINI,
        10_000,
        {"cached_tokens": 8000},
        Usage(input=2000, cache_read=8000, output=100),
        900,
    ),
    "read and written": openai(
        TERRA,
        10_000,
        {"cached_tokens": 6000, "cache_write_tokens": 3000},
        Usage(input=1000, cache_read=6000, cache_write={"default": 3000}, output=100),
        11_900,
    ),
    "long prompt": openai(
        GPT_5_4,
        300_000,
        {"cached_tokens": 200_000},
        Usage(input=100_000, cache_read=200_000, output=100),
        602_250,
    ),
    "self-hosted, price unknown": openai(
        OWN_WITHOUT_PRICE, 10_000, None, Usage(input=10_000, output=100), None
    ),
    "self-hosted, cache rate unknown": openai(
        OWN_WITHOUT_CACHE_RATE,
        10_000,
        {"cached_tokens": 8000},
        Usage(input=2000, cache_read=8000, output=100),
        None,
    ),
    "self-hosted": openai(
        OWN,
        10_000,
        {"cached_tokens": 8000},
        Usage(input=2000, cache_read=8000, output=100),
        3000,
    ),
}


@asynccontextmanager
async def litellm(case, *, whole=False):
    if case.anthropic:
        pieces, model = message("a", usage=case.report), "anthropic/claude-sonnet-4-6"
    elif whole:
        choice = {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}
        answer = {"model": "m-1", "choices": [choice], "usage": case.report}
        pieces, model = [orjson.dumps(answer)], "openai/m"
    else:
        pieces, model = [*words("a", usage=case.report), DONE], "openai/m"
    kind = "application/json" if whole else "text/event-stream"
    async with serving(Upstream(pieces=pieces, headers={"Content-Type": kind})) as upstream:
        url = upstream.url.removesuffix("/v1") if case.anthropic else upstream.url
        yield LitellmBackend(model=model, url=url, api_key="k")


@asynccontextmanager
async def own_client(case):
    pieces = [*words("a", usage=case.report), DONE]
    async with serving(Upstream(pieces=pieces)) as upstream:
        yield OpenAIHttpBackend(url=upstream.url, model="m")


async def usage_of(backend, **params):
    request = ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}], params=params)
    try:
        return (await backend.complete(request)).usage
    finally:
        await backend.aclose()


def without_reasoning(usage):
    """What litellm counts itself where Anthropic reports no thinking apart."""
    return Usage(
        input=usage.input,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        output=usage.output,
    )


def bill(case, usage):
    cost = case.card.price(usage)
    return None if cost is None else cost.total * 1_000_000


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_report_is_sorted_into_buckets_and_priced(case):
    usage = (from_anthropic if case.anthropic else from_openai)(case.report)
    assert usage == case.usage
    assert bill(case, usage) == case.millionths


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_a_report_at_the_end_of_litellms_stream_is_priced(case):
    async with litellm(case) as backend:
        usage = await usage_of(backend)
    assert without_reasoning(usage) == case.usage
    assert bill(case, usage) == case.millionths


@pytest.mark.parametrize("case", [c for c in CASES.values() if not c.anthropic])
async def test_a_report_in_litellms_whole_answer_is_priced(case):
    async with litellm(case, whole=True) as backend:
        usage = await usage_of(backend, logprobs=True)
    assert usage == case.usage
    assert bill(case, usage) == case.millionths


@pytest.mark.parametrize("case", [c for c in CASES.values() if not c.anthropic])
async def test_a_report_at_the_end_of_our_own_clients_stream_is_priced(case):
    async with own_client(case) as backend:
        usage = await usage_of(backend)
    assert usage == case.usage
    assert bill(case, usage) == case.millionths


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.anthropic])
def test_anthropics_counts_in_the_shape_of_openai_are_the_same_bill(case):
    report = {
        "prompt_tokens": 10_000,
        "completion_tokens": 100,
        "prompt_tokens_details": {
            "cached_tokens": 8000,
            "cache_write_tokens": 1000,
            "cache_creation_token_details": case.report.get("cache_creation"),
        },
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 8000,
    }
    assert from_openai(report) == case.usage
    assert bill(case, from_openai(report)) == case.millionths


def test_both_times_to_live_in_one_report_are_kept_apart():
    split = {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 20}
    report = {**READ_AND_WRITTEN, "cache_creation_input_tokens": 50, "cache_creation": split}
    assert from_anthropic(report).cache_write == {"5m": 30, "1h": 20}


def test_writes_that_the_split_misses_are_not_lost():
    split = {"ephemeral_1h_input_tokens": 20}
    report = {"cache_creation_input_tokens": 50, "cache_creation": split}
    assert from_anthropic(report).cache_write == {"1h": 20, "5m": 30}


def test_what_is_not_reported_is_unknown_and_a_reported_zero_is_zero():
    assert from_anthropic(None) == from_openai({}) == Usage()
    assert from_anthropic({"input_tokens": 5, "cache_read_input_tokens": None}) == Usage(input=5)
    nothing = from_anthropic({"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0})
    assert nothing == Usage(cache_read=0, cache_write={"5m": 0})
    assert from_openai({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}) == (
        Usage(input=5, cache_read=0)
    )


def test_reasoning_is_taken_out_of_the_answers_tokens():
    details = {"reasoning_tokens": 7}
    usage = from_openai({"completion_tokens": 10, "completion_tokens_details": details})
    assert (usage.output, usage.reasoning) == (3, 7)
