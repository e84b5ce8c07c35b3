import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.metrics import Point, auroc, bootstrap, mean, mix_quality, mix_share, wilson


def test_wilson_gives_the_textbook_values():
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(20, 20) == pytest.approx((0.8389, 1.0), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate_and_stays_within_zero_and_one(counts):
    right, total = counts
    low, high = wilson(right, total)
    assert 0 <= low <= right / total <= high <= 1
    assert low < high


@given(st.integers(0, 50))
def test_wilson_is_the_same_seen_from_the_wrong_answers(right):
    low, high = wilson(right, 50)
    assert wilson(50 - right, 50) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("right", "total"), [(1, 0), (0, 0), (3, 2), (-1, 2)])
def test_wilson_refuses_what_is_no_proportion(right, total):
    with pytest.raises(ValueError, match="no proportion"):
        wilson(right, total)


def test_the_bootstrap_of_a_mean_agrees_with_the_normal_interval():
    rng = Random(3)  # noqa: S311 - made-up rows
    rows = [rng.gauss(5.0, 2.0) for _ in range(400)]
    low, high = bootstrap(rows, mean, seed=1)
    spread = 1.96 * math.sqrt(mean([(x - mean(rows)) ** 2 for x in rows]) / len(rows))
    assert low == pytest.approx(mean(rows) - spread, abs=0.03)
    assert high == pytest.approx(mean(rows) + spread, abs=0.03)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    rows = [math.sin(x) for x in range(40)]
    assert bootstrap(rows, mean, seed=1) == bootstrap(rows, mean, seed=1)
    assert bootstrap(rows, mean, seed=1) != bootstrap(rows, mean, seed=2)


def test_pairing_takes_out_what_both_policies_share():
    rng = Random(4)  # noqa: S311 - made-up rows
    bases = [rng.gauss(0, 5) for _ in range(80)]
    rows = [(base, base + 0.1 + rng.gauss(0, 0.01)) for base in bases]
    low, high = bootstrap(rows, lambda drawn: mean([b - a for a, b in drawn]))
    assert 0.09 < low < high < 0.11


def test_a_statistic_without_spread_has_an_interval_without_width():
    assert bootstrap([1.0] * 9, mean) == (1.0, 1.0)


CHEAP, DEAR = Point(cost=1.0, quality=0.4), Point(cost=11.0, quality=0.8)


@pytest.mark.parametrize(
    ("cost", "share", "quality"), [(1, 0, 0.4), (11, 1, 0.8), (6, 0.5, 0.6), (3.5, 0.25, 0.5)]
)
def test_a_mix_is_linear_in_the_share_that_its_cost_pays_for(cost, share, quality):
    assert mix_share(CHEAP, DEAR, cost) == pytest.approx(share)
    assert mix_quality(CHEAP, DEAR, cost) == pytest.approx(quality)


def test_a_mix_ends_at_its_two_policies():
    assert mix_quality(CHEAP, DEAR, 0.5) == 0.4
    assert mix_quality(CHEAP, DEAR, 99.0) == 0.8


def test_where_the_dear_policy_is_no_dearer_all_prompts_go_to_it():
    assert mix_share(Point(2.0, 0.4), Point(2.0, 0.8), 2.0) == 1.0
    assert mix_quality(Point(3.0, 0.4), Point(2.0, 0.8), 5.0) == 0.8


def test_auroc_counts_pairs_in_order_and_ties_half():
    assert auroc([0.9, 0.8, 0.2], [True, True, False]) == 1.0
    assert auroc([0.1, 0.8, 0.2], [True, True, False]) == 0.5
    assert auroc([0.5, 0.5], [True, False]) == 0.5
    assert auroc([0.5, 0.4], [True, True]) is None


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=30))
def test_auroc_turns_over_with_the_scores(rows):
    scores, right = [score for score, _ in rows], [ok for _, ok in rows]
    value = auroc(scores, right)
    turned = auroc([-score for score in scores], right)
    assert (value is None and turned is None) or value == pytest.approx(1 - turned)


def test_rows_of_a_group_that_are_all_alike_count_as_one():
    rng = Random(6)  # noqa: S311 - made-up rows
    values = [rng.gauss(0, 1) for _ in range(40)]
    rows = [value for value in values for _ in range(25)]
    groups = [str(at) for at in range(40) for _ in range(25)]
    assert bootstrap(rows, mean, groups=groups) == pytest.approx(bootstrap(values, mean))
    low, high = bootstrap(rows, mean)
    assert high - low < 0.5 * (bootstrap(values, mean).high - bootstrap(values, mean).low)
