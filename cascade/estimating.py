"""What is believed of the tiers before any call: the estimator's word, or the prior without one.

An estimator that fails, or takes longer than the request may, never fails the request: the prior is
used and flagged. One that asks a model is booked like any other call.
"""

import asyncio

from cascade.changing import changed
from cascade.errors import EstimatorError
from cascade.posterior import prior
from cascade.protocols import DifficultyEstimator
from cascade.run import Run
from cascade.types import FREE, Beliefs


async def estimate(run: Run) -> Beliefs:
    """The beliefs that a request starts with, and on them how its session fared lately."""
    beliefs = run.arm.posterior.before(await _beliefs(run))
    if not run.request.session:
        return beliefs
    features = {**beliefs.features, "escalation": run.request.escalation}
    return changed(beliefs, features=features)


async def _beliefs(run: Run) -> Beliefs:
    estimator = run.arm.estimator
    if estimator is None:
        return _prior(run, "no_estimator")
    asks = estimator.asks
    if asks is not None and asks in run.snapshot.ruled_out(run.request):
        return _prior(run, "fallback")  # it must not see the request at all
    run.estimating(asks)
    try:
        beliefs = await _in_time(run, estimator)
    except EstimatorError as error:
        run.estimated(error.cost, error)
        return _prior(run, "fallback")
    run.estimated(beliefs.cost)
    return changed(beliefs, mean={**_stated(run), **beliefs.mean})


def _prior(run: Run, flag: str) -> Beliefs:
    """What is believed without an estimate."""
    beliefs, stated = prior(run.snapshot.tiers, flag), _stated(run)
    return changed(beliefs, mean={**beliefs.mean, **stated}) if stated else beliefs


def _stated(run: Run) -> dict[str, float]:
    """The prior of the arm, of the tiers that there are."""
    return {tier: q for tier, q in run.arm.prior.items() if tier in run.snapshot.tiers}


async def _in_time(run: Run, estimator: DifficultyEstimator) -> Beliefs:
    """Its beliefs.

    Raises:
        EstimatorError: it has none, or not before the time allowed was over.
    """
    asked = run.request
    if estimator.asks is not None:
        asked = run.traces.placed(asked, len(run.attempts))
    limit = asyncio.timeout(run.seconds_left)
    try:
        async with limit:
            return (await estimator.estimate([asked]))[0]
    except TimeoutError:
        if not limit.expired():
            raise
        spent = FREE if estimator.asks is None else None
        message = "the time allowed was over before there was an estimate"
        raise EstimatorError(message, cost=spent) from None
