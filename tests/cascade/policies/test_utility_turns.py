"""The utility policy over the turns of a conversation, and under what a client wants of one."""

import random

import pytest

from cascade.policies.utility import Option
from cascade.types import Budget
from tests.builders import request
from tests.cascade.policies.weighing import (
    PRICES,
    believed,
    decide,
    failed,
    judged,
    quotes,
    step,
    unseen,
    utility,
)

# Conversations.


def test_an_easy_turn_stays_on_a_warm_large_model_where_a_cold_small_one_is_dearer():
    beliefs = believed(small=0.85, large=0.95)
    here = request(served_by="large")
    # large: 0.0095 - 0.0004; small has to be rejected now and then, which costs the large one too
    cold_small = quotes(small=0.0006, large=0.0004)
    assert step(decide(utility(), beliefs, cold_small, asked=here)) == ("large", None)
    warm_small = quotes(small=0.00001, large=0.002)
    assert step(decide(utility(), beliefs, warm_small, asked=here))[0] == "small"


def test_coming_down_needs_a_real_gain():
    beliefs = believed(kappa=0.0, small=0.85, large=0.9)
    policy = utility(Option(tier="small"), Option(tier="large"), come_down=0.05)
    here = request(served_by="large")
    # staying is worth 0.009 - 0.001 = 0.008, and five hundredths of its price are 0.00005
    near, far = quotes(small=0.00047, large=0.001), quotes(small=0.0004, large=0.001)
    plan = decide(policy, beliefs, near, asked=here)
    assert step(plan) == ("large", None)
    assert plan.reason.startswith("stays, as coming down to small gains only $0.00003; asks large")
    plan = decide(policy, beliefs, far, asked=here)
    assert step(plan) == ("small", None)
    assert plan.reason.startswith("comes down from large; asks small")
    assert step(decide(policy, beliefs, near)) == ("small", None), "nobody to stay with"
    assert step(decide(policy, beliefs, near, asked=request(served_by="small")))[0] == "small"


def changes(policy, priced, *, noise, turns=50, seed=4):
    """How often a conversation changes its tier where both tiers are worth about the same."""
    rng, at, found = random.Random(seed), "", 0  # noqa: S311 - made-up noise
    for _ in range(turns):
        shaken = {"small": 0.85, "large": 0.9}
        shaken = {tier: q + rng.uniform(-noise, noise) for tier, q in shaken.items()}
        asked = request(served_by=at)
        to, _ = step(decide(policy, believed(kappa=0.0, **shaken), priced(at), asked=asked))
        found, at = found + (at not in ("", to)), to
    return found


def test_a_conversation_near_the_border_does_not_flap():
    unjudged = Option(tier="small"), Option(tier="large")

    def even(at):
        return quotes(small=0.0005, large=0.001)

    assert changes(utility(*unjudged), even, noise=0.002) <= 1
    assert changes(utility(*unjudged, come_down=0.0), even, noise=0.002) > 10


def test_what_is_warm_keeps_a_conversation_where_it_is_under_louder_noise():
    unjudged = Option(tier="small"), Option(tier="large")

    def cold_elsewhere(at):
        cold = {tier: 0.0006 * (at not in ("", tier)) for tier in ("small", "large")}
        return quotes(small=0.0005 + cold["small"], large=0.001 + cold["large"])

    assert changes(utility(*unjudged), cold_elsewhere, noise=0.02) <= 1


def test_a_turn_that_came_down_and_is_rejected_goes_back_up_and_nowhere_else():
    three = [Option(tier=tier, judge="sound") for tier in ("small", "middle", "large")]
    priced = quotes(small=0.0001, middle=0.001, large=0.002)
    beliefs = believed(small=0.75, middle=0.8, large=0.95)
    here = request(served_by="large")
    assert step(decide(utility(*three), beliefs, priced, asked=here)) == ("small", "sound")
    plan = decide(utility(*three), beliefs, priced, [judged(0.1)], here)
    assert step(plan)[0] == "large"


TOOL = [
    {"role": "user", "content": "What is the weather?"},
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "rain"},
]


def test_a_tool_s_result_goes_to_the_tier_that_asked_for_it():
    beliefs = believed(small=0.97, large=0.98)
    plan = decide(utility(), beliefs, asked=request(messages=TOOL, served_by="large"))
    assert step(plan) == ("large", None)
    assert plan.reason.startswith("large waits for the result of its tool call; asks large")
    assert step(decide(utility(), beliefs, asked=request(messages=TOOL)))[0] == "small"


def test_within_a_tool_loop_an_answer_is_still_judged_and_rejected():
    beliefs = believed(small=0.6, large=0.95)
    here = request(messages=TOOL, served_by="small")
    assert step(decide(utility(), beliefs, asked=here)) == ("small", "sound")
    assert step(decide(utility(), beliefs, calls=[judged(0.1)], asked=here)) == ("large", None)


def test_with_consistency_session_a_conversation_stays_with_who_answered_it():
    stays, beliefs = utility(consistency="session"), believed(small=0.97, large=0.98)
    plan = decide(stays, beliefs, asked=request(served_by="large"))
    assert step(plan) == ("large", None)
    assert plan.reason.startswith("the conversation stays with large")
    assert step(decide(stays, beliefs))[0] == "small"
    gone = {"small": PRICES["small"]}
    assert step(decide(stays, beliefs, gone, asked=request(served_by="large")))[0] == "small"


@pytest.mark.parametrize("flag", ["fallback", "out_of_domain"])
def test_a_request_that_nothing_is_known_of_begins_where_the_configuration_says(flag):
    beliefs = believed(small=0.97, large=0.98, flags=[flag])
    plan = decide(utility(when_unsure="large"), beliefs)
    assert step(plan) == ("large", None)
    assert plan.reason.startswith(f"the estimate is flagged {flag}: the tier for when unsure")
    assert step(decide(utility(), beliefs))[0] == "small"
    known = believed(small=0.97, large=0.98, flags=["no_estimator"])
    assert step(decide(utility(when_unsure="large"), known))[0] == "small"
    gone = {"small": PRICES["small"]}
    assert step(decide(utility(when_unsure="large"), beliefs, gone))[0] == "small"


# What the client wants.


def wanting(quality):
    return request(budget=Budget(quality=quality))


def test_an_answer_below_the_quality_that_is_wanted_is_not_accepted():
    beliefs = believed(small=0.7, large=0.9)
    plan = decide(utility(), beliefs, calls=[judged(0.8)], asked=wanting(0.85))
    assert step(plan) == ("large", None)
    assert plan.threshold == 0.85
    assert decide(utility(), beliefs, calls=[judged(0.86)], asked=wanting(0.85)).accept == 0
    plan = decide(utility(), beliefs, calls=[judged(0.8), failed("large", 1)], asked=wanting(0.85))
    assert (plan.accept, plan.degraded) == (0, True)


def test_what_is_believed_too_little_is_not_taken_unseen_where_it_can_be_judged():
    beliefs = believed(small=0.97, large=0.98)
    assert step(decide(utility(), beliefs, asked=wanting(0.96))) == ("small", None)
    assert step(decide(utility(), beliefs, asked=wanting(0.99))) == ("small", "sound")


def test_an_answer_in_hand_is_not_given_up_for_one_that_is_believed_less():
    beliefs = believed(small=0.7, large=0.6)
    plan = decide(utility(), beliefs, calls=[judged(0.8)], asked=wanting(0.9))
    assert (plan.accept, plan.degraded) == (0, True)
    assert plan.reason.endswith("no tier is left to ask that may be better")


def test_where_nobody_can_give_what_is_wanted_the_answer_is_degraded():
    beliefs = believed(small=0.2, large=0.6)
    assert step(decide(utility(Option(tier="large")), beliefs, asked=wanting(0.9)))[0] == "large"
    plan = decide(utility(), beliefs, calls=[unseen("large")], asked=wanting(0.9))
    assert (plan.accept, plan.degraded) == (0, True)
    assert plan.reason.endswith("nothing judged it against the quality 0.9 wanted")
