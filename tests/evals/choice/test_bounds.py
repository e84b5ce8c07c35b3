import numpy as np
import pytest
from scipy.stats import binom

from evals.choice.bounds import at_least, holds, paired, rows_needed

DELTA = 0.1


def alone(count):
    return np.array([str(at) for at in range(count)])


def drawn(rng, count, *, kept=0.97, alike=1):
    """Answers of a policy and of the model it is compared with, which it nearly always equals."""
    groups = np.arange(count) // alike
    rate = rng.choice([0.5, 0.9], groups[-1] + 1)[groups]
    other = (rng.random(count) < rate).astype(float)
    same = rng.random(count) < kept
    return np.where(same, other, 1.0 - other), other, groups.astype(str)


def test_the_bound_of_right_and_wrong_answers_is_the_exact_one():
    bound = at_least(paired(np.repeat([1.0, 0.0], [46, 4]), alone(50)), DELTA)
    # at the lower end 46 or more of 50 come with probability delta
    assert binom.sf(45, 50, bound) == pytest.approx(DELTA, abs=1e-9)


def test_nothing_right_is_bounded_by_nothing():
    assert at_least(paired(np.zeros(40), alone(40)), DELTA) == 0.0


@pytest.mark.parametrize("alike", [1, 4])
def test_a_claim_at_the_very_truth_is_made_at_most_as_often_as_stated(alike):
    rng, made = np.random.default_rng(3), 0
    right = 0.5 * 0.5 + 0.5 * 0.9
    truth = (right * 0.97 + (1.0 - right) * 0.03) / right
    for _ in range(300):
        mine, other, groups = drawn(rng, 400, alike=alike)
        made += holds(paired(mine, groups, yardstick=other), truth, DELTA)
    assert made <= 300 * DELTA


def test_an_order_by_which_the_good_rows_come_first_misleads_nobody():
    rng, made = np.random.default_rng(5), 0
    for _ in range(100):
        mine, other, _ = drawn(rng, 400, kept=0.9)
        names = np.array([f"{1.0 - right}-{at}" for at, right in enumerate(mine)])
        # in truth 0.9 * 0.7 + 0.1 * 0.3 right, of 0.7
        made += holds(paired(mine, names, yardstick=other), 0.66 / 0.7, DELTA)
    assert made <= 10


def test_rows_of_a_group_that_are_all_the_same_count_once():
    mine, other, _ = drawn(np.random.default_rng(0), 300)
    once = paired(mine, alone(300), yardstick=other)
    copied = paired(np.tile(mine, 5), np.tile(alone(300), 5), yardstick=np.tile(other, 5))
    assert at_least(copied, DELTA) == at_least(once, DELTA)


def test_groups_that_are_not_there_yet_may_be_larger_and_widen_the_bound():
    mine, other, _ = drawn(np.random.default_rng(0), 300)
    known = at_least(paired(mine, alone(300), yardstick=other), DELTA)
    assert at_least(paired(mine, alone(300), yardstick=other, largest=10), DELTA) < known


def test_a_policy_that_never_differs_is_certified_from_about_the_fewest_rows_there_can_be():
    def same(count):
        return paired(np.ones(count), alone(count), yardstick=np.ones(count))

    # staking three quarters of what could be lost, 0.98, on a gain of 0.02 takes 152 rows
    assert not holds(same(151), 0.98, DELTA)
    assert holds(same(156), 0.98, DELTA)


def test_the_number_of_rows_that_is_said_is_about_enough():
    rng = np.random.default_rng(1)
    mine, other, groups = drawn(rng, 2_000)
    needed = rows_needed(paired(mine, groups, yardstick=other), 0.95, DELTA)
    passed = {}
    for share in (0.5, 1.0, 2.0):
        count, passed[share] = round(needed * share), 0
        for _ in range(200):
            mine, other, groups = drawn(rng, count)
            passed[share] += holds(paired(mine, groups, yardstick=other), 0.95, DELTA)
    assert passed[0.5] < 100 < passed[1.0]
    assert passed[2.0] > 150


def test_no_number_of_rows_shows_what_is_not_so():
    mine, other, groups = drawn(np.random.default_rng(1), 2_000, kept=0.8)
    assert rows_needed(paired(mine, groups, yardstick=other), 0.98, DELTA) is None


def test_a_difference_below_nothing_is_bounded_too():
    mine, other, groups = drawn(np.random.default_rng(1), 1_500)
    found = paired(mine - other, groups, least=-1.0)
    assert holds(found, -0.05, DELTA)
    assert not holds(found, 0.0, DELTA)
