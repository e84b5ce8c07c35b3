"""What every policy in the registry must do."""

from decimal import Decimal

import pytest

from cascade.policies.registry import POLICIES
from cascade.posterior import Unfitted
from cascade.quote import Quote
from cascade.registry import load
from cascade.types import (
    Attempt,
    Beliefs,
    ChatRequest,
    Choice,
    Completion,
    Failure,
    Kind,
    Outcome,
    Verdict,
)

OPTIONS = {
    "fixed": {"tier": "small", "fallback": ["large"]},
    "ladder": {
        "steps": [{"tier": "small", "judge": "sound", "accept_at": 0.7}, {"tier": "large"}],
    },
    "utility": {
        "tiers": [{"tier": "small", "judge": "sound"}, {"tier": "large"}],
        "quality_usd": 0.01,
    },
}
REQUEST = ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}])
BELIEFS = Unfitted().before(Beliefs(mean={"small": 0.5, "large": 0.8}))
PRICES = {"small": Decimal("0.0001"), "large": Decimal("0.001")}
QUOTES = {name: Quote(tier=name, dollars=dollars) for name, dollars in PRICES.items()}


@pytest.fixture(params=sorted(POLICIES))
def policy(request):
    return load(POLICIES, "policy", request.param)(name="p", **OPTIONS[request.param])


def attempt(index, step, *, score=None, failed=False):
    return Attempt(
        index=index,
        kind=Kind.ANSWER,
        step=step,
        outcome=Outcome.BACKEND_ERROR if failed else None,
        completion=None
        if failed
        else Completion(choices=(Choice(text="x", finish_reason="stop"),)),
        error=Failure(type="E", message="down", status=503) if failed else None,
        verdict=Verdict(judge="sound", score=score) if step.judge else None,
    )


def play(policy, *, score=None, failing=(), unfit=()):
    quotes = {name: quote for name, quote in QUOTES.items() if name not in unfit}
    attempts = []
    for _ in range(20):
        plan = policy.decide(REQUEST, BELIEFS, quotes, attempts)
        if not plan.steps:
            return plan, attempts
        step = plan.steps[0]
        assert step in policy.steps
        attempts.append(attempt(len(attempts), step, score=score, failed=step.tier in failing))
    raise AssertionError("the policy never ends")


@pytest.mark.parametrize("score", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("failing", [(), ("small",), ("large",), ("small", "large")])
def test_it_ends_and_accepts_an_answer_if_there_is_one(policy, score, failing):
    plan, attempts = play(policy, score=score, failing=failing)
    answered = [a.index for a in attempts if a.answered]
    assert plan.accept in answered if answered else plan.accept is None
    assert plan.reason


def test_it_decides_the_same_twice_and_changes_nothing(policy):
    first = play(policy, score=0.4)
    assert play(policy, score=0.4) == first


def test_an_answer_without_a_score_is_not_accepted_where_a_judge_was_asked(policy):
    plan, attempts = play(policy, score=None)
    if not plan.degraded:
        assert attempts[plan.accept].step.judge is None


@pytest.mark.parametrize("score", [None, 0.0, 1.0])
@pytest.mark.parametrize("failing", [(), ("small",), ("large",)])
@pytest.mark.parametrize("unfit", ["small", "large"])
def test_a_tier_without_a_quote_is_never_asked(policy, score, failing, unfit):
    plan, attempts = play(policy, score=score, failing=failing, unfit=(unfit,))
    assert attempts
    assert unfit not in {attempt.step.tier for attempt in attempts}
    answered = [a.index for a in attempts if a.answered]
    assert plan.accept in answered if answered else plan.accept is None
    assert plan.reason


def test_with_no_tier_left_it_asks_nobody_and_accepts_nothing(policy):
    plan, attempts = play(policy, unfit=("small", "large"))
    assert not attempts
    assert plan.accept is None
    assert plan.reason
