"""Each metric on curves that can be reckoned by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evals.frontier.metrics import (
    DEFINITIONS,
    Gap,
    aiq,
    apgr,
    auc,
    cpt,
    expected_cost,
    hull,
    ibc_lift,
    pgr,
    saved,
)
from evals.metrics import Point

GAP = Gap(Point(1.0, 0.6), Point(5.0, 0.8))


def curve(*values):
    return np.array(values, dtype=float)


def test_pgr_is_the_share_of_the_gap_that_is_won_back():
    np.testing.assert_allclose(pgr(curve(0.6, 0.65, 0.8, 0.9), GAP), [0.0, 0.25, 1.0, 1.5])


def test_apgr_of_the_straight_line_is_a_half_and_of_a_bent_one_its_area():
    assert apgr(curve(0.0, 1.0), curve(0.6, 0.8), GAP) == pytest.approx(0.5)
    # PGR 1 after a quarter: (0 + 1)/2 of a quarter, then 1
    assert apgr(curve(0.0, 0.25, 1.0), curve(0.6, 0.8, 0.8), GAP) == pytest.approx(0.875)


def test_apgr_in_steps_does_not_see_what_lies_between_them():
    bent = curve(0.0, 0.25, 1.0), curve(0.6, 0.8, 0.8), GAP  # PGR 0, 1, 1
    assert apgr(*bent, steps=2) == pytest.approx(0.5 * 0.5 + 0.5)
    assert apgr(*bent, steps=4) == pytest.approx(0.875)


def test_apgr_joins_a_curve_to_the_two_models_alone():
    # from (0, 0) to (.5, .75), and to (1, 1)
    assert apgr(curve(0.5), curve(0.75), GAP) == pytest.approx(0.5 * 0.375 + 0.5 * 0.875)


def test_cpt_is_read_between_settings():
    shares, quality = curve(0.0, 0.5, 1.0), curve(0.6, 0.75, 0.8)  # PGR 0, .75, 1
    assert cpt(shares, quality, GAP, [0.0, 0.5, 0.8]) == pytest.approx([0.0, 1 / 3, 0.6])


def test_the_hull_leaves_out_what_is_no_better_and_what_a_mix_beats():
    cost, quality = curve(3.0, 1.0, 2.0, 4.0, 5.0), curve(0.75, 0.6, 0.65, 0.7, 0.8)
    assert hull(cost, quality).tolist() == [1, 0, 4]
    assert hull(curve(1.0, 1.0), curve(0.5, 0.6)).tolist() == [1]
    assert hull(curve(2.0), curve(0.5)).tolist() == [0]


def test_aiq_is_the_area_under_the_hull():
    # .6 at 1, .75 at 3, .8 at 5, over 4
    area = 2.0 * 0.675 + 2.0 * 0.775
    dips = curve(3.0, 4.0, 5.0), curve(0.75, 0.7, 0.8)
    assert aiq(*dips, GAP) == pytest.approx(area / 4.0)


def test_auc_is_the_area_under_the_curve_itself():
    dips = curve(3.0, 4.0, 5.0), curve(0.75, 0.7, 0.8)
    area = 2.0 * 0.675 + 1.0 * 0.725 + 1.0 * 0.75
    assert auc(*dips, GAP) == pytest.approx(area / 4.0)


def test_areas_count_nothing_beyond_the_range_and_are_level_after_the_last_setting():
    # leaves the range half way between 4 and 6, at .75
    assert auc(curve(4.0, 6.0), curve(0.7, 0.8), GAP) == pytest.approx((3 * 0.65 + 0.725) / 4.0)
    assert auc(curve(3.0), curve(0.8), GAP) == pytest.approx((2 * 0.7 + 2 * 0.8) / 4.0)
    # enters it half way between 0 and 2, at .65, which counts twice less the way from .6
    assert auc(curve(0.0, 2.0, 5.0), curve(0.6, 0.7, 0.8), GAP) == pytest.approx(
        (0.675 + 3 * 0.75) / 4.0
    )


def test_what_is_counted_twice_where_cost_falls_back_is_taken_off_again():
    there_and_back = auc(curve(3.0, 5.0, 3.0, 5.0), curve(0.7, 0.8, 0.7, 0.8), GAP)
    assert there_and_back == pytest.approx(auc(curve(3.0, 5.0), curve(0.7, 0.8), GAP))


def test_ibc_lift_compares_slopes():
    assert ibc_lift(Point(5.0, 0.8), GAP) == pytest.approx(0.0)
    assert ibc_lift(Point(3.0, 0.75), GAP) == pytest.approx(0.075 / 0.05 - 1.0)
    assert np.isnan(ibc_lift(Point(1.0, 0.7), GAP))


def test_savings_are_of_the_single_model():
    assert saved(2.0, 5.0) == pytest.approx(0.6)
    assert saved(6.0, 5.0) == pytest.approx(-0.2)


@pytest.mark.parametrize(("accepted", "cost"), [(0.5, 11.0), (0.7, 7.0), (0.9, 3.0)])
def test_a_cascade_costs_the_small_model_always_and_the_large_one_where_it_goes_up(accepted, cost):
    assert expected_cost(curve(1.0, 20.0), curve(1.0, 1.0 - accepted)) == pytest.approx(cost)


def test_without_a_gap_there_is_nothing_to_measure():
    flat = Gap(Point(1.0, 0.8), Point(1.0, 0.8))
    some = curve(1.0, 2.0)
    found = [
        apgr(some, some, flat),
        *cpt(some, some, flat, [0.5, 0.8]),
        aiq(some, some, flat),
        auc(some, some, flat),
        ibc_lift(Point(2.0, 0.9), flat),
    ]
    assert np.isnan(found).all()


def test_every_metric_says_what_it_is():
    assert {"APGR", "CPT50", "CPT80", "AIQ", "AUC", "IBC lift"} <= DEFINITIONS.keys()


numbers = st.floats(0.0, 1.0, width=32)


@given(arrays(np.float64, st.tuples(st.just(2), st.integers(1, 60)), elements=numbers))
def test_the_hull_never_falls_and_nothing_is_above_it(points):
    cost, quality = points
    on = hull(cost, quality)
    assert (np.diff(cost[on]) > 0.0).all()
    assert (np.diff(quality[on]) > 0.0).all()
    line = np.interp(cost, cost[on], quality[on])
    assert (quality <= line + 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_long_curve_has_the_hull_of_all_its_points(seed):
    rng = np.random.default_rng(seed)
    cost, quality = np.cumsum(rng.random(20_000)), np.cumsum(rng.normal(0.01, 1.0, 20_000))
    if seed % 2:
        order = rng.permutation(len(cost))
        cost, quality = cost[order], quality[order]
    on = hull(cost, quality)
    line = np.interp(cost, cost[on], quality[on])
    assert (quality <= line + 1e-6).all()
    assert (np.diff(quality[on]) / np.diff(cost[on]))[:-1] == pytest.approx(
        np.sort(np.diff(quality[on]) / np.diff(cost[on]))[::-1][:-1]
    )
