import asyncio
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendError, ConfigError
from cascade.pricing import PriceCard, Rates
from cascade.tiers import ModelTier
from cascade.types import ChatRequest, Usage
from evals.collecting.meter import BudgetSpentError, Meter, UnpricedCallError, most_dollars
from tests.engines import card


def asked(text="Why?", **params):
    return ChatRequest(id="a", messages=[{"role": "user", "content": text}], params=params)


def tier(*answers, prices=None):
    return ModelTier(name="small", backend=ScriptedBackend(answers=answers), prices=prices)


async def ask(metered, request=None):
    return [chunk async for chunk in metered.stream(request or asked(max_tokens=2))]


async def test_calls_and_dollars_are_counted():
    meter = Meter()
    metered = meter.metered(tier("4", prices=card()))
    await ask(metered)
    await ask(metered)
    assert meter.requests == 2
    assert meter.dollars == 2 * (10 * Decimal(1) + 2 * Decimal(2)) / 1_000_000
    assert meter.unknown == 0


async def test_a_call_beyond_the_allowed_number_is_not_made():
    meter = Meter(most_requests=1)
    small = tier("4", prices=card())
    metered = meter.metered(small)
    await ask(metered)
    assert not meter.spent
    with pytest.raises(BudgetSpentError):
        await ask(metered)
    assert meter.spent
    assert len(small.backend.requests) == 1


async def test_a_call_that_could_exceed_the_dollars_is_not_made_and_a_shorter_one_is():
    small = tier("4", prices=card())
    meter = Meter(most_dollars=Decimal("0.001"))
    metered = meter.metered(small)
    with pytest.raises(BudgetSpentError):
        await ask(metered, asked(max_tokens=1000))
    assert meter.dollars == 0
    await ask(metered, asked(max_tokens=2))
    assert 0 < meter.dollars < Decimal("0.001")


async def test_dollars_that_calls_in_flight_may_cost_are_set_aside():
    meter = Meter(most_dollars=Decimal(3))
    first = meter.begin(Decimal(2))
    with pytest.raises(BudgetSpentError):
        meter.begin(Decimal(2))
    meter.end(first, Decimal("0.5"))
    meter.end(meter.begin(Decimal(2)), Decimal(1))
    assert meter.dollars == Decimal("1.5")


async def test_calls_at_once_go_as_far_as_the_same_calls_one_by_one():
    """What is set aside for those in flight is not spent: whoever lacks it waits for their end."""
    slow = Script(text="4", first_token_seconds=0.001)
    made = []
    for at_once in (1, 8):
        meter = Meter(most_dollars=Decimal("0.001"))
        metered = meter.metered(tier(slow, prices=card()))
        places = asyncio.Semaphore(at_once)

        async def one(metered=metered, places=places):
            async with places:
                await ask(metered, asked(max_tokens=100))

        ended = await asyncio.gather(*(one() for _ in range(80)), return_exceptions=True)
        assert {type(each) for each in ended if each is not None} == {BudgetSpentError}
        assert meter.dollars <= Decimal("0.001")
        made.append(meter.requests)
    assert made[0] == made[1] > 8


async def test_what_a_call_cost_and_nobody_says_counts_as_the_most_that_it_could():
    meter = Meter()
    metered = meter.metered(tier(Script(text="4", usage=None), prices=card()))
    await ask(metered)
    assert meter.unknown == 1
    assert meter.dollars == most_dollars(card(), asked(max_tokens=2), 1)


async def test_a_refused_call_costs_nothing_and_one_that_broke_off_may_have():
    meter = Meter()
    metered = meter.metered(tier(Script(error="BackendRefusedError"), prices=card()))
    with pytest.raises(BackendError):
        await ask(metered)
    assert (meter.requests, meter.dollars) == (1, 0)
    metered = meter.metered(tier(Script(text="a b c", cut_after=1), prices=card()))
    with pytest.raises(BackendError):
        await ask(metered)
    assert meter.dollars > 0
    assert meter.unknown == 1


def test_the_most_that_a_call_costs_is_never_below_what_it_costs():
    request = asked("\u00fcber " * 50, max_tokens=30, n=2)
    most = most_dollars(card(), request, 1)
    assert most >= card().price(Usage(input=350, cache_read=0, output=60)).total
    written = PriceCard(
        rates=Rates(
            input=Decimal(1),
            cache_read=Decimal("0.1"),
            cache_write={"5m": Decimal("1.25")},
            output=Decimal(2),
        )
    )
    assert most_dollars(written, request, 1) > most
    assert most_dollars(PriceCard(rates=Rates(input=Decimal(1))), request, 1) is None


def test_dollars_cannot_be_limited_where_a_tier_has_no_price():
    limited = Meter(most_dollars=Decimal(1))
    for prices in (None, PriceCard(rates=Rates(input=Decimal(1)))):
        with pytest.raises(ConfigError, match="tier small has no price, so that --max-usd"):
            limited.require_price(tier("4", prices=prices))
    limited.require_price(tier("4", prices=card()))
    Meter(most_requests=1).require_price(tier("4"))


async def test_a_call_of_unknown_price_is_not_made_where_dollars_are_limited():
    small = tier("4")
    with pytest.raises(UnpricedCallError):
        await ask(Meter(most_dollars=Decimal(1)).metered(small))
    assert not small.backend.requests


@given(
    calls=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100), st.booleans()), max_size=30),
    limit=st.integers(0, 200),
)
def test_dollars_are_never_exceeded_however_calls_overlap(calls, limit):
    """Each call costs a share of the most that it could, or nobody says what it cost."""
    meter = Meter(most_dollars=Decimal(limit))
    flying = []
    for most, share, waits in calls:
        try:
            flying.append((meter.begin(Decimal(most)), share))
        except BudgetSpentError:
            continue
        while flying and not waits:
            aside, part = flying.pop()
            meter.end(aside, None if part % 7 == 0 else aside * part / 100)
    for aside, _ in flying:
        meter.end(aside, aside)
    assert meter.dollars <= limit
