"""Walking a sweep under weights, against drawing the rows themselves."""

import numpy as np
import pytest

from evals.frontier.policies import replayed
from evals.frontier.resampling import Clusters, Tracked, intervals, resampled
from tests.evals.frontier.worlds import world


@pytest.mark.parametrize("name", ["uplift", "cascade", "utility", "kind"])
def test_a_weighted_walk_is_the_curve_of_the_rows_that_were_drawn(name):
    some = world(80, 2, 1, grid=10)
    policy = replayed(some)[name]
    clusters = Clusters(some)
    weights = clusters.drawn(3, 7)
    times = weights[clusters.member].astype(int)
    drawn = some.take(np.repeat(np.arange(80), times))
    found = Tracked(policy.sweep(some), clusters, 1).totals(weights)
    sweep = policy.sweep(some)
    for place in range(0, len(sweep.knob), 5):
        _, cost, quality = policy.decisions(drawn, sweep.knob[place])
        assert found.cost[place] == pytest.approx(cost.mean())
        assert found.quality[place] == pytest.approx(quality.mean())


def test_groups_are_drawn_as_often_as_there_are_groups_and_the_same_by_seed():
    clusters = Clusters(world(100))
    drawn = clusters.drawn(0, 5)
    assert drawn.sum() == clusters.count == 50
    assert (drawn == clusters.drawn(0, 5)).all()
    assert (drawn != clusters.drawn(0, 6)).any()
    assert (drawn != clusters.drawn(1, 5)).any()


def test_intervals_do_not_hang_on_how_the_work_was_shared():
    clusters = Clusters(world(100))
    size = clusters.sizes * np.arange(clusters.count)

    def statistics(weights):
        return [clusters.total(size, weights)]

    found = resampled(clusters, statistics, resamples=30, seed=0)[:, 0]
    assert found.tolist() == [statistics(clusters.drawn(0, at))[0] for at in range(30)]


def test_an_interval_leaves_out_resamples_without_a_value():
    drawn = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
    one, none = intervals(drawn)
    assert one == pytest.approx((1.05, 2.95))
    assert np.isnan(none).all()
