"""Utility policies, beliefs, quotes and calls for tests: quality is worth $0.01 a unit."""

from dataclasses import replace
from decimal import Decimal

from cascade.policies.utility import Option, UtilityPolicy
from cascade.posterior import Unfitted
from cascade.quote import Quote, Shared
from cascade.types import Beliefs, Failure, Outcome, Step
from tests.builders import attempt, request, verdict

DOWN = Failure(type="E", message="down", status=503)


def utility(*tiers, **options):
    """Of small, judged by sound, and large, unless told otherwise."""
    tiers = tiers or (Option(tier="small", judge="sound"), Option(tier="large"))
    return UtilityPolicy(name="p", tiers=tiers, **{"quality_usd": 0.01, **options})


def believed(*, kappa=0.4, flags=(), **mean):
    return Unfitted(kappa=kappa).before(Beliefs(mean=mean, flags=frozenset(flags)))


def quote(tier, dollars, *, credit=0.0, **more):
    dollars = None if dollars is None else Decimal(str(dollars))
    return Quote(tier=tier, dollars=dollars, shared=Shared(credit=credit), **more)


def quotes(**dollars):
    return {tier: quote(tier, price) for tier, price in dollars.items()}


PRICES = quotes(small=0.0001, large=0.002)


def judged(score, *, tier="small", index=0, judge="sound", **more):
    """A call whose answer was judged; None is a judge that cannot tell."""
    said = verdict(score, judge=judge, **more)
    step = Step(tier=tier, judge=judge)
    return attempt(index, tier=tier, step=step, verdict=said, outcome=None)


def unseen(tier, index=0):
    return attempt(index, tier=tier, outcome=None)


def failed(tier, index=0, judge=None):
    step = Step(tier=tier, judge=judge)
    known = {"step": step, "outcome": Outcome.BACKEND_ERROR, "completion": None, "error": DOWN}
    return attempt(index, tier=tier, **known)


def decide(policy, beliefs, priced=PRICES, calls=(), asked=None):
    """The plan, once the beliefs have heard what the calls' judges said."""
    heard = Unfitted().after(beliefs, [(c.step.tier, c.verdict) for c in calls])
    now = replace(heard, covariance=heard.covariance if calls else beliefs.covariance)
    return policy.decide(asked or request(), now, priced, calls)


def step(plan):
    (only,) = plan.steps
    return only.tier, only.judge
