from decimal import Decimal

import pytest

from cascade.caches import CacheCard
from cascade.pricing import PriceCard, Rates
from cascade.types import ChatRequest, Usage
from serving.prewarm.paying import advice, economics, thinking
from serving.prewarm.sending import Sent, prewarming
from tests.engines import tier

TTL = CacheCard(kind="ttl", ttl_seconds=300.0, minimum_tokens=1024)


def sent(**usage):
    reported = Usage(**{"input": 0, "cache_read": 0, "output": 1, **usage})
    return Sent(model="m", usage=reported, cost=Decimal(1), seconds=1.0, request_id="r")


def card(fresh="2", read="0.10", write="2.50"):
    writes = {"5m": Decimal(write)} if write else {}
    rates = Rates(
        input=Decimal(fresh),
        cache_read=None if read is None else Decimal(read),
        cache_write=writes,
        output=Decimal(10),
    )
    return PriceCard(rates=rates)


WRITTEN = {"cache_write": {"5m": 20_000}}


def test_ten_uses_of_twenty_thousand_tokens_cost_what_the_manual_says():
    found = economics(sent(**WRITTEN), card(), 10)
    assert {way: str(cost.normalize()) for way, cost in found.dollars.items()} == {
        "uncached": "0.4",
        "in sequence": "0.068",
        "all at once": "0.5",
        "prewarmed": "0.07",
    }
    assert found.pays


@pytest.mark.parametrize(
    ("usage", "prices", "above", "pays_from"),
    [
        ({"cache_write": {"5m": 100}}, card("1", "0.1", "1.25"), "1.278", 2),
        ({"cache_write": {"1h": 100}}, None, "2.111", 3),
        ({"input": 100}, card("1", "0.1", None), "1.000", 2),
    ],
)
def test_a_write_pays_from_the_break_even_on(usage, prices, above, pays_from):
    hour = Rates(
        input=Decimal(1),
        cache_read=Decimal("0.1"),
        cache_write={"5m": Decimal("1.25"), "1h": Decimal(2)},
        output=Decimal(5),
    )
    found = economics(sent(**usage), prices or PriceCard(rates=hour), 10)
    assert (f"{found.above:.3f}", found.pays_from) == (above, pays_from)


def test_one_use_does_not_pay_for_a_write():
    found = economics(sent(**WRITTEN), card(), 1)
    assert not found.pays
    [note] = advice(sent(**WRITTEN), tier("t", cache=TTL), found)
    assert "1 use is too few" in note


@pytest.mark.parametrize("prices", [None, card(read=None)])
def test_without_prices_nobody_knows_whether_it_pays(prices):
    found = economics(sent(**WRITTEN), prices, 10)
    assert found is None
    [note] = advice(sent(**WRITTEN), tier("t", cache=TTL), found)
    assert "cannot be told without input and cache_read prices of t" in note


def test_when_all_is_well_nothing_is_said():
    found = economics(sent(**WRITTEN), card(), 10)
    assert advice(sent(**WRITTEN), tier("t", cache=TTL), found) == []


@pytest.mark.parametrize(
    ("usage", "cache", "note"),
    [
        ({"input": 900}, TTL, "has 900 tokens and this model keeps none below 1,024"),
        ({"input": 5000, "cache_write": {"5m": 0}}, TTL, "nothing was written.*breakpoints: true"),
        ({"input": 100, "cache_read": 5000}, TTL, "warm already"),
        ({"input": 5000, "cache_read": None}, TTL, "does not report what it reads"),
        ({"input": None}, TTL, "does not report its tokens"),
        ({"input": 5000}, None, "not known how this tier's cache works"),
        ({"input": 5000}, CacheCard(kind="slots", slots=2), "each of its 2 slots"),
    ],
)
def test_what_speaks_against_it_is_said(usage, cache, note):
    import re

    said = advice(sent(**usage), tier("t", cache=cache), economics(sent(**usage), card(), 10))
    assert any(re.search(note, each) for each in said), said


def test_where_writes_cost_nothing_extra_only_time_is_saved():
    found = economics(sent(input=5000), card(write=None), 10)
    [note] = advice(sent(input=5000), tier("t", cache=TTL), found)
    assert "only saves it its wait" in note
    assert found.dollars["in sequence"] < found.dollars["prewarmed"]


def thinking_request(**params):
    return prewarming(ChatRequest(id="r", messages=[], params=params))


def test_a_model_that_may_think_is_said_to_cost_its_budget_at_most():
    budget = {"type": "enabled", "budget_tokens": 10_000}
    request = thinking_request(thinking=budget, max_tokens=64_000)
    assert thinking(request, card()) == [
        "it may think: up to 10,001 tokens of output, which cost $0.10001 at most"
    ]
    named = thinking_request(thinking=budget, max_completion_tokens=64_000)
    assert thinking(named, card()) == thinking(request, card())
    dear = Rates(output=Decimal(20))
    long = PriceCard(rates=card().rates, long_prompt_rates=[(200_000, dear)])
    assert "$0.20002 at most" in thinking(request, long)[0]
    assert "an unknown amount" in thinking(request, None)[0]


@pytest.mark.parametrize("params", [{}, {"thinking": {"type": "adaptive"}}])
def test_where_one_token_is_answered_nothing_is_said_of_thinking(params):
    assert thinking(thinking_request(**params), card()) == []
