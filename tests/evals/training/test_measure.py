from dataclasses import replace

import numpy as np
import pytest

from evals.training.measure import (
    apgr,
    by_kind,
    calibration_error,
    kind_gains,
    measured,
    spread,
)
from tests.learning import rows

WEAK = np.array([1.0, 0.0, 0.0, 1.0])
STRONG = np.array([1.0, 1.0, 0.0, 1.0])


def test_the_one_that_gains_first_is_the_best_order():
    # After a quarter the whole gap is won: (0 + 1)/2 for the first quarter, then 1.
    assert apgr(STRONG - WEAK, WEAK, STRONG) == pytest.approx(0.875)
    assert apgr(WEAK - STRONG, WEAK, STRONG) == pytest.approx(0.125)


def test_an_order_that_says_nothing_is_random():
    assert apgr(np.zeros(4), WEAK, STRONG) == pytest.approx(0.5)


def test_the_order_of_the_file_decides_nothing():
    rng = np.random.default_rng(0)
    value = rng.integers(0, 3, 50).astype(float)
    weak, strong = rng.random((2, 50)).round()
    strong = np.maximum(weak, strong)
    order = rng.permutation(50)
    assert apgr(value[order], weak[order], strong[order]) == pytest.approx(
        apgr(value, weak, strong)
    )


def test_without_a_gap_there_is_nothing_to_win_back():
    assert np.isnan(apgr(np.arange(4.0), WEAK, WEAK))


def test_the_gap_between_what_is_said_and_what_is_so():
    right = np.array([1.0] * 7 + [0.0] * 3)
    assert calibration_error(np.full(10, 0.7), right) == pytest.approx(0.0)
    assert calibration_error(np.full(10, 0.9), right) == pytest.approx(0.2)
    assert calibration_error(np.array([0.1, 0.9]), np.array([0.0, 1.0])) == pytest.approx(0.1)


def test_an_interval_holds_the_value_and_is_wider_for_fewer_groups():
    values = np.random.default_rng(0).random(200)
    each = np.array([f"g{at}" for at in range(200)])
    sharp = spread(lambda at: values[at].mean(), each)
    assert sharp.low < values.mean() < sharp.high
    tens = np.sort(values)  # groups of like values
    wide = spread(lambda at: tens[at].mean(), np.array([f"g{at // 40}" for at in range(200)]))
    assert wide.high - wide.low > 2 * (sharp.high - sharp.low)


def test_a_table_of_kinds_knows_each_kinds_mean_gain_and_the_overall_one_for_strangers():
    some = replace(rows(80), kinds=np.array(["easy", "hard"] * 40))
    test = replace(rows(2), kinds=np.array(["hard", "new"]))
    gain = some.labels[:, 1] - some.labels[:, 0]
    found = kind_gains(some, test)
    np.testing.assert_allclose(found, [gain[1::2].mean(), gain.mean()])
    assert kind_gains(rows(80), test) is None


def test_everything_that_is_told_of_a_model():
    some = replace(rows(200), kinds=np.array(["easy", "hard"] * 100))
    found = measured(some, some.labels, np.zeros(200, dtype=bool), kind_gains(some, some))
    assert found["apgr"]["model"] == found["apgr"]["oracle"]
    assert found["apgr"]["random"] == 0.5
    assert found["auc_weak_wrong"][0] == 1.0
    assert found["tiers"]["small"]["brier"] == 0.0
    assert by_kind(some, some.labels)["hard"]["n"] == 100


def test_labels_of_one_tier_at_a_time_have_no_curve():
    some = rows(100)
    labels = some.labels.copy()
    labels[::2, 0], labels[1::2, 1] = np.nan, np.nan
    found = measured(replace(some, labels=labels), some.labels, np.zeros(100, dtype=bool))
    assert "apgr" not in found
    assert found["tiers"]["small"]["n"] == 50


def test_where_no_draw_has_a_value_there_is_no_interval():
    same = replace(rows(60), labels=np.column_stack([np.arange(60) % 2] * 2).astype(float))
    found = measured(same, np.full((60, 2), 0.5), np.zeros(60, dtype=bool))
    assert found["apgr"]["model"] == [None, None, None]
