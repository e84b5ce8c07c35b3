"""What an estimate costs and how it fails: booked like any call, and never the request's end."""

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest

from cascade.audit import record
from cascade.errors import EstimatorError
from cascade.experiments import Arm
from cascade.types import FREE, Beliefs, Budget, Cost, Kind, Outcome
from tests.engines import SMALL_THEN_LARGE, Bench, FixedJudge, request, tier

SPENT = Cost(input=Decimal("0.000003"))


class Told:
    """Gives what it is told: beliefs, or an exception; it may take its time."""

    name = "told"

    def __init__(self, outcome=None, *, asks="small", seconds=0.0):
        self.asks, self.seconds = asks, seconds
        self.outcome = outcome or Beliefs(mean={"small": 0.3, "large": 0.9}, cost=SPENT)
        self.seen = []

    async def estimate(self, requests):
        self.seen += requests
        await asyncio.sleep(self.seconds)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return [self.outcome] * len(requests)


def bench(estimator, **parts):
    arm = Arm(name=None, policy=SMALL_THEN_LARGE.policy, estimator=estimator)
    return Bench(tier("small"), tier("large"), judge=FixedJudge(0.9), arm=arm, **parts)


async def test_an_estimate_that_asked_a_model_is_an_attempt_and_part_of_the_bill():
    result = await bench(Told()).run()
    estimate, answer, judge = result.attempts
    assert (estimate.kind, estimate.step.tier, estimate.outcome) == (Kind.ESTIMATE, "small", None)
    assert [a.index for a in result.attempts] == [0, 1, 2]
    assert estimate.cost == SPENT
    assert result.cost.total == SPENT.total + answer.cost.total + judge.cost.total
    assert result.answers == 1
    assert answer.outcome is Outcome.ACCEPTED


async def test_the_audit_rows_add_up_to_the_bill():
    row = record(await bench(Told()).run())
    assert sum(attempt.cost_pico for attempt in row.attempts) == row.cost_pico
    assert row.attempts[0].kind == "estimate"
    assert row.beliefs == {"small": 0.3, "large": 0.9}


async def test_an_estimate_that_asked_no_model_is_no_attempt():
    free = Told(Beliefs(mean={"small": 0.3, "large": 0.9}), asks=None)
    result = await bench(free).run()
    assert [a.kind for a in result.attempts] == [Kind.ANSWER, Kind.JUDGE]


async def test_what_a_failed_estimate_spent_is_booked_and_the_request_goes_on():
    fault = EstimatorError("no label", cost=SPENT, estimated=True)
    result = await bench(Told(fault)).run()
    estimate = result.attempts[0]
    assert estimate.outcome is Outcome.ESTIMATE_ERROR
    assert estimate.error.message == "no label"
    assert (estimate.cost, estimate.usage_estimated) == (SPENT, True)
    assert result.beliefs.flags == {"fallback"}
    assert result.completion.text == "ok"
    assert result.cost.total > SPENT.total


async def test_an_estimate_of_unknown_cost_leaves_the_bill_open():
    result = await bench(Told(EstimatorError("cut", cost=None))).run()
    assert result.cost is None


async def test_time_spent_waiting_for_the_estimate_is_not_the_routers_own():
    result = await bench(Told(seconds=0.05)).run()
    assert result.attempts[0].seconds >= 0.05
    assert result.overhead_seconds < 0.04


async def test_an_estimator_is_cut_when_the_requests_time_is_over():
    hurried = replace(request(), budget=Budget(seconds=0.05))
    result = await asyncio.wait_for(bench(Told(seconds=30)).run(hurried), 5)
    estimate = result.attempts[0]
    assert estimate.error.message == "the time allowed was over before there was an estimate"
    assert estimate.cost is None
    assert result.error.code == "budget_too_small"


async def test_one_that_asks_no_model_and_is_cut_costs_nothing():
    hurried = replace(request(), budget=Budget(seconds=0.05))
    result = await bench(Told(asks=None, seconds=30)).run(hurried)
    assert result.attempts == ()
    assert result.cost == FREE
    assert result.beliefs.flags == {"fallback"}


async def test_what_the_estimate_cost_counts_against_the_clients_budget():
    budget = Budget(dollars=Decimal("0.000520"))  # the answer is quoted at $0.000516
    poor = replace(request(), budget=budget)
    dear = Beliefs(mean={}, cost=Cost(input=Decimal("0.00001")))
    refused = await bench(Told(dear)).run(poor)
    assert refused.error.code == "budget_too_small"
    assert refused.cost == dear.cost
    assert (await bench(Told()).run(poor)).completion is not None


async def test_a_tier_that_must_not_see_the_request_is_not_asked_about_it():
    told = Told()
    them = bench(told)
    hidden = replace(them.engine.snapshot, ruled_out=lambda _: {"small": "is abroad"})
    them.engine.snapshot = hidden
    result = await them.run()
    assert told.seen == []
    assert result.beliefs.flags == {"fallback"}
    assert [a.kind for a in result.attempts] == [Kind.ANSWER]


async def test_a_client_that_leaves_during_the_estimate_leaves_its_cost_open():
    told = Told(seconds=30)
    them = bench(told)
    task = asyncio.create_task(them.run())
    while not told.seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [result] = them.sink.results
    assert [(a.kind, a.outcome) for a in result.attempts] == [(Kind.ESTIMATE, Outcome.CANCELLED)]
    assert result.cancelled
    assert result.cost is None


async def test_a_bug_in_an_estimator_is_audited_and_propagates():
    them = bench(Told(TypeError("oops")))
    with pytest.raises(TypeError, match="oops"):
        await them.run()
    [result] = them.sink.results
    assert result.attempts[0].outcome is Outcome.ESTIMATE_ERROR
    assert result.error.type == "TypeError"


async def test_a_streamed_request_starts_with_its_answer_as_before():
    events = await bench(Told()).events()
    assert type(events[0]).__name__ == "AttemptStarted"
    assert events[0].attempt.kind is Kind.ANSWER
