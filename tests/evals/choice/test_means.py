import numpy as np
import pytest

from evals.choice.means import spread


def test_the_interval_of_a_mean_is_as_wide_as_its_standard_error_says():
    values = np.random.default_rng(0).random(400)
    found = spread(values, np.arange(400).astype(str))
    half = 1.96 * values.std() / 20.0
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_rows_of_a_group_are_drawn_together():
    values = np.repeat(np.random.default_rng(0).random(40), 10)
    wide = spread(values, np.repeat(np.arange(40), 10).astype(str))
    narrow = spread(values, np.arange(400).astype(str))
    assert wide.high - wide.low > 2.5 * (narrow.high - narrow.low)


def test_a_ratio_of_what_is_always_in_proportion_has_no_width():
    other = np.random.default_rng(0).random(50)
    found = spread(0.5 * other, np.arange(50).astype(str), over=other)
    assert found == pytest.approx((0.5, 0.5, 0.5))


def test_a_ratio_to_nothing_is_not_known():
    assert np.isnan(spread(np.ones(5), np.arange(5).astype(str), over=np.zeros(5))).all()


def test_the_same_seed_gives_the_same_interval_and_many_groups_are_drawn_in_parts():
    values = np.random.default_rng(0).random(3_000)
    groups = np.arange(3_000).astype(str)
    assert spread(values, groups) == spread(values, groups)
    assert spread(values, groups) != spread(values, groups, seed=1)
