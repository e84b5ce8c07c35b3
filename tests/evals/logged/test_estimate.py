import math

import numpy as np
import pytest

from benchmarks.replay import made_up, truth
from evals.logged.estimate import FEW, Rows, doubly_robust, interval, ridge, student

TRUTH = truth()


def rows(values, chance, *, strata=None, clusters=None, features=None):
    n = len(values)
    return Rows(
        values=np.asarray(values, dtype=float),
        chance=np.asarray(chance, dtype=float),
        strata=np.array(strata if strata is not None else ["s"] * n),
        clusters=np.array(clusters if clusters is not None else [f"c{i}" for i in range(n)]),
        features=np.asarray(features if features is not None else np.zeros((n, 1)), dtype=float),
    )


def test_known_rows_alone_are_their_mean():
    found = doubly_robust(rows([0.0, 1.0, 1.0, 1.0], [1.0] * 4))
    assert found.mean == 0.75
    assert (found.open, found.drawn, found.unsupported) == (0, 0, 0.0)


def test_by_hand():
    # Ten open rows, half of them drawn with probability .5; the model says .2 of each.
    values = [1.0, 1.0, 0.0, 1.0, 0.0] + [math.nan] * 5
    made = rows(values, [0.5] * 5 + [0.0] * 5)
    found = doubly_robust(made, model=np.full(10, 0.2))
    assert found.mean == pytest.approx(0.6)
    # u = .6 for rows that were not drawn, .6 + 2 (r - rbar) for the others.
    assert found.influence == pytest.approx([1.4, 1.4, -0.6, 1.4, -0.6] + [0.6] * 5)
    assert found.effective == pytest.approx(5.0)
    sums = sum((u - 0.6) ** 2 for u in found.influence)
    half = student(4) * math.sqrt(sums * 10 / 9 / 100)
    assert (found.low, found.high) == pytest.approx((0.6 - half, 0.6 + half))


def test_the_mean_of_many_logs_is_the_truth():
    errors = [found.mean - truth for found, truth in map(estimated, range(120))]
    assert abs(np.mean(errors)) < 3 * np.std(errors) / math.sqrt(len(errors))


def estimated(seed, **options):
    made, mean = made_up(seed, **options)
    return doubly_robust(made), mean


@pytest.mark.parametrize("lost", [0.0, 0.4])
def test_intervals_hold_the_truth_about_as_often_as_they_say(lost):
    # 0.95 nominal: of 300 logs 285 in expectation, 272 or fewer in one of 2,000 such tests.
    held = 0
    for seed in range(300):
        found, _ = estimated(seed, lost=lost)
        held += found.low <= TRUTH <= found.high
    assert 272 <= held <= 298


def test_a_model_that_is_wrong_is_corrected():
    wrong, right, direct = [], [], []
    for seed in range(150):
        made, truth = made_up(seed)
        model = np.full(len(made.values), 0.9)
        wrong.append(doubly_robust(made, model=model).mean - truth)
        right.append(doubly_robust(made).mean - truth)
        direct.append(np.where(made.chance >= 1, made.values, model).mean() - truth)
    assert np.mean(direct) > 0.2
    assert abs(np.mean(wrong)) < 3 * np.std(wrong) / math.sqrt(150)
    assert np.std(right) < np.std(wrong)


def test_known_rows_alone_would_have_been_wrong():
    made, truth = made_up(1)
    assert np.nanmean(made.values[made.chance >= 1]) > truth + 0.1


def test_a_stratum_of_which_too_few_were_drawn_has_no_support():
    values = [1.0, 0.0] * 10 + [math.nan] * 20 + [1.0] * (FEW - 1)
    chance = [1.0] * 20 + [0.0] * 20 + [0.1] * (FEW - 1)
    found = doubly_robust(rows(values, chance))
    assert found.mean == 0.5
    assert found.unsupported == pytest.approx((20 + FEW - 1) / 44)
    assert np.isnan(found.influence[20:]).all()


def test_draws_of_one_session_are_one_sign_only():
    values = [math.nan] * 20 + [1.0] * 20
    chance = [0.0] * 20 + [0.5] * 20
    clusters = [f"c{i}" for i in range(20)] + ["one"] * 20
    assert doubly_robust(rows(values, chance, clusters=clusters)).unsupported == 1.0


def test_strata_are_corrected_each_by_its_own_draws():
    values = [1.0] * 10 + [math.nan] * 90 + [0.0] * 10 + [math.nan] * 10
    chance = [0.1] * 10 + [0.0] * 90 + [0.5] * 10 + [0.0] * 10
    found = doubly_robust(rows(values, chance, strata=["a"] * 100 + ["b"] * 20))
    assert found.mean == pytest.approx(100 / 120)


def test_rows_of_a_session_count_for_less_than_as_many_that_are_not():
    values = np.tile([0.0, 1.0], 50)
    alone = interval(values, np.array([f"c{i}" for i in range(100)]))
    together = interval(values, np.repeat([f"c{i}" for i in range(10)], 10))
    grouped = interval(np.sort(values), np.repeat([f"c{i}" for i in range(10)], 10))
    assert alone[0] == together[0] == grouped[0] == 0.5
    assert grouped[2] - grouped[1] > 2 * (alone[2] - alone[1])


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(4, 2.776), (9, 2.262), (30, 2.042), (1000, 1.962)]
)
def test_students_quantiles_are_those_of_the_table(degrees, quantile):
    assert student(degrees) == pytest.approx(quantile, rel=0.01)


def test_ridge_finds_a_line_and_holds_back_on_few_rows():
    x = np.linspace(0, 1, 200)[:, None]
    apply = ridge(x, 2 * x[:, 0] + 1, np.ones(200))
    assert apply(np.array([[0.5], [1.0]])) == pytest.approx([2.0, 3.0], abs=0.1)
    held = ridge(np.array([[-1.0], [1.0]]), np.array([0.0, 1.0]), np.ones(2))
    assert held(np.array([[1.0]]))[0] == pytest.approx(0.5 + 1 / 3)


def test_a_model_of_few_draws_does_not_run_away():
    found = [estimated(seed, share=0.01) for seed in range(60)]
    assert max(abs(each.mean - truth) for each, truth in found) < 0.5
