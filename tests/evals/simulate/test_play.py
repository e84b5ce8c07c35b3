"""Playing turns: bills by hand, and what is learned and counted."""

from decimal import Decimal

import pytest

from evals.simulate.play import Player, list_price_of, mean_list_prices
from evals.simulate.rivals import WITHOUT_UTILITY, as_quoted, exact, fixed, utility
from evals.simulate.truth import skills
from evals.simulate.world import OUTPUT_TOKENS, Regime, lineups, tenant

API, OWN = lineups()[0], lineups()[-1]
NAMES = list(API.cards)
REGIME = Regime(prefix=6400, turns=3, tokens=640, gap=20.0, live=1)


def turns(count, regime=REGIME, lineup=API, seed=0):
    skill = skills(lineup.abilities, list(lineup.cards), 0.85)
    return tenant(regime, skill, turns=count, seed=seed)


def play(some, policy, view=as_quoted, *, regime=REGIME, lineup=API, counted=0):
    return Player(lineup, regime).play(some, policy, view, counted=counted)


def test_the_first_turn_is_written_and_the_next_one_reads_it():
    first, second = turns(2)
    rates = API.cards["claude-opus-5"].rates
    written = min(rates.cache_write.values())
    answer = OUTPUT_TOKENS * rates.output
    warm = first.prompt // 64 * 64
    bills = [
        first.prompt * written + answer,
        warm * rates.cache_read + (second.prompt - warm) * written + answer,
    ]
    outcome = play([first, second], fixed(NAMES, 2))
    assert outcome.dollars == pytest.approx(float(sum(bills)) / 1e6)
    cold = first.prompt + second.prompt - warm
    assert outcome.premium == pytest.approx(float(cold * (written - rates.cache_read)) / 1e6)
    assert outcome.calls == {"claude-opus-5": 2}


def test_what_is_older_than_its_time_is_cold_again():
    some = turns(40, Regime(prefix=6400, turns=3, tokens=640, gap=4000.0, live=1))
    soon = turns(40)
    assert play(some, fixed(NAMES, 2)).dollars > 1.5 * play(soon, fixed(NAMES, 2)).dollars


def test_what_is_too_short_to_be_cached_is_billed_at_the_price_of_a_prompt():
    regime = Regime(prefix=640, turns=1, tokens=64, gap=20.0, live=1)
    some = turns(5, regime)
    rates = API.cards["claude-haiku-4-5"].rates
    each = float(some[0].prompt * rates.input + OUTPUT_TOKENS * rates.output) / 1e6
    outcome = play(some, fixed(NAMES, 0), regime=regime)
    assert outcome.dollars == pytest.approx(5 * each)


def test_a_fixed_tier_is_as_good_as_its_answers_and_never_switches():
    some = turns(50)
    outcome = play(some, fixed(NAMES, 1))
    assert outcome.quality == pytest.approx(sum(t.question.quality[NAMES[1]] for t in some))
    assert (outcome.turns, outcome.switches) == (50, 0)


def test_turns_before_those_that_count_warm_and_are_not_billed():
    some = turns(50)
    whole = play(some, fixed(NAMES, 2))
    first = play(some[:20], fixed(NAMES, 2))
    rest = play(some, fixed(NAMES, 2), counted=20)
    assert rest.turns == 30
    assert rest.dollars == pytest.approx(whole.dollars - first.dollars)


def test_every_call_of_a_cascade_is_paid_and_the_last_answer_taken():
    some = turns(60)
    policy = WITHOUT_UTILITY["cascade"][0](NAMES, 0.999999)
    outcome = play(some, policy)
    assert outcome.calls == dict.fromkeys(NAMES, 60)
    alone = [play(some, fixed(NAMES, place)).dollars for place in range(3)]
    assert outcome.dollars == pytest.approx(sum(alone))
    assert outcome.quality == pytest.approx(play(some, fixed(NAMES, 2)).quality)


def test_what_goes_to_another_tier_than_before_is_a_switch():
    some = turns(60)
    outcome = play(some, WITHOUT_UTILITY["router"][0](NAMES, 0.7))
    assert len(outcome.calls) > 1
    assert 0 < outcome.switches < 60


def test_quality_that_is_worth_more_is_bought():
    some = turns(120)
    low, high = (play(some, utility(NAMES, worth)) for worth in (0.001, 1.0))
    assert low.quality < high.quality
    assert low.dollars < high.dollars


def test_with_a_long_prefix_the_credit_lets_a_conversation_go_first():
    # Each turn alone would not pay for 30,000 tokens, which the tenant's next ones would all read.
    regime = Regime(prefix=30_016, turns=3, tokens=150, gap=60.0)
    some = turns(150, regime, OWN)
    names = list(OWN.cards)
    ours, naive = (
        play(some, utility(names, 0.002), view, regime=regime, lineup=OWN)
        for view in (as_quoted, exact)
    )
    assert naive.calls.get("70b", 0) < ours.calls["70b"] / 2
    assert ours.quality > naive.quality


def test_the_same_turns_come_to_the_same():
    some = turns(40)
    assert play(some, utility(NAMES, 0.05)) == play(some, utility(NAMES, 0.05))


def test_a_point_is_by_turn():
    outcome = play(turns(10), fixed(NAMES, 0))
    point = outcome.point(3.0)
    assert (point.knob, point.quality) == (3.0, outcome.quality / 10)
    assert (point.dollars, point.premium) == (
        outcome.dollars / 10,
        outcome.premium / outcome.dollars,
    )


def test_mean_list_prices_are_of_the_mean_prompt():
    some = turns(30)
    tokens = sum(turn.prompt for turn in some) // 30
    prices = mean_list_prices(API, some)
    assert prices == {name: list_price_of(API, name, tokens) for name in NAMES}
    rates = API.cards[NAMES[0]].rates
    assert prices[NAMES[0]] == (tokens * rates.input + OUTPUT_TOKENS * rates.output) / Decimal(
        10**6
    )
