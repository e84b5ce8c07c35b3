"""The utility policy, by cases that can be reckoned by hand: quality is worth $0.01 a unit."""

from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.errors import ConfigError
from cascade.policies.utility import Option, UtilityPolicy
from tests.builders import completion, request
from tests.cascade.policies.weighing import (
    PRICES,
    believed,
    decide,
    failed,
    judged,
    quote,
    quotes,
    step,
    unseen,
    utility,
)

# Where a request begins.


def test_a_hopeless_request_goes_straight_to_the_large_model():
    plan = decide(utility(), believed(small=0.05, large=0.8))
    assert step(plan) == ("large", None)
    # 0.01 * 0.8 - 0.002; asking small first only adds its price
    assert "asks large, unseen: worth $0.006, being right with 0.800 for $0.002" in plan.reason
    assert "small is worth $0.005" in plan.reason


def test_an_easy_request_goes_to_the_small_model_and_its_answer_is_taken_unseen():
    plan = decide(utility(), believed(small=0.97, large=0.98))
    assert step(plan) == ("small", None)
    assert "worth $0.0096, being right with 0.970 for $0.0001" in plan.reason


def test_between_the_two_the_judge_may_spare_the_large_model():
    assert step(decide(utility(), believed(small=0.7, large=0.9))) == ("small", "sound")


def test_a_judge_that_tells_nothing_is_not_asked():
    assert step(decide(utility(), believed(kappa=0.0, small=0.75, large=0.9))) == ("small", None)
    assert step(decide(utility(), believed(kappa=0.0, small=0.65, large=0.9))) == ("large", None)


def test_an_answer_is_held_only_where_the_judge_adds_enough():
    beliefs = believed(small=0.7, large=0.9)
    assert step(decide(utility(judge_gain=0.2), beliefs))[1] is None


def test_what_judging_costs_counts():
    free = believed(small=0.7, large=0.9)
    dear = {**PRICES, "small": quote("small", 0.0001, judge_dollars=Decimal("0.003"))}
    assert step(decide(utility(), free, dear)) == ("large", None)


def test_a_second_of_waiting_has_its_price():
    beliefs = believed(kappa=0.0, small=0.6, large=0.9)
    slow = {
        "small": quote("small", 0.0001, seconds=1.0),
        "large": quote("large", 0.002, seconds=5.0),
    }
    assert step(decide(utility(), beliefs, slow))[0] == "large"
    # 0.0069 - 5 s * 0.0005 is less than 0.0059 - 1 s * 0.0005
    plan = decide(utility(second_usd=0.0005), beliefs, slow)
    assert step(plan)[0] == "small"
    assert "for $0.0006" in plan.reason


def test_what_warming_is_worth_to_later_calls_is_taken_off_the_price():
    beliefs = believed(kappa=0.0, small=0.75, large=0.9)
    assert step(decide(utility(), beliefs))[0] == "small"
    credited = {**PRICES, "large": quote("large", 0.002, credit=0.001)}
    plan = decide(utility(), beliefs, credited)
    assert step(plan)[0] == "large"
    assert "for $0.001;" in plan.reason


def test_of_tiers_that_are_worth_the_same_the_first_is_asked():
    same = quotes(a=0.001, b=0.001, c=0.001)
    beliefs = believed(a=0.8, b=0.8, c=0.8)
    for order in ("abc", "cba", "bca"):
        policy = utility(*(Option(tier=tier) for tier in order))
        assert {step(decide(policy, beliefs, same))[0] for _ in range(5)} == {order[0]}


def test_a_tier_that_nothing_is_said_of_is_right_as_often_as_not():
    assert "right with 0.500" in decide(utility(), believed(small=0.02)).reason


# After a verdict.


def test_an_answer_that_the_judge_likes_is_accepted():
    plan = decide(utility(), believed(small=0.7, large=0.9), calls=[judged(0.8)])
    assert (plan.accept, plan.steps, plan.degraded) == (0, (), False)
    # large: 0.01 * 0.9 - 0.002 = 0.007, so an answer that is right with 0.7 is worth as much
    assert plan.threshold == pytest.approx(0.7)
    assert plan.reason == (
        "sound gives small's answer 0.800; it is worth $0.008, and asking large $0.007"
    )


def test_an_answer_that_the_judge_rejects_is_followed_by_the_large_model():
    plan = decide(utility(), believed(small=0.7, large=0.9), calls=[judged(0.3)])
    assert (step(plan), plan.accept) == (("large", None), None)
    assert plan.threshold == pytest.approx(0.7)
    assert plan.reason == (
        "sound gives small's answer 0.300; asks large, unseen: worth $0.007, being right with "
        "0.900 for $0.002; the answer in hand is worth $0.003"
    )


def test_however_warm_the_small_model_and_cold_the_large_the_judge_is_followed():
    warm = quote("small", 0.00001, warm_tokens=40_000, cold_premium=Decimal(0))
    cold = quote("large", 0.0055, cold_tokens=40_000, cold_premium=Decimal("0.005"))
    beliefs = believed(small=0.75, large=0.9)
    first = decide(utility(), beliefs, {"small": warm, "large": cold})
    assert step(first) == ("small", "sound")
    after = decide(utility(), beliefs, {"small": warm, "large": cold}, [judged(0.1)])
    assert step(after) == ("large", None)


def test_a_doubtful_answer_is_not_escalated_where_the_large_model_fails_too():
    calls = [judged(0.2, others={"large": 0.35})]
    plan = decide(utility(), believed(small=0.7, large=0.9), calls=calls)
    # 0.01 * 0.35 - 0.002 is less than 0.01 * 0.2
    assert (plan.accept, plan.degraded) == (0, False)
    assert plan.threshold == pytest.approx(0.15)


def test_where_more_than_the_judge_s_word_decides_the_row_has_no_threshold():
    beliefs = believed(small=0.62, large=0.9)
    plan = utility().decide(request(), beliefs, PRICES, [judged(0.8)])
    assert step(plan) == ("large", None)
    assert plan.threshold is None
    assert "0.800, after which it is believed right with 0.620" in plan.reason


def test_an_answer_taken_unseen_ends_it():
    plan = decide(utility(), believed(small=0.97, large=0.98), calls=[unseen("small")])
    assert (plan.accept, plan.threshold, plan.degraded) == (0, None, False)
    assert plan.reason == "small's answer is taken unseen, being right with 0.970"


@pytest.mark.parametrize("silent", [judged(None), replace(judged(0.9), verdict=None)])
def test_a_judge_that_fails_or_cannot_tell_accepts_nothing(silent):
    beliefs = believed(small=0.95, large=0.9)
    plan = decide(utility(), beliefs, calls=[silent])
    assert step(plan) == ("large", None)
    plan = decide(utility(), beliefs, calls=[silent, failed("large", 1)])
    assert (plan.accept, plan.degraded) == (0, True)
    assert plan.reason.endswith("so an answer that was not judged is taken")


def test_the_better_of_two_judged_answers_is_taken():
    both = utility(Option(tier="small", judge="sound"), Option(tier="large", judge="sound"))
    beliefs = believed(small=0.7, large=0.9)
    calls = [judged(0.3), judged(0.6, tier="large", index=1)]
    plan = decide(both, beliefs, calls=calls)
    assert (plan.accept, plan.degraded, plan.threshold) == (1, False, 0.3)
    calls = [judged(0.3), judged(0.2, tier="large", index=1)]
    plan = decide(both, beliefs, calls=calls)
    assert (plan.accept, plan.degraded, plan.threshold) == (0, True, 0.3)
    assert "small's answer is worth $0.003, and no tier is left to ask" in plan.reason


# Tiers that fail or may not be asked.


def test_when_a_tier_fails_the_next_is_asked_and_what_was_turned_down_is_better_than_nothing():
    beliefs = believed(small=0.7, large=0.9)
    plan = decide(utility(), beliefs, calls=[failed("small", judge="sound")])
    assert step(plan) == ("large", None)
    assert plan.reason.startswith("small failed; asks large")
    plan = decide(utility(), beliefs, calls=[judged(0.1), failed("large", 1)])
    assert (plan.accept, plan.degraded) == (0, True)
    plan = decide(utility(), beliefs, calls=[failed("small"), failed("large", 1)])
    assert (plan.accept, plan.reason) == (None, "large failed; no tier is left to ask")


def test_an_answer_is_degraded_where_a_better_tier_may_not_be_asked():
    only = {"small": PRICES["small"]}
    beliefs = believed(small=0.7, large=0.9)
    for score, degraded in ((0.4, True), (0.95, False)):
        plan = decide(utility(), beliefs, only, [judged(score)])
        assert (plan.accept, plan.degraded) == (0, degraded)


def test_a_tier_of_unknown_price_is_asked_only_where_no_price_is_known():
    beliefs = believed(small=0.5, large=0.9)
    priced = {**PRICES, "large": quote("large", None)}
    assert step(decide(utility(), beliefs, priced))[0] == "small"
    unjudged = utility(Option(tier="small"), Option(tier="large"))
    plan = decide(unjudged, beliefs, quotes(small=None, large=None))
    assert step(plan) == ("large", None)
    assert "being right with 0.900 for an unknown price" in plan.reason


# One tier, and what cannot work.


def test_a_single_tier_is_asked_and_its_judge_has_nobody_to_turn_to():
    alone = utility(Option(tier="small", judge="sound"))
    assert step(decide(alone, believed(small=0.3))) == ("small", None)


def test_how_far_each_tier_leads_is_told_at_its_price():
    unjudged = utility(Option(tier="small"), Option(tier="large"))
    beliefs = believed(small=0.5, large=0.9)
    plan = decide(unjudged, beliefs)
    # 0.005 - 0.0001 against 0.009 - 0.002
    assert plan.leads == pytest.approx({"small": -0.0021, "large": 0.0021})
    plan = decide(utility(), beliefs, calls=[judged(0.3)])
    assert plan.leads == pytest.approx({"large": 0.007 - 0.003})


@pytest.mark.parametrize(
    ("options", "fault", "param"),
    [
        ({"tiers": []}, "at least one tier", "tiers"),
        ({"tiers": [{"judge": "j"}]}, "needs a tier", "tiers.0"),
        ({"tiers": [{"tier": "a", "judge": 3}]}, "each a name", "tiers.0"),
        ({"tiers": [{"tier": "a"}, {"tier": "a"}]}, "there twice", "tiers.1"),
        ({"tiers": [{"tier": "a", "at": 1}]}, "unknown key", "tiers.0.at"),
        ({"quality_usd": 0.0}, "above 0", "quality_usd"),
        ({"quality_usd": float("nan")}, "finite", "quality_usd"),
        ({"second_usd": -1.0}, "from 0", "second_usd"),
        ({"judge_gain": float("inf")}, "finite", "judge_gain"),
        ({"come_down": -0.1}, "from 0", "come_down"),
        ({"when_unsure": "b"}, "none of its tiers: a", "when_unsure"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(options, fault, param):
    with pytest.raises(ConfigError, match=fault) as caught:
        UtilityPolicy(name="p", **{"tiers": [{"tier": "a"}], "quality_usd": 1.0, **options})
    assert caught.value.param == param


def test_a_whole_answer_is_needed():
    cut = replace(unseen("small"), completion=completion(partial=True))
    assert step(decide(utility(), believed(small=0.97, large=0.98), calls=[cut]))[0] == "large"
