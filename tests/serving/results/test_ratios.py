import math
from dataclasses import replace

import numpy as np
import pytest

from serving.results.ratios import NOTHING, Sums, difference, estimate, from_level
from serving.results.sequences import LEAST_UNITS


def sums(s, n, x=None):
    s, n = np.asarray(s, float), np.asarray(n, float)
    x = np.zeros_like(s) if x is None else np.asarray(x, float)
    parts = {"s": s, "n": n, "ss": s * s, "sn": s * n, "nn": n * n}
    parts |= {"x": x, "xx": x * x, "sx": s * x, "nx": n * x}
    return Sums(units=len(s), **{name: float(each.sum()) for name, each in parts.items()})


def drawn(random, units, ratio=0.7):
    n = random.poisson(3, units) + 1
    mean = np.clip(random.normal(ratio, 0.2, units), 0, 1)
    return random.binomial(n, mean), n


def test_a_ratio_has_the_error_that_drawing_the_units_anew_gives_it():
    random = np.random.default_rng(1)
    ratios = []
    for _ in range(2000):
        s, n = drawn(random, 300)
        ratios.append(s.sum() / n.sum())
    s, n = drawn(random, 300)
    found = estimate(sums(s, n), 0.0, 0.0, bounded=False)
    assert found.ratio == pytest.approx(s.sum() / n.sum())
    assert found.error == pytest.approx(np.std(ratios), rel=0.15)


def test_requests_of_one_unit_count_once():
    """Ten equal requests a unit say no more than one."""
    few = estimate(sums([1, 0] * 100, [1] * 200), 0.0, 0.0, bounded=False)
    many = estimate(sums([10, 0] * 100, [10] * 200), 0.0, 0.0, bounded=False)
    assert many == few


def test_nothing_seen_yet_is_no_certainty():
    none = sums([0] * 100, [1] * 100)
    assert estimate(none, 0.0, 0.0, bounded=False).error == 0
    assert estimate(none, 0.0, 0.0, bounded=True).error == pytest.approx(0.01, rel=0.01)
    found = difference(none, none, bounded=True).interval
    assert found.low < 0 < found.high


def test_before_there_are_enough_units_there_is_no_interval():
    enough, few = sums([1] * 90, [1] * 90), sums([1, 0] * 10, [1] * 20)
    found = difference(few, enough, bounded=True)
    assert (found.interval, found.needs) == (None, LEAST_UNITS - 20)
    assert (found.arm, found.control) == (0.5, 1.0)
    assert difference(NOTHING, enough, bounded=True).arm is None


def test_what_costs_nothing_cannot_be_compared_as_a_ratio():
    free, paid = sums([0.0] * 60, [1] * 60), sums([0.1, 0.2] * 30, [1] * 60)
    assert difference(free, paid, bounded=False, as_ratio=True).interval is None
    assert difference(paid, free, bounded=False, as_ratio=True).interval is None
    unpriced = sums([0.0] * 60, [0] * 60)
    assert difference(paid, unpriced, bounded=False, as_ratio=True).interval is None


def test_a_relative_difference_has_the_error_of_the_logarithm_of_the_ratio():
    random = np.random.default_rng(2)
    logs = []
    for _ in range(2000):
        one, two = (random.lognormal(0, 1, 400) for _ in range(2))
        logs.append(math.log(one.mean() / two.mean()))
    one, two = (sums(random.lognormal(0, 1, 400), [1] * 400) for _ in range(2))
    found = difference(one, two, bounded=False, as_ratio=True)
    plain = difference(one, two, bounded=False)
    width = math.log(1 + found.interval.high) - math.log(1 + found.interval.estimate)
    told = width / (plain.interval.high - plain.interval.estimate)
    one_log = math.hypot(
        estimate(one, 0, 0, bounded=False).error / one.ratio,
        estimate(two, 0, 0, bounded=False).error / two.ratio,
    )
    plain_error = math.hypot(*(estimate(each, 0, 0, bounded=False).error for each in (one, two)))
    assert told == pytest.approx(one_log / plain_error)
    assert one_log == pytest.approx(np.std(logs), rel=0.3)


def test_what_units_did_before_makes_the_interval_narrower_and_moves_no_mean():
    random = np.random.default_rng(3)
    estimates, reductions, plain = [], [], []
    for _ in range(300):
        pair = []
        for _arm in range(2):
            habit = random.normal(0, 1, 200)
            pair.append(sums(5 + habit + random.normal(0, 0.5, 200), [1] * 200, habit))
        found = difference(*pair, bounded=False)
        without = difference(*(replace(p, x=0, xx=0, sx=0, nx=0) for p in pair), bounded=False)
        estimates.append(found.interval.estimate)
        plain.append(without.interval.estimate)
        reductions.append(found.reduced)
        assert (
            found.interval.high - found.interval.low < without.interval.high - without.interval.low
        )
        assert without.reduced == 0
    assert np.mean(reductions) == pytest.approx(0.8, abs=0.03)  # 1 of the 1.25 of the variance
    assert np.std(estimates) == pytest.approx(math.sqrt(0.2) * np.std(plain), rel=0.1)
    assert abs(np.mean(estimates)) < 3 * np.std(estimates) / math.sqrt(300)


def test_a_covariate_that_explains_nothing_changes_little():
    random = np.random.default_rng(4)
    pair = [sums(random.normal(5, 1, 500), [1] * 500, random.normal(0, 1, 500)) for _ in range(2)]
    assert difference(*pair, bounded=False).reduced < 0.02


def test_a_share_is_held_against_a_level_that_is_known():
    found = from_level(sums([1] * 180 + [0] * 20, [1] * 200), 0.5)
    assert (found.arm, found.control) == (0.9, 0.5)
    assert found.interval.estimate == pytest.approx(0.4)
    assert found.interval.low > 0
    assert from_level(sums([1] * 9, [1] * 9), 0.5).needs == LEAST_UNITS - 9


def test_shares_differ_by_no_more_than_all():
    all_of_it, nothing = sums([1] * 60, [1] * 60), sums([0] * 60, [1] * 60)
    found = difference(nothing, all_of_it, bounded=True).interval
    assert (found.estimate, found.low) == (-1.0, -1.0)
    assert found.high > -1.0
    assert from_level(all_of_it, 0.5).interval.high == 0.5
