from dataclasses import replace

import pytest

from cascade.commit import Commit, CommitRule
from cascade.errors import ConfigError
from cascade.policies.ladder import LadderPolicy
from cascade.quote import Quote
from cascade.types import Beliefs, Budget, Failure, Step
from tests.builders import attempt, request, verdict

FAILURE = Failure(type="E", message="down", status=503)
RULE = {"after_tokens": 24, "at": 0.9}
COMMIT = "steps.0.commit"


def make(*steps):
    return LadderPolicy(name="p", steps=steps)


@pytest.mark.parametrize(
    ("steps", "fault", "param"),
    [
        ([], "at least one step", "steps"),
        ([{"judge": "j", "accept_at": 0.5}], "needs a tier", "steps.0"),
        ([{"tier": "a", "accept_at": 0.5}], "come together", "steps.0"),
        ([{"tier": "a", "judge": "j"}], "come together", "steps.0"),
        ([{"tier": "a", "colour": 1}], "unknown key", "steps.0.colour"),
        ([{"tier": "a", "judge": "j", "accept_at": 0}], "never escalates", "steps.0.accept_at"),
        ([{"tier": "a", "judge": "j", "accept_at": 1.1}], "never accepts", "steps.0.accept_at"),
        ([{"tier": "a", "judge": "j", "accept_at": "x"}], "a number", "steps.0.accept_at"),
        ([{"tier": "a", "judge": "j", "accept_at": True}], "a number", "steps.0.accept_at"),
        ([{"tier": "a"}, {"tier": "b"}], "never reached", "steps.0"),
    ],
)
def test_a_ladder_that_cannot_work_is_refused_with_its_place(steps, fault, param):
    with pytest.raises(ConfigError, match=fault) as caught:
        make(*steps)
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("rule", "fault", "param"),
    [
        (24, "a mapping", COMMIT),
        ({**RULE, "colour": 1}, "unknown key", f"{COMMIT}.colour"),
        ({"at": 0.9}, "after_tokens is missing", COMMIT),
        ({"after_tokens": 24}, "at is missing", COMMIT),
        ({**RULE, "after_tokens": 0}, "from 1", f"{COMMIT}.after_tokens"),
        ({**RULE, "after_tokens": 1.5}, "whole number", f"{COMMIT}.after_tokens"),
        ({**RULE, "after_tokens": True}, "whole number", f"{COMMIT}.after_tokens"),
        ({**RULE, "at": 0}, "every answer is released", f"{COMMIT}.at"),
        ({**RULE, "at": 1.01}, "none ever is", f"{COMMIT}.at"),
        ({**RULE, "at": "x"}, "every answer is released", f"{COMMIT}.at"),
        ({**RULE, "judge": 3}, "a name", f"{COMMIT}.judge"),
    ],
)
def test_a_commit_rule_that_cannot_work_is_refused_with_its_place(rule, fault, param):
    with pytest.raises(ConfigError, match=fault) as caught:
        make({"tier": "a", "judge": "j", "accept_at": 0.5, "commit": rule})
    assert caught.value.param == param


def test_a_step_that_streams_live_anyway_takes_no_commit_rule():
    with pytest.raises(ConfigError, match="streams live anyway"):
        make({"tier": "a", "commit": RULE})


def test_a_commit_rule_is_on_the_step_and_rises_with_the_quality_that_is_wanted():
    from tests.cascade.policies.test_contract import BELIEFS, REQUEST

    policy = make({"tier": "a", "judge": "j", "accept_at": 0.5, "commit": RULE})
    assert policy.steps[0].commit == CommitRule(after_tokens=24, at=0.9)
    quotes = {"a": Quote(tier="a")}
    for quality, at in ((0.6, 0.9), (0.95, 0.95)):
        asked = replace(REQUEST, budget=Budget(quality=quality))
        assert policy.decide(asked, BELIEFS, quotes, []).steps[0].commit.at == at


def test_a_released_answer_is_accepted_whatever_the_whole_scores():
    from tests.cascade.policies.test_contract import BELIEFS, REQUEST, attempt

    policy = make({"tier": "a", "judge": "j", "accept_at": 0.5, "commit": RULE}, {"tier": "b"})
    note = Commit(judge="j", tokens=24, score=0.93, at=0.9)
    quotes = {name: Quote(tier=name) for name in ("a", "b")}
    whole = attempt(0, policy.steps[0], score=0.1)
    plan = policy.decide(REQUEST, BELIEFS, quotes, [replace(whole, commit=note)])
    assert (plan.accept, plan.steps, plan.degraded) == (0, (), False)
    assert "released while it grew: j gives its first 24 tokens 0.930" in plan.reason
    assert "0.100, which is below 0.500" in plan.reason
    assert policy.decide(REQUEST, BELIEFS, quotes, [whole]).steps, "as a ladder does without one"


def test_a_judged_last_step_below_its_threshold_gives_the_best_answer_degraded():
    from tests.cascade.policies.test_contract import BELIEFS, REQUEST, attempt

    quotes = {name: Quote(tier=name) for name in ("a", "b")}

    policy = make(
        {"tier": "a", "judge": "j", "accept_at": 0.9}, {"tier": "b", "judge": "j", "accept_at": 0.9}
    )
    attempts = [attempt(0, policy.steps[0], score=0.6), attempt(1, policy.steps[1], score=0.4)]
    plan = policy.decide(REQUEST, BELIEFS, quotes, attempts)
    assert (plan.accept, plan.degraded, plan.threshold) == (0, True, 0.9)


def test_a_tier_that_may_not_be_asked_again_leaves_the_rest_of_the_ladder_in_place():
    from tests.cascade.policies.test_contract import BELIEFS, REQUEST, attempt

    policy = make(*({"tier": tier, "judge": "j", "accept_at": 0.9} for tier in ("a", "a", "b")))
    a, again, b = policy.steps
    first = [attempt(0, a, score=0.1)]
    both = {name: Quote(tier=name) for name in ("a", "b")}
    assert policy.decide(REQUEST, BELIEFS, both, first).steps == [again, b]
    only_b = {"b": Quote(tier="b")}
    assert policy.decide(REQUEST, BELIEFS, only_b, first).steps == [b]
    second = [*first, attempt(1, again, score=0.2)]
    assert policy.decide(REQUEST, BELIEFS, both, second).steps == [b]
    assert policy.decide(REQUEST, BELIEFS, {}, second).accept == 1


SAFE = LadderPolicy(
    name="p",
    steps=[
        {"tier": "small", "judge": "j", "accept_at": 0.5},
        {"tier": "middle", "judge": "j", "accept_at": 0.5},
        {"tier": "large"},
    ],
    when_unsure="middle",
)
ALL = {tier: Quote(tier=tier) for tier in ("small", "middle", "large")}


def first_steps(*flags, quotes=ALL):
    beliefs = Beliefs(mean={}, flags=frozenset(flags))
    plan = SAFE.decide(request(), beliefs, quotes, [])
    return [step.tier for step in plan.steps], plan.reason


@pytest.mark.parametrize("flag", ["out_of_domain", "fallback"])
def test_a_request_that_nothing_is_known_of_starts_at_the_safe_step(flag):
    steps, reason = first_steps(flag)
    assert steps == ["middle", "large", "small"]
    assert flag in reason


def test_a_request_with_an_estimate_starts_at_the_bottom():
    assert first_steps("no_estimator")[0] == first_steps()[0] == ["small", "middle", "large"]


def test_without_a_safe_tier_to_go_to_the_others_are_better_than_none():
    quotes = {"small": ALL["small"]}
    assert first_steps("fallback", quotes=quotes)[0] == ["small"]


def test_a_safe_step_climbs_on_as_any_other():
    beliefs = Beliefs(mean={}, flags=frozenset({"fallback"}))
    step = Step(tier="middle", judge="j")
    doubted = attempt(0, tier="middle", step=step, verdict=verdict(0.1))
    assert [s.tier for s in SAFE.decide(request(), beliefs, ALL, [doubted]).steps] == [
        "large",
        "small",
    ]


def test_what_was_passed_over_is_asked_when_nothing_above_it_answers():
    beliefs = Beliefs(mean={}, flags=frozenset({"fallback"}))
    failed = [
        attempt(0, tier="middle", step=Step(tier="middle", judge="j"), error=FAILURE),
        attempt(1, tier="large", step=Step(tier="large"), error=FAILURE),
    ]
    plan = SAFE.decide(request(), beliefs, ALL, failed)
    assert [step.tier for step in plan.steps] == ["small"]


def test_a_safe_tier_that_no_step_has_is_refused():
    with pytest.raises(ConfigError, match="'huge'; there are: a") as caught:
        LadderPolicy(name="p", steps=[{"tier": "a"}], when_unsure="huge")
    assert caught.value.param == "when_unsure"


def test_it_is_heedless_of_beliefs_unless_it_begins_elsewhere_when_unsure():
    steps = [{"tier": "a", "judge": "j", "accept_at": 0.5}, {"tier": "b"}]
    assert make(*steps).heedless
    assert not LadderPolicy(name="p", steps=steps, when_unsure="b").heedless
