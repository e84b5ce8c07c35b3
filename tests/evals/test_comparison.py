from decimal import Decimal

import pytest

from cascade.pricing import PriceCard, Rates
from cascade.types import Usage
from evals.comparison import (
    LARGE_RATES,
    ComparisonError,
    Finding,
    compare,
    pair,
    scaled,
    uncached_dollars,
)
from tests.evals.outcomes import blind, clairvoyant, outcome, prompt, trial

TENTH = Decimal("0.1")


def test_rows_are_everything_and_then_each_kind():
    rows = compare([*clairvoyant(4, "sums"), *clairvoyant(6, "classes")], ratio=TENTH)
    assert [(row.kind, row.total) for row in rows] == [("all", 10), ("sums", 4), ("classes", 6)]


def test_costs_are_the_small_call_plus_the_large_one_where_the_ladder_goes_up():
    usage = {"small_tokens": (100, 10), "large_tokens": (200, 20)}
    trials = [trial(1, 1, up=False, **usage), trial(0, 1, up=True, **usage)]
    row = compare(trials, ratio=TENTH)[0]
    small, large = (100 * 0.02 + 10 * 0.04) / 1e6, (200 * 0.2 + 20 * 0.4) / 1e6
    assert row.small.cost == pytest.approx(small)
    assert row.large.cost == pytest.approx(large)
    assert row.ladder.cost == pytest.approx(small + large / 2)
    assert row.escalated == 0.5


def test_the_mix_costs_what_the_ladder_costs():
    row = compare(clairvoyant(40), ratio=TENTH)[0]
    mixed = (1 - row.mix_share) * row.small.cost + row.mix_share * row.large.cost
    assert mixed == pytest.approx(row.ladder.cost)
    assert row.mix_accuracy == pytest.approx(0.5 + row.mix_share * 0.5)
    assert row.difference == pytest.approx(1.0 - row.mix_accuracy)


def test_a_ladder_that_knows_is_better_and_one_that_is_blind_is_worse():
    assert compare(clairvoyant(60), ratio=TENTH)[0].finding is Finding.BETTER
    assert compare(blind(60), ratio=TENTH)[0].finding is Finding.WORSE


def test_a_ladder_that_goes_up_by_chance_is_not_told_apart():
    trials = [trial(i % 2, 1, up=i % 3 == 0) for i in range(60)]
    assert compare(trials, ratio=TENTH)[0].finding is Finding.OPEN


def test_a_dearer_small_model_takes_the_lead_away():
    leads = [
        compare(clairvoyant(60), ratio=Decimal(r))[0].difference for r in ("0.1", "0.25", "0.5")
    ]
    assert leads[0] > leads[1] > leads[2]


def test_intervals_repeat_with_their_seed():
    trials = [trial(i % 2, i % 3 > 0, up=i % 5 < 2) for i in range(50)]
    assert compare(trials, ratio=TENTH, seed=3) == compare(trials, ratio=TENTH, seed=3)


def test_a_small_model_that_rambles_beyond_the_large_ones_price_is_compared_all_the_same():
    trials = [trial(1, 1, up=False, small_tokens=(10, 90), large_tokens=(10, 2)) for _ in range(5)]
    row = compare(trials, ratio=Decimal("0.5"))[0]
    assert row.small.cost > row.large.cost
    assert row.difference == 0.0


def test_scaling_spares_no_rate_and_invents_none():
    rates = Rates(input=Decimal(2), cache_write={"5m": Decimal(4)}, output=None)
    assert scaled(rates, TENTH) == Rates(
        input=Decimal("0.2"), cache_write={"5m": Decimal("0.4")}, output=None
    )


def test_every_prompt_token_is_priced_as_computed():
    warm = Usage(input=10, cache_read=80, cache_write={"5m": 10}, output=3, reasoning=2)
    cold = Usage(input=100, output=5)
    card = PriceCard(rates=LARGE_RATES)
    assert uncached_dollars(card, warm) == uncached_dollars(card, cold) > 0


def test_what_cannot_be_priced_is_said():
    with pytest.raises(ComparisonError, match="cannot be priced"):
        uncached_dollars(PriceCard(rates=LARGE_RATES), Usage())
    with pytest.raises(ComparisonError, match="cannot be priced"):
        uncached_dollars(PriceCard(rates=Rates(input=Decimal(1))), Usage(input=1, output=1))


def test_a_prompt_is_escalated_when_the_tier_of_always_large_answered():
    asked = [prompt("p-1"), prompt("p-2")]
    trials, left_out = pair(
        [outcome("always-small", asked=each) for each in asked],
        [outcome("always-large", asked=each) for each in asked],
        [
            outcome("cascade", asked=asked[0], tier="small"),
            outcome("cascade", asked=asked[1], tier="large"),
        ],
    )
    assert [each.escalated for each in trials] == [False, True]
    assert left_out == {}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"error": "Error code: 503"}, "always-large: Error code: 503"),
        ({"degraded": True, "tier": "small"}, "always-large: small stood in"),
        ({"usage": Usage()}, "always-large: usage was not reported"),
    ],
)
def test_a_prompt_without_three_answers_is_left_out_for_all_and_said(fields, said):
    asked = [prompt("p-1"), prompt("p-2")]
    trials, left_out = pair(
        [outcome("always-small", asked=each) for each in asked],
        [
            outcome("always-large", asked=asked[0]),
            outcome("always-large", asked=asked[1], **fields),
        ],
        [outcome("cascade", asked=each, tier="small") for each in asked],
    )
    assert [each.prompt_id for each in trials] == ["p-1"]
    assert left_out == {"p-2": said}


def test_a_run_without_a_comparable_prompt_says_why():
    failed = [outcome("cascade", error="Error code: 503")]
    with pytest.raises(ComparisonError, match="answered by all three: cascade: Error code: 503"):
        pair([outcome("always-small")], [outcome("always-large")], failed)
