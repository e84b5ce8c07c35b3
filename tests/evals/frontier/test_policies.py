"""What is played, by hand and against policies that are decided row by row."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.frontier.known import FrontierError
from evals.frontier.metrics import hull
from evals.frontier.policies import NAMES, replayed
from evals.training.measure import apgr as ordered_apgr
from tests.evals.frontier.worlds import world
from tests.evals.tables.tables import table

QUALITY = [[0, 1], [1, 1], [0, 0], [1, 0]]


def four(**more):
    """Four prompts, each of which is also among the rows to fit on."""
    twice = {
        name: value if isinstance(value, float) else [*value, *value]
        for name, value in more.items()
    }
    both = table(
        QUALITY * 2,
        cost=[[1.0, 20.0]],
        splits=["fit"] * 4 + ["test"] * 4,
        ids=[str(at) for at in range(8)],
        **twice,
    )
    return replayed(both), both.of("test")


def told(curve):
    return list(zip(curve.knob.tolist(), curve.cost.tolist(), curve.quality.tolist(), strict=True))


def test_one_tier_for_all_has_one_setting():
    played, rows = four()
    assert told(played["always:large"].curve(rows)) == [(1.0, 20.0, 0.5)]
    assert played["always:small"].decisions(rows, 0.0).served.tolist() == [0, 0, 0, 0]


def test_the_random_mix_is_a_line_between_two_models():
    played, rows = four()
    assert told(played["random"].curve(rows)) == [(0.0, 1.0, 0.5), (1.0, 20.0, 0.5)]


def test_a_drawn_mix_has_about_its_share_and_is_always_the_same():
    some = world(4_000)
    mix = replayed(some)["random"]
    served = mix.decisions(some, 0.3).served
    assert served.mean() == pytest.approx(0.3, abs=0.03)
    assert (mix.decisions(some.take(np.arange(100)), 0.3).served == served[:100]).all()
    assert (served <= mix.decisions(some, 0.6).served).all()


def test_the_rows_with_the_highest_value_go_up_and_equal_ones_together():
    played, rows = four(predicted=[[0.2, 0.9], [0.5, 0.6], [0.5, 0.6], [0.9, 0.9]])
    curve = played["uplift"].curve(rows)
    gains = [np.inf, 0.7, 0.1, 0.0]
    np.testing.assert_allclose(curve.knob, gains)
    np.testing.assert_allclose(curve.cost, [1.0, 5.75, 15.25, 20.0])
    np.testing.assert_allclose(curve.quality, [0.5, 0.75, 0.75, 0.5])
    np.testing.assert_allclose(curve.shares[:, 1], [0.0, 0.25, 0.75, 1.0])


def test_doubt_looks_at_the_cheapest_only():
    played, rows = four(predicted=[[0.2, 0.2], [0.5, 0.9], [0.4, 0.9], [0.9, 0.9]])
    np.testing.assert_allclose(played["doubt"].curve(rows).knob[1:], [0.8, 0.6, 0.5, 0.1])


def test_length_goes_up_on_the_side_that_gained_on_the_fit_rows():
    played, rows = four(prompts=["xxxx", "xx", "xx", "x"])
    assert played["length"].decisions(rows, 3.0).served.tolist() == [1, 0, 0, 0]
    played, rows = four(prompts=["x", "xx", "xx", "xxxx"])
    assert played["length"].decisions(rows, -1.0).served.tolist() == [1, 0, 0, 0]


def test_kinds_are_looked_up_and_strangers_are_as_all_others():
    played, rows = four(kinds=["a", "b", "a", "b"])
    known = played.known
    np.testing.assert_allclose(known.by_kind(rows)[:2], [[0.0, 0.5], [1.0, 0.5]])
    stranger = replace(rows, kinds=np.array(["a", "b", "c", "c"]))
    np.testing.assert_allclose(known.by_kind(stranger)[2], [0.5, 0.5])
    assert played["kind"].decisions(rows, 0.01).served.tolist() == [1, 0, 1, 0]


def test_a_cascade_pays_for_each_call_and_each_judgement():
    played, rows = four(judged=[[0.2, np.nan], [0.9, np.nan], [0.2, np.nan], [0.6, np.nan]],
                        judge_cost=0.5)  # fmt: skip
    curve = played["cascade"].curve(rows)
    np.testing.assert_allclose(curve.knob, [0.2, 0.6, 0.9, np.inf])
    np.testing.assert_allclose(curve.cost, [1.5, 11.5, 16.5, 21.5])
    np.testing.assert_allclose(curve.quality, [0.5, 0.75, 0.5, 0.5])
    at = played["cascade"].decisions(rows, 0.6)
    assert at.served.tolist() == [1, 0, 1, 0]
    assert at.cost.tolist() == [21.5, 1.5, 21.5, 1.5]


def test_an_answer_that_its_judge_cannot_tell_of_goes_up_at_any_setting():
    played, rows = four(judged=[[np.nan, np.nan], [0.9, np.nan], [0.2, np.nan], [0.6, np.nan]])
    assert played["cascade"].decisions(rows, 0.0).served.tolist() == [1, 0, 0, 0]


def test_a_cascade_by_gain_goes_up_where_the_strong_one_is_likelier_to_be_right():
    played, rows = four(
        judged=[[0.2, np.nan], [0.9, np.nan], [0.1, np.nan], [np.nan, np.nan]],
        predicted=[[0.5, 0.8], [0.5, 0.8], [0.5, 0.2], [0.5, 0.5]],
    )
    assert played["cascade-by-gain"].decisions(rows, 0.3).served.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("judged", [(0,), (0, 1), (1,)])
def test_a_cascade_of_three_tiers_stops_at_the_first_score_that_reaches(judged):
    some = world(200, 3, 2, judged=judged, grid=8, unsure=0.1)
    cascade = replayed(some)["cascade"]
    for knob in (0.0, 0.25, 0.5, 0.6, 1.0, np.inf):
        served, cost, _ = cascade.decisions(some, knob)
        for row in range(len(some)):
            spent = 0.0
            for tier in (*judged, 2):
                spent += some.cost[row, tier]
                if tier == 2:
                    break
                spent += some.judge_cost[row, tier]
                if some.judged[row, tier] >= knob:
                    break
            assert served[row] == tier
            assert cost[row] == pytest.approx(spent)


@pytest.mark.parametrize("tiers", [2, 3, 5])
def test_a_priced_policy_takes_the_best_value_less_price_at_every_setting(tiers):
    some = world(150, tiers, 4)
    found = replayed(some)
    for name, value, price in (
        ("classifier", some.predicted, found.known.quotes(some)),
        ("oracle", some.quality, some.cost),
    ):
        policy = found[name]
        curve = policy.curve(some)
        for knob in curve.knob[:: max(1, len(curve) // 40)]:
            served = policy.decisions(some, knob).served
            worth = value - knob * price
            assert worth[np.arange(len(some)), served] == pytest.approx(worth.max(axis=1))


@pytest.mark.parametrize("name", sorted({*NAMES} - {"random"}))
@pytest.mark.parametrize("tiers", [2, 3])
def test_a_curve_is_the_mean_of_the_decisions_at_each_of_its_settings(name, tiers):
    some = world(60, tiers, 5, judged=range(tiers - 1), grid=20)
    policy = replayed(some)[name]
    curve = policy.curve(some)
    assert (np.diff(curve.knob) != 0.0).all()
    for place in range(0, len(curve), 3):
        served, cost, quality = policy.decisions(some, curve.knob[place])
        assert cost.mean() == pytest.approx(curve.cost[place])
        assert quality.mean() == pytest.approx(curve.quality[place])
        shares = np.bincount(served, minlength=tiers) / len(some)
        np.testing.assert_allclose(shares, curve.shares[place])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    tiers=st.integers(2, 4),
    graded=st.booleans(),
    unsure=st.sampled_from([0.0, 0.2]),
)
def test_no_policy_beats_the_oracle(seed, tiers, graded, unsure):
    some = world(40, tiers, seed, judged=range(tiers - 1), graded=graded, unsure=unsure)
    found = replayed(some)
    best = found["oracle"].curve(some)
    on = hull(best.cost, best.quality)
    for name, policy in found.policies.items():
        curve = policy.curve(some)
        bound = np.interp(curve.cost, best.cost[on], best.quality[on], left=-np.inf)
        assert (curve.quality <= bound + 1e-9).all(), name


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_order_of_the_file_decides_nothing(seed):
    some = world(50, 2, seed, grid=5)
    order = np.random.default_rng(seed).permutation(50)
    one, other = (replayed(each).policies for each in (some, some.take(order)))
    for name in NAMES:
        left, right = one[name].curve(some), other[name].curve(some.take(order))
        np.testing.assert_allclose(left.knob, right.knob, atol=1e-9)
        np.testing.assert_allclose(left.cost, right.cost)
        np.testing.assert_allclose(left.quality, right.quality)


def test_an_order_has_the_area_that_it_has_elsewhere():
    from evals.frontier.metrics import Gap, apgr
    from evals.metrics import Point

    some = world(500, 2, 6, grid=10)
    weak, strong = some.quality.T
    curve = replayed(some)["uplift"].curve(some)
    gap = Gap(Point(0.0, weak.mean()), Point(1.0, strong.mean()))
    value = some.predicted[:, 1] - some.predicted[:, 0]
    assert apgr(curve.shares[:, 1], curve.quality, gap) == pytest.approx(
        ordered_apgr(value, weak, strong)
    )


def test_what_a_table_lacks_is_said_by_name():
    found, _ = four()
    assert "no row has a prediction" in found.missing["classifier"]
    with pytest.raises(FrontierError, match="policy cascade: no answer below the strong tier"):
        found["cascade"]
    with pytest.raises(FrontierError, match="there is no policy 'best'"):
        found["best"]


def test_a_prediction_that_is_missing_somewhere_is_counted():
    some = world(30)
    some.predicted[3, 1] = np.nan
    assert replayed(some).missing["uplift"] == "a prediction is missing in 1 of 30 rows"
