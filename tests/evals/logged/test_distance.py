import math

import numpy as np
import pytest

from evals.logged.distance import MOST_ROWS, energy, kolmogorov_smirnov, psi, sampled


def normal(seed, n=300, mean=0.0, dimensions=None):
    rng = np.random.default_rng(seed)
    return rng.normal(mean, size=n if dimensions is None else (n, dimensions))


def test_psi_by_hand():
    # Two bins cut at the median, half a row more in each: .5 and .5 before, 1.5/11 and 9.5/11 now.
    before, now = np.array([0.0] * 5 + [1.0] * 5), np.array([0.0] + [1.0] * 9)
    a, b = 1.5 / 11, 9.5 / 11
    expected = (a - 0.5) * math.log(a / 0.5) + (b - 0.5) * math.log(b / 0.5)
    assert psi(before, now, bins=2) == pytest.approx(expected)


def test_psi_of_the_same_numbers_is_nothing_and_of_others_much():
    assert psi(normal(1), normal(1)) == 0.0
    assert psi(normal(1, 2000), normal(2, 2000)) < 0.05
    assert psi(normal(1, 2000), normal(2, 2000, mean=1.0)) > 0.25
    assert math.isfinite(psi(np.zeros(50), np.ones(50)))


def test_the_largest_gap_by_hand_ties_counted_together():
    found = kolmogorov_smirnov(np.array([1.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0, 2.0]))
    assert found.distance == pytest.approx(0.25)
    assert kolmogorov_smirnov(np.ones(30), np.ones(40)).distance == 0.0


def test_p_is_small_for_what_is_apart_and_spread_evenly_for_what_is_not():
    assert kolmogorov_smirnov(normal(1), normal(2, mean=0.6)).p == 0.005
    chance = [kolmogorov_smirnov(normal(2 * i, 60), normal(2 * i + 1, 40)).p for i in range(60)]
    assert 0.35 < np.mean(chance) < 0.68
    assert np.mean(np.array(chance) <= 0.05) < 0.2


def test_energy_by_hand():
    # Two points at distance 1: nothing within a sample, so all of it is between them.
    assert energy(np.zeros((4, 2)), np.eye(2)[[0] * 4]).distance == pytest.approx(1.0, abs=1e-5)
    one = np.array([[0.0], [2.0]])
    other = np.array([[1.0], [3.0]])
    # E|X - Y| = (1 + 3 + 1 + 1) / 4, E|X - X'| = E|Y - Y'| = 1.
    assert energy(one, other).distance == pytest.approx((3.0 - 2.0) / 3.0, abs=1e-5)


def test_energy_tells_vectors_of_another_kind():
    near = energy(normal(1, 200, dimensions=8), normal(2, 200, dimensions=8))
    far = energy(normal(1, 200, dimensions=8), normal(2, 200, mean=0.5, dimensions=8))
    assert far.distance > 5 * near.distance
    assert (far.p, near.p > 0.05) == (0.005, True)


def test_a_sample_is_drawn_the_same_way_each_time():
    assert list(sampled(5)) == [0, 1, 2, 3, 4]
    assert len(set(sampled(5_000))) == MOST_ROWS
    assert (sampled(5_000) == sampled(5_000)).all()
