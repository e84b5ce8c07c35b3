import math

import numpy as np
import pytest

from serving.alerts.jumps import LEAST_HOURS, Hour, Rule, jump

RISES = Rule(least=0.1)
FALLS = Rule(falls=True, least=0.1)


def hours(mean, count=168, number=100, **fields):
    return [Hour(number=number, mean=mean, **fields) for _ in range(count)]


def test_a_share_far_above_the_worst_hour_is_told_with_what_is_usual():
    past = [*hours(0.2, 167), Hour(number=100, mean=0.3)]
    found = jump(Hour(number=200, mean=0.8), past, RISES)
    assert (found.now, found.usual, found.worst, found.number) == (0.8, 0.2, 0.3, 200)


@pytest.mark.parametrize(
    ("now", "rule"),
    [
        (Hour(number=200, mean=0.29), RISES),  # the week had as bad an hour
        (Hour(number=29, mean=1.0), RISES),  # too few
        (Hour(number=60, mean=0.45), RISES),  # chance explains it
        (Hour(number=10**6, mean=0.31), Rule(least=0.2)),  # certain, and not worth a look
        (Hour(number=200, mean=0.0), RISES),  # the good way
        (Hour(number=200, mean=0.8), FALLS),
    ],
)
def test_what_is_ordinary_is_not_told(now, rule):
    assert jump(now, [*hours(0.2, 167), Hour(number=100, mean=0.3)], rule) is None


def test_a_fall_is_held_against_the_least_hour():
    past = [*hours(0.8, 167), Hour(number=100, mean=0.6)]
    found = jump(Hour(number=100, mean=0.1), past, FALLS)
    assert (found.usual, found.worst) == (0.8, 0.6)
    assert jump(Hour(number=100, mean=0.65), past, FALLS) is None


def test_until_there_is_a_day_of_past_nothing_is_out_of_the_ordinary():
    now = Hour(number=100, mean=1.0)
    assert jump(now, hours(0.0, LEAST_HOURS - 1), RISES) is None
    assert jump(now, hours(0.0, LEAST_HOURS), RISES)
    assert jump(now, hours(0.0, LEAST_HOURS, number=3), RISES) is None


def test_a_cost_is_held_against_its_own_spread():
    rule = Rule(least=0.5, relative=True)
    past = hours(1.0, deviation=1.0)
    assert jump(Hour(number=100, mean=2.0, deviation=1.0), past, rule)
    assert jump(Hour(number=100, mean=2.0, deviation=5.0), past, rule) is None
    assert jump(Hour(number=100, mean=1.4, deviation=0.1), past, rule) is None
    assert jump(Hour(number=100, mean=2.0, deviation=0.0), past, rule)


def test_traffic_that_does_not_change_gives_no_alarm_in_years():
    """A month of looks a minute is 43,200; here are 200,000 against weeks of their own."""
    random = np.random.default_rng(6)
    alarms = 0
    for _ in range(20):
        share = random.uniform(0.02, 0.6)
        past = [Hour(number=80, mean=random.binomial(80, share) / 80) for _ in range(168)]
        for mean in np.unique(random.binomial(80, share, 10_000) / 80):
            alarms += jump(Hour(number=80, mean=float(mean)), past, Rule(least=0.0)) is not None
    assert alarms == 0


def test_the_bound_on_chance_is_hoeffdings():
    """100 of 100 against a worst hour of 0.85 has the chance 0.85 ** 100, below a millionth."""
    past = hours(0.85)
    assert 0.85**100 < 1e-6 < 0.88**100
    assert jump(Hour(number=100, mean=1.0), past, RISES)
    assert jump(Hour(number=100, mean=1.0), hours(0.88), Rule(least=0.0)) is None
    assert math.isclose(0.85**100, math.exp(100 * math.log(0.85)))
