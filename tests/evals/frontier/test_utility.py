"""The replayed rule against the shipped one: the same beliefs, quotes and verdicts, row by row."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.policies.utility import Option, UtilityPolicy
from cascade.posterior import Unfitted
from cascade.quote import Quote
from cascade.types import Beliefs, Step
from evals.frontier.policies import replayed
from tests.builders import attempt, request, verdict
from tests.evals.frontier.worlds import world


def shipped(table, row, known, quality_usd):
    """Plays the product's own policy on a row: who answers, and what is paid."""
    tiers = table.tiers
    judges = known.judged()
    policy = UtilityPolicy(
        name="p",
        quality_usd=quality_usd,
        tiers=[
            Option(tier=tier, judge="sound" if at in judges else None)
            for at, tier in enumerate(tiers)
        ],
    )
    prices = known.quotes(table)[row]
    quotes = {
        tier: Quote(
            tier=tier,
            dollars=Decimal(float(prices[at])),
            judge_dollars=Decimal(float(np.nan_to_num(known.judging[at]))),
        )
        for at, tier in enumerate(tiers)
    }
    posterior = Unfitted()
    prior = posterior.before(Beliefs(mean=dict(zip(tiers, table.predicted[row], strict=True))))
    calls, spent = [], 0.0
    while True:
        heard = posterior.after(prior, [(c.step.tier, c.verdict) for c in calls])
        plan = policy.decide(request(), heard if calls else prior, quotes, calls)
        if not plan.steps:
            return tiers.index(calls[plan.accept].step.tier), spent
        step = plan.steps[0]
        at = tiers.index(step.tier)
        spent += table.cost[row, at] + (table.judge_cost[row, at] if step.judge else 0.0)
        calls.append(_call(len(calls), step, table.judged[row, at]))


def _call(index, step: Step, score):
    said = None
    if step.judge:
        said = verdict(None if np.isnan(score) else float(score), judge=step.judge)
    return attempt(index, tier=step.tier, step=step, verdict=said, outcome=None)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    tiers=st.integers(2, 4),
    judges=st.sets(st.integers(0, 3)),
    unsure=st.sampled_from([0.0, 0.3]),
    log_usd=st.floats(-4.0, 1.0),
)
def test_every_row_is_decided_as_the_shipped_rule_decides_it(seed, tiers, judges, unsure, log_usd):
    table = world(12, tiers, seed, judged=[at for at in judges if at < tiers], unsure=unsure)
    found = replayed(table)
    quality_usd = 10.0**log_usd
    served, cost, quality = found["utility"].decisions(table, quality_usd)
    for row in range(len(table)):
        theirs, spent = shipped(table, row, found.known, quality_usd)
        assert served[row] == theirs
        assert cost[row] == pytest.approx(spent)
        assert quality[row] == table.quality[row, theirs]


def test_between_two_steps_nothing_changes_and_at_each_step_something_does():
    table = world(30, 3, 3, judged=(0, 1))
    found = replayed(table)
    sweep = found["utility"].sweep(table)
    assert len(sweep.keys) > 30
    for place in range(0, len(sweep.keys) - 1, 2):
        low, high = sweep.keys[place : place + 2]
        inside = [low + (high - low) * share for share in (0.05, 0.95)]
        ways = [
            [shipped(table, row, found.known, usd) for row in range(len(table))] for usd in inside
        ]
        assert ways[0] == ways[1]
        below = low - (low - sweep.keys[place - 1]) * 0.05 if place else low * 0.9
        before = [shipped(table, row, found.known, below) for row in range(len(table))]
        assert before != ways[0]


def test_rows_that_are_alike_change_together():
    one = world(1, 2, 0)
    table = one.take(np.zeros(40, dtype=int))
    fitted = world(100, 2, 0)
    rule = replayed(fitted)["utility"]
    assert len(rule.curve(table)) == len(rule.curve(one))
    np.testing.assert_allclose(rule.curve(table).cost, rule.curve(one).cost)


def test_what_quality_is_worth_nothing_and_what_money_is_worth_nothing_are_both_in_the_sweep():
    table = world(200, 2, 0)
    found = replayed(table)
    curve = found["utility"].curve(table)
    assert curve.shares[0, 0] == 1.0
    assert curve.cost[0] == pytest.approx(table.cost[:, 0].mean())
    best = found["utility"].decisions(table, 1e6)
    for row in range(0, 200, 10):
        assert best.served[row] == shipped(table, row, found.known, 1e6)[0]
