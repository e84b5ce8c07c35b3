import math

import numpy as np
import pytest

from serving.results.shares import ALPHA, shares


def test_right_shares_are_seldom_doubted_however_often_one_looks():
    random = np.random.default_rng(5)
    doubted = 0
    for _ in range(300):
        came = random.choice(3, p=[0.5, 0.3, 0.2], size=2000)
        counts = np.stack([(came == arm).cumsum() for arm in range(3)], axis=1)[::50]
        looks = (
            shares({"a": 5, "b": 3, "c": 2}, dict(zip("abc", map(int, row), strict=True))).p
            for row in counts
        )
        doubted += min(looks) < 0.05
    assert doubted / 300 <= 0.05


def test_wrong_shares_are_found_and_right_ones_get_clearer():
    weights = {"a": 50, "b": 50}
    assert shares(weights, {"a": 5300, "b": 4700}).broken
    assert not shares(weights, {"a": 5050, "b": 4950}).broken
    assert not shares(weights, {"a": 53, "b": 47}).broken


def test_the_bayes_factor_is_that_of_all_shares_alike():
    """Of two arms: the counts' order has the probability 1 / ((n + 1) * (n over k))."""
    found = shares({"a": 1, "b": 3}, {"a": 9, "b": 3})
    mixed = 1 / (13 * math.comb(12, 9))
    assert found.p == pytest.approx(0.25**9 * 0.75**3 / mixed)


def test_units_in_an_arm_without_a_share_are_wrong_for_sure():
    assert shares({"a": 1, "b": 0}, {"a": 100, "b": 1}).p == 0
    assert shares({"a": 1}, {"a": 100, "gone": 1}).broken


def test_before_anybody_came_nothing_is_wrong():
    found = shares({"a": 2, "b": 1}, {})
    assert found.p == 1
    assert found.expected == {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}
    assert shares({"a": 1, "b": 0}, {"a": 10}).p == 1
    assert ALPHA < 0.05
