import math

import numpy as np
import pytest

from serving.results.sequences import (
    TIGHTEST_AT,
    Interval,
    half_width,
    interval,
    relative,
    units_for,
)


def test_the_width_is_that_of_the_published_formula():
    alpha, units, deviation = 0.05, 700, 1.3
    level = -2 * math.log(alpha)
    rho = math.sqrt((level + math.log(level) + 1) / TIGHTEST_AT)
    published = deviation * math.sqrt(
        2
        * (units * rho**2 + 1)
        / (units**2 * rho**2)
        * math.log(math.sqrt(units * rho**2 + 1) / alpha)
    )
    assert half_width(deviation / math.sqrt(units), units) == pytest.approx(published)


@pytest.mark.parametrize("units", [500, 1_000, 10_000, 50_000])
def test_away_from_where_it_is_tightest_it_is_little_wider(units):
    tuned = half_width(1.0, units, tightest_at=units)
    assert tuned <= half_width(1.0, units) <= 1.12 * tuned


def test_it_is_wider_than_the_interval_for_one_look():
    assert half_width(1.0, TIGHTEST_AT) > 1.96


def test_a_smaller_chance_of_error_is_a_wider_interval():
    assert half_width(1.0, 1000, alpha=0.001) > half_width(1.0, 1000, alpha=0.05)


def test_an_interval_that_holds_zero_leaves_the_sign_open():
    assert not interval(0.01, 0.01, 1000).excludes_zero
    assert interval(0.5, 0.01, 1000).excludes_zero
    assert interval(-0.5, 0.01, 1000).excludes_zero


def test_a_ratio_is_told_as_a_change_and_cannot_fall_below_nothing():
    found = relative(0.69, 0.02, 2000)
    assert found.estimate == pytest.approx(-0.31)
    assert found.low < found.estimate < found.high < 0
    assert relative(0.01, 1.0, 2000).low > -1
    assert (1 + found.low) * (1 + found.high) == pytest.approx(0.69**2)


def test_over_all_looks_at_running_means_the_truth_is_seldom_outside():
    """At most 5 % in theory; 400 runs of 3,000 looks each, after the first hundred values."""
    random = np.random.default_rng(7)
    values = random.exponential(size=(400, 3000)) - 1.0
    counts = np.arange(1, 3001)
    means = values.cumsum(axis=1) / counts
    squares = (values**2).cumsum(axis=1) / counts
    errors = np.sqrt((squares - means**2) / counts)
    widths = np.array([half_width(1.0, int(count)) for count in counts])
    outside = np.abs(means) > widths * errors
    ever = outside[:, 100:].any(axis=1)
    assert 0 < ever.mean() <= 0.05
    once = (np.abs(means) > 1.96 * errors)[:, 100:].any(axis=1)
    assert once.mean() > 0.25  # the interval for one look, looked at always


def test_intervals_are_plain_values():
    assert Interval(estimate=0.0, low=-1.0, high=1.0) == Interval(estimate=0.0, low=-1.0, high=1.0)


def test_so_many_units_bring_the_interval_down():
    now = half_width(0.02, 500)
    wanted = units_for(now / 3, now, 500)
    assert half_width(0.02 * math.sqrt(500 / wanted), wanted) == pytest.approx(now / 3, rel=0.05)
    assert units_for(now, now, 500) == 500
    assert units_for(now / 1e4, now, 500) is None
