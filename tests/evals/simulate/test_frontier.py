"""Frontiers, and what is read off them, by hand."""

import pytest

from evals.simulate.frontier import Point, against, averaged, cost_at, hull, qualities


def point(quality, dollars, **more):
    return Point(
        **{"knob": 0.0, "switches": 0.0, "premium": 0.0, **more}, quality=quality, dollars=dollars
    )


def places(points):
    return [(p.quality, p.dollars) for p in points]


LINE = [point(0.4, 1.0), point(0.6, 2.0), point(0.8, 4.0)]


def test_the_hull_leaves_out_what_is_dearer_and_no_better():
    dominated = [point(0.5, 3.0), point(0.4, 1.5), point(0.8, 4.5)]
    assert places(hull([*dominated, *LINE])) == places(LINE)


def test_the_hull_leaves_out_what_two_settings_in_turn_do_cheaper():
    assert places(hull([*LINE, point(0.7, 3.5)])) == places(LINE)
    assert places(hull([*LINE, point(0.7, 2.9)]))[2] == (0.7, 2.9)


def test_one_setting_is_a_hull_and_so_are_several_alike():
    assert places(hull([LINE[0], LINE[0]])) == [(0.4, 1.0)]


def test_cost_is_read_between_two_settings():
    assert cost_at(LINE, 0.6) == 2.0
    assert cost_at(LINE, 0.7) == pytest.approx(3.0)


def test_below_the_least_setting_it_is_what_that_one_costs_and_above_the_best_there_is_none():
    assert cost_at(LINE, 0.2) == 1.0
    assert cost_at(LINE, 0.81) is None


def test_policies_are_compared_between_the_cheapest_tier_and_the_dearest():
    assert qualities(LINE) == pytest.approx([0.48, 0.54, 0.6, 0.66, 0.72])


HULLS = {
    "ours": LINE,
    "dear": [point(0.4, 2.0), point(0.8, 6.0)],
    "cheap at first": [point(0.3, 0.5), point(0.6, 2.5)],
}


def test_the_best_rival_is_chosen_at_each_quality():
    rivals = ("dear", "cheap at first")
    low, high = (against(HULLS, "ours", rivals, quality) for quality in (0.4, 0.7))
    assert (low.rival, high.rival) == ("cheap at first", "dear")
    assert low.ratio == pytest.approx(1.0 / (0.5 + 2.0 / 3))
    assert high.ratio == pytest.approx(3.0 / 5.0)
    assert low.swept
    assert high.swept


@pytest.mark.parametrize(
    ("quality", "ratio", "rival", "swept"),
    [
        (0.35, 1.0 / (0.5 + 2.0 / 6), "cheap at first", False),  # ours reaches it with more
        (0.85, None, "", False),
    ],
)
def test_what_was_not_swept_is_marked(quality, ratio, rival, swept):
    found = against(HULLS, "ours", ("cheap at first",), quality)
    assert found.ratio == (None if ratio is None else pytest.approx(ratio))
    assert (found.rival, found.swept) == (rival, swept)


def test_a_quality_that_only_a_rival_reaches_has_no_ratio():
    hulls = {"ours": LINE, "better": [point(0.4, 1.0), point(0.9, 9.0)]}
    found = against(hulls, "ours", ("better",), 0.85)
    assert (found.ratio, found.rival, found.swept) == (None, "better", False)


def test_runs_are_averaged_setting_by_setting_and_shares_of_dollars_by_dollars():
    runs = [
        {"ours": [point(0.4, 1.0, knob=2.0, switches=0.1, premium=0.5)]},
        {"ours": [point(0.6, 3.0, knob=2.0, switches=0.3, premium=0.1)]},
    ]
    found = averaged(runs)["ours"][0]
    assert (found.knob, found.quality, found.dollars) == (2.0, 0.5, 2.0)
    assert found.switches == pytest.approx(0.2)
    assert found.premium == pytest.approx((0.5 + 0.3) / 4)
