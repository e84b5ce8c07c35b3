"""The bill of conversations, against playing them turn by turn."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from cascade.pricing import PriceCard, Rates
from evals.frontier.known import FrontierError
from evals.frontier.policies import replayed
from evals.frontier.warmth import Cold, Warmth, last_turns
from tests.evals.frontier.worlds import world
from tests.evals.tables.tables import table

WARMTH = Warmth(dollars=np.array([1e-6, 2e-5]))


def conversations(rows=90, tiers=2, judged=(0,)):
    """Three at a time, turn by turn, each turn's prompt longer than the last."""
    some = world(rows, tiers, 1, judged=judged)
    numbers = np.arange(rows)
    talks = numbers // 15 * 3 + numbers % 3
    return replace(
        some,
        sessions=np.array([f"s{talk}" for talk in talks]),
        groups=np.array([f"s{talk}" for talk in talks]),
        splits=np.array([("fit", "choose", "test")[talk % 3] for talk in talks]),
        lengths=100.0 * (1 + numbers % 15 // 3),
    )


def test_turns_follow_each_other_in_the_order_of_the_rows():
    some = table(np.ones((5, 2)), sessions=["a", "b", "a", "", "a"])
    assert last_turns(some).tolist() == [-1, -1, 0, -1, 2]


def test_a_turn_costs_less_with_the_tier_that_answered_the_last_one():
    some = table(
        np.ones((2, 2)), cost=[[0.1, 1.0]], sessions=["a", "a"], prompts=["x" * 1000, "x" * 1500]
    )
    warm = WARMTH.warm(some)
    np.testing.assert_allclose(warm.cost, [[0.1, 1.0], [0.1 - 0.001, 1.0 - 0.02]])


def test_a_session_in_two_splits_is_refused():
    some = table(np.ones((2, 2)), cost=1.0, sessions=["a", "a"], splits=["fit", "test"])
    with pytest.raises(FrontierError, match="'a' is in two splits"):
        WARMTH.warm(some)


@pytest.mark.parametrize("name", ["uplift", "cascade", "cascade-by-gain", "utility", "classifier"])
@pytest.mark.parametrize("tiers", [2, 3])
def test_every_setting_is_billed_as_if_it_were_played_turn_by_turn(name, tiers):
    warmth = Warmth(dollars=np.array([1e-6, 5e-6, 2e-5])[[*range(tiers - 1), 2]])
    some = warmth.warm(conversations(tiers=tiers, judged=range(tiers - 1)))
    policy = replayed(some)[name]
    cold = Cold(name=name, knob=policy.knob, inner=policy, warmth=warmth)
    curve = cold.curve(some)
    sweep = policy.sweep(some)
    assert len(curve) == len(sweep.knob)
    for place in range(0, len(curve), 7):
        knob = curve.knob[place]
        bill = played(some, sweep, place, warmth)
        np.testing.assert_allclose(cold.decisions(some, knob).cost, bill, atol=1e-12)
        assert curve.cost[place] == pytest.approx(bill.mean())
        assert cold.decisions(some, knob).served.tolist() == sweep.at(knob).served.tolist()


def played(some, sweep, place, warmth):
    """The bill of each turn at one setting."""
    served, cost, _ = sweep.at(sweep.knob[place])
    asked = sweep.asked.copy()
    for step, row, mask in zip(
        sweep.changes.step, sweep.changes.row, sweep.changes.asked, strict=True
    ):
        if step <= place:
            asked[row] = mask
    last, bill = {}, cost.copy()
    for row, session in enumerate(some.sessions):
        if session in last:
            before = last[session]
            prefix = min(some.lengths[row], some.lengths[before])
            for tier in range(len(some.tiers)):
                if asked[row] >> tier & 1 and served[before] != tier:
                    bill[row] += prefix * warmth.dollars[tier]
        last[session] = row
    return bill


def test_price_cards_say_what_a_warm_character_saves():
    def rates(**dollars):
        return Rates(**{name: Decimal(each) for name, each in dollars.items()})

    cards = {
        "small": PriceCard(rates=rates(input="1", cache_read="0.1", output="2")),
        "large": PriceCard(rates=rates(input="1", output="2")),
    }
    found = Warmth.of(("small", "large", "other"), cards).dollars
    np.testing.assert_allclose(found, [0.9e-6 / 4.0, 0.0, 0.0])
