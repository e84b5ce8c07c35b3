"""The policies that ours is held against, decision by decision."""

from decimal import Decimal

import pytest

from cascade.quote import NOTHING, Quote, Shared
from cascade.types import Attempt, Beliefs, ChatRequest, Completion, Kind, Step
from evals.simulate.rivals import (
    WITHOUT_UTILITY,
    all_warm,
    as_quoted,
    exact,
    fixed,
    flat,
    list_price,
    utility,
)

TIERS = ("small", "middle", "large")
MEANS = {"small": 0.3, "middle": 0.6, "large": 0.9}


def made(name, knob):
    return WITHOUT_UTILITY[name][0](TIERS, knob)


def first(policy, *, session="0", served_by="", means=MEANS):
    request = ChatRequest(id="r", messages=(), session=session, served_by=served_by)
    (step,) = policy.decide(request, Beliefs(mean=means), {}, []).steps[:1]
    return step.tier


def after(policy, tier, means=MEANS):
    """The next tier once one has answered; None when its answer is taken."""
    step = Step(tier=tier)
    done = Attempt(index=0, kind=Kind.ANSWER, step=step, completion=Completion(choices=()))
    request = ChatRequest(id="r", messages=(), session="0")
    plan = policy.decide(request, Beliefs(mean=means), {}, [done])
    return plan.steps[0].tier if plan.steps else None


@pytest.mark.parametrize(("at", "tier"), [(0.2, "small"), (0.5, "middle"), (0.95, "large")])
@pytest.mark.parametrize("name", ["router", "router+cascade", "pin"])
def test_what_is_chosen_by_belief_is_the_smallest_that_is_good_enough(name, at, tier):
    assert first(made(name, at)) == tier


def test_a_cascade_begins_with_the_smallest_and_a_sticky_one_with_who_answered_last():
    assert first(made("cascade", 0.95), served_by="large") == "small"
    assert first(made("sticky cascade", 0.95), served_by="middle") == "middle"
    assert first(made("sticky cascade", 0.95)) == "small"


def test_a_pinned_conversation_stays_and_a_routed_one_does_not():
    assert first(made("pin", 0.2), served_by="large") == "large"
    assert first(made("router", 0.2), served_by="large") == "small"


@pytest.mark.parametrize("name", ["cascade", "router+cascade", "sticky cascade"])
def test_a_cascade_climbs_until_the_judge_is_satisfied_or_no_tier_is_left(name):
    policy = made(name, 0.7)
    assert after(policy, "small") == "middle"
    assert after(policy, "small", means={**MEANS, "small": 0.7}) is None
    assert after(policy, "large", means={**MEANS, "large": 0.1}) is None
    assert {step.judge for step in policy.steps} == {"judge"}


@pytest.mark.parametrize("name", ["mix", "pin", "router"])
def test_who_does_not_judge_takes_what_comes(name):
    policy = made(name, 0.5)
    assert after(policy, "small", means=dict.fromkeys(TIERS, 0.0)) is None
    assert {step.judge for step in policy.steps} == {None}


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, (1, 0, 0)),
        (0.25, (0.5, 0.5, 0)),
        (0.5, (0, 1, 0)),
        (0.75, (0, 0.5, 0.5)),
        (1, (0, 0, 1)),
    ],
)
def test_a_mix_is_of_two_neighbours_and_the_same_throughout_a_conversation(share, expected):
    policy = made("mix", share)
    found = [first(policy, session=str(i)) for i in range(1000)]
    assert [found.count(tier) / 1000 for tier in TIERS] == pytest.approx(expected, abs=0.01)
    assert [first(policy, session="7", served_by=tier) for tier in TIERS] == [found[7]] * 3


def test_the_knobs_of_fixed_and_utility_are_the_place_and_what_quality_is_worth():
    assert [fixed(TIERS, place).steps[0].tier for place in range(3)] == list(TIERS)
    assert {step.judge for step in utility(TIERS, 0.1).steps} == {"judge", None}


QUOTE = Quote(
    tier="large",
    warm_tokens=800,
    cold_tokens=200,
    dollars=Decimal(5),
    cold_premium=Decimal(2),
    shared=Shared(premium=3.0, cold=1.0, credit=0.5),
)


def test_ours_sees_the_quote_as_it_is():
    assert as_quoted(QUOTE) is QUOTE
    assert QUOTE.price == 4.5


def test_the_exact_bill_has_no_credit():
    seen = exact(QUOTE)
    assert (seen.price, seen.shared) == (5.0, NOTHING)


@pytest.mark.parametrize(
    ("view", "price"),
    [
        (all_warm, 3.0),
        (flat({"large": Decimal(7)}), 7.0),
        (list_price(lambda quote: Decimal(quote.warm_tokens + quote.cold_tokens)), 1000.0),
    ],
)
def test_who_knows_nothing_of_caches_sees_the_same_whatever_is_warm(view, price):
    assert view(QUOTE).price == price
    assert view(QUOTE).shared == NOTHING
