"""What a call is quoted: the bill that it would have, and what warming its prompt is worth."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.ledger import Warm
from cascade.pricing import PriceCard, Rates
from cascade.quote import NOTHING, Quote, Shared
from cascade.quoting import UNKNOWN_LIFETIME, Expected, quote, wanted
from cascade.traffic import Traffic, Whose
from cascade.types import Usage
from tests.engines import card, tier
from tests.ledgers import Clock

M = Decimal(1_000_000)
TURN = Whose("acme", "s", "prefix")
CARD = card("10", "1", "20")
WRITES = PriceCard(
    rates=Rates(
        input=Decimal(3),
        cache_read=Decimal("0.3"),
        cache_write={"1h": Decimal(6), "5m": Decimal("3.75")},
        output=Decimal(15),
    )
)
GPU = PriceCard.from_gpu(
    usd_per_hour=Decimal("3.6"),
    prefill_tokens_per_second=Decimal(10_000),
    cached_tokens_per_second=Decimal(1_000_000),
    decode_tokens_per_second=Decimal(100),
)
UNKNOWN = PriceCard(rates=Rates())


def traffic(gap=60.0, turns=50, u=1.0):
    clock = Clock()
    seen = Traffic(clock=clock)
    for _ in range(turns):
        seen.began(TURN)
        seen.ended(TURN, {"t": u})
        clock.wait(gap)
    return seen


def quoted(prices=CARD, *, seen=None, whose=TURN, **expected):
    values = {"prompt": 10_000, "stable": 8_000, "output": 100, "lifetime": 300.0, **expected}
    made = replace(tier("t"), prices=prices)
    return quote(made, Expected(**values), seen or Traffic(), whose)


def warm(tokens, age=0.0, **said):
    return Warm(tokens=tokens, age_seconds=age, **said)


def test_the_bill_is_the_cards_price_of_the_usage_that_is_expected():
    told = quoted(warm=warm(6_000))
    usage = Usage(input=4_000, cache_read=6_000, output=100)
    assert told.dollars == CARD.price(usage).total == Decimal("0.048")
    assert (told.warm_tokens, told.cold_tokens, told.expected_output_tokens) == (6_000, 4_000, 100)


def test_where_writing_has_a_price_what_is_not_read_is_written_at_the_cheapest():
    # 8,000 at 0.30, 2,000 at 3.75 and 100 at 15 per million.
    assert quoted(WRITES, warm=warm(8_000)).dollars == Decimal(11_400) / M
    assert quoted(WRITES).dollars == Decimal(39_000) / M


def test_the_cold_premium_is_what_the_prompt_costs_more_than_if_it_were_warm():
    assert quoted().cold_premium == (10_000 * 9) / M
    assert quoted(warm=warm(6_000)).cold_premium == (4_000 * 9) / M
    assert quoted(warm=warm(10_000)).cold_premium == 0
    assert quoted(WRITES).cold_premium == Decimal(10_000) * Decimal("3.45") / M


def test_a_prompt_below_the_minimum_is_neither_read_nor_written():
    told = quoted(WRITES, warm=warm(8_000), minimum=10_001, seen=traffic())
    assert (told.warm_tokens, told.cold_tokens) == (0, 10_000)
    assert told.dollars == WRITES.price(Usage(input=10_000, output=100)).total
    assert (told.cold_premium, told.shared) == (None, NOTHING)
    assert quoted(minimum=10_000, warm=warm(8_000)).warm_tokens == 8_000


def test_a_shared_part_below_the_minimum_is_worth_nothing_to_others():
    assert quoted(minimum=8_001, seen=traffic()).shared == NOTHING
    assert quoted(minimum=8_000, seen=traffic()).shared.credit > 0.0


def test_a_tier_without_a_cache_is_billed_as_computed_and_has_no_premium():
    told = quoted(WRITES, cached=False, seen=traffic())
    assert told.dollars == WRITES.price(Usage(input=10_000, output=100)).total
    assert (told.cold_premium, told.shared) == (None, NOTHING)


def test_a_long_prompt_is_quoted_at_its_own_rates_as_a_whole():
    long = Rates(
        input=Decimal(6),
        cache_read=Decimal("0.6"),
        cache_write={"long": Decimal("7.5")},
        output=Decimal("22.5"),
    )
    both = replace(WRITES, long_prompt_rates=[(200_000, long)])
    below = quoted(both, prompt=200_000, stable=100_000, seen=traffic())
    above = quoted(both, prompt=200_001, stable=100_000, seen=traffic())
    assert below.dollars == (Decimal(200_000) * Decimal("3.75") + 1500) / M
    assert above.dollars == (Decimal(200_001) * Decimal("7.5") + 2250) / M
    assert above.cold_premium == Decimal(200_001) * Decimal("6.9") / M
    assert above.shared.premium == pytest.approx(100_000 * 6.9e-6)
    assert below.shared.premium == pytest.approx(100_000 * 3.45e-6)


def test_a_card_that_is_made_of_a_gpus_hour_is_quoted_as_any_other():
    # 4,000 tokens take 0.4 s, 6,000 cached ones 6 ms, and 100 of the answer a second.
    assert quoted(GPU, warm=warm(6_000)).dollars == pytest.approx(Decimal("0.001406"))


@pytest.mark.parametrize("prices", [UNKNOWN, None])
def test_without_a_price_tokens_are_told_and_dollars_are_not(prices):
    told = quoted(prices, warm=warm(6_000, estimated=True), seen=traffic())
    assert (told.warm_tokens, told.cold_tokens, told.estimated) == (6_000, 4_000, True)
    assert (told.dollars, told.price, told.cold_premium, told.shared) == (None, None, None, NOTHING)


def test_a_rate_that_is_not_known_matters_only_where_it_is_needed():
    unread = PriceCard(rates=Rates(input=Decimal(10), output=Decimal(20)))
    assert quoted(unread, warm=warm(6_000)).dollars is None
    cold = quoted(unread, seen=traffic())
    assert cold.dollars == Decimal(102_000) / M
    assert (cold.cold_premium, cold.shared) == (None, NOTHING)


def test_where_reading_is_no_cheaper_than_computing_warming_is_worth_nothing():
    assert quoted(card("1", "1", "2"), seen=traffic()).shared == NOTHING


def test_the_credit_is_the_premium_of_the_shared_part_by_what_traffic_says():
    seen = traffic()
    each = 9e-6
    told = quoted(seen=seen, warm=warm(2_000, age=120.0))
    worth = seen.worth(TURN, "t", 300.0, 120.0)
    assert told.shared.premium == pytest.approx(8_000 * each)
    assert told.shared.cold == pytest.approx(6_000 * each)
    assert told.shared.credit == pytest.approx(
        each * (6_000 * worth.warmed + 2_000 * worth.renewed), rel=1e-4
    )
    assert told.price == pytest.approx(float(told.dollars) - told.shared.credit)
    assert float(told.credit) == pytest.approx(told.shared.credit)


def test_a_prompt_that_is_warm_beyond_its_shared_part_has_none_of_that_cold():
    assert quoted(warm=warm(9_000)).shared.cold == 0.0


def test_a_cache_that_was_never_seen_full_is_taken_to_keep_things_long():
    seen = traffic(gap=600.0)
    unknown = quoted(seen=seen, lifetime=None).shared.credit
    assert unknown == pytest.approx(quoted(seen=seen, lifetime=UNKNOWN_LIFETIME).shared.credit)
    assert unknown > quoted(seen=seen, lifetime=300.0).shared.credit


def test_nobody_is_credited_for_a_prefix_that_nobody_else_came_with():
    assert quoted(whose=Whose("acme", "s", "new"), seen=traffic()).shared.credit == 0.0
    assert quoted(whose=Whose("other", "s", "prefix"), seen=traffic()).shared.credit == 0.0


@settings(deadline=None)
@given(
    expected=st.fixed_dictionaries(
        {
            "prompt": st.integers(1, 300_000),
            "stable": st.integers(0, 400_000),
            "warm": st.builds(warm, st.integers(0, 400_000), st.floats(0, 1000)),
            "lifetime": st.none() | st.floats(1, 10_000),
            "minimum": st.integers(0, 2_000),
        }
    ),
    prices=st.sampled_from([CARD, WRITES, GPU]),
    gap=st.sampled_from([1.0, 60.0, 5_000.0]),
)
def test_the_parts_of_a_quote_add_up(expected, prices, gap):
    told = quoted(prices, seen=traffic(gap, turns=5), **expected)
    assert told.warm_tokens + told.cold_tokens == expected["prompt"]
    shared = told.shared
    assert 0.0 <= shared.cold <= shared.premium
    assert -1e-12 <= shared.credit <= shared.premium + 1e-12
    if told.cold_premium is None:
        assert expected["prompt"] < expected["minimum"]
        return
    assert 0 <= told.cold_premium < told.dollars
    assert shared.cold <= float(told.cold_premium) + 1e-12
    # A prompt that others share as a whole has all of the premium in that part.
    whole = quoted(prices, **expected | {"stable": expected["prompt"]})
    assert whole.shared.cold == pytest.approx(float(told.cold_premium), abs=1e-12)


def test_a_tier_that_leads_when_cold_is_wanted_at_any_price_of_warming_it():
    told = Quote(tier="t", shared=Shared(premium=0.08, cold=0.08))
    assert wanted(told, lead=0.0) == pytest.approx(1.0)
    assert wanted(told, lead=0.04) == pytest.approx(1.5)


def test_a_tier_that_would_lead_if_it_were_warm_is_wanted_by_that_much():
    cold = Quote(tier="t", shared=Shared(premium=0.08, cold=0.08))
    assert wanted(cold, lead=-0.06) == pytest.approx(0.25)
    assert wanted(cold, lead=-0.10) == pytest.approx(-0.25)
    half = Quote(tier="t", shared=Shared(premium=0.08, cold=0.04))
    assert wanted(half, lead=-0.02) == pytest.approx(0.25)


def test_a_lead_that_is_owed_to_credit_is_no_want():
    told = Quote(tier="t", shared=Shared(premium=0.08, cold=0.08, credit=0.06))
    assert wanted(told, lead=0.0) == pytest.approx(0.25)


def test_how_much_a_tier_is_wanted_does_not_depend_on_what_is_warm_or_credited():
    """Or what is learned would depend on what was believed."""
    seen, value = traffic(), 0.1
    wants = [
        wanted(told, lead=value - told.price)
        for told in (
            quoted(),
            quoted(seen=seen),
            quoted(warm=warm(8_000)),
            quoted(seen=seen, warm=warm(4_000, age=100.0)),
        )
    ]
    assert wants == pytest.approx([wants[0]] * 4)


def test_where_nothing_is_shared_nothing_is_wanted_of_it():
    assert wanted(Quote(tier="t"), lead=1.0) == 0.0
