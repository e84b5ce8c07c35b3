from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.isotonic import Block, fit_map, pool_adjacent_violators

points = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 5)), min_size=1, max_size=7).map(
    lambda rows: [Block(float(i), value, weight) for i, (value, weight) in enumerate(rows)]
)


def fitted_values(given_points):
    """The value of the fit at each point."""
    values = []
    rest = list(given_points)
    for block in pool_adjacent_violators(given_points):
        weight = 0.0
        while rest and weight < block.weight - 1e-9:
            weight += rest.pop(0).weight
            values.append(block.value)
    return values


def brute_force(given_points):
    """The best of all ways to cut the points into blocks of their mean that do not decrease."""
    n, best = len(given_points), (float("inf"), [])
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            edges = [0, *cuts, n]
            groups = [given_points[a:b] for a, b in pairwise(edges)]
            means = [sum(p.value * p.weight for p in g) / sum(p.weight for p in g) for g in groups]
            if all(a <= b + 1e-12 for a, b in pairwise(means)):
                values = [m for m, g in zip(means, groups, strict=True) for _ in g]
                best = min(best, (loss(given_points, values), values))
    return best[1]


def loss(given_points, values):
    return sum(p.weight * (p.value - v) ** 2 for p, v in zip(given_points, values, strict=True))


@given(points)
def test_the_fit_never_decreases_and_no_other_is_nearer(given_points):
    values = fitted_values(given_points)
    assert values == sorted(values)
    assert values == pytest.approx(brute_force(given_points), abs=1e-9)


@given(points)
def test_the_fit_keeps_weight_and_mean(given_points):
    blocks = pool_adjacent_violators(given_points)
    for total in (lambda p: p.weight, lambda p: p.weight * p.value, lambda p: p.weight * p.x):
        assert sum(map(total, blocks)) == pytest.approx(sum(map(total, given_points)))


def test_points_in_order_stay_as_they_are():
    ordered = [Block(0.0, 0.1, 1), Block(1.0, 0.2, 3), Block(2.0, 0.9, 2)]
    assert pool_adjacent_violators(ordered) == ordered


scored = st.lists(
    st.tuples(st.floats(0, 1).map(lambda x: round(x, 3)), st.booleans()), min_size=1, max_size=200
)


@given(scored)
def test_a_fitted_map_is_monotone_has_few_knots_and_is_never_certain(rows):
    scores, right = [score for score, _ in rows], [ok for _, ok in rows]
    fitted = fit_map(scores, right)
    assert 2 <= len(fitted.x) <= 8
    assert all(0 < y < 1 for y in fitted.y)
    values = [fitted(step / 50) for step in range(51)]
    assert values == sorted(values)


def test_a_score_that_tells_right_from_wrong_gets_a_rising_map():
    scores = [i / 100 for i in range(100)]
    fitted = fit_map(scores, [score > 0.5 for score in scores])
    assert fitted(0.1) < 0.15
    assert fitted(0.9) > 0.85


def test_a_score_that_tells_the_wrong_way_round_gets_the_base_rate_everywhere():
    scores = [i / 100 for i in range(100)]
    fitted = fit_map(scores, [score < 0.5 for score in scores])
    assert fitted(0.05) == fitted(0.95) == pytest.approx(0.5, abs=0.02)


def test_equal_scores_get_one_value():
    fitted = fit_map([0.3] * 50, [True] * 25 + [False] * 25)
    assert fitted(0.3) == pytest.approx(0.5)


def test_each_knot_is_smoothed_by_one_right_and_one_wrong_answer():
    fitted = fit_map([0.1] * 4 + [0.9] * 4, [False] * 4 + [True] * 4, bins=2)
    assert list(fitted.x) == pytest.approx([0.1, 0.9])
    assert list(fitted.y) == pytest.approx([1 / 6, 5 / 6])


@pytest.mark.parametrize(("scores", "right"), [([], []), ([0.5], [True, False])])
def test_a_map_needs_rows_with_labels(scores, right):
    with pytest.raises(ValueError, match="one label for each score"):
        fit_map(scores, right)
