import pytest

from cascade.errors import ConfigError
from cascade.policies.ladder import LadderPolicy
from cascade.types import Quote


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
