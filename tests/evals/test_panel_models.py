import numpy as np
import pytest

from evals.panel_choice import choose, clearly, losses
from evals.panel_models import Boosted, Rate, Table, log_odds_of
from judges.fitted import Feature


def table(values, groups=None):
    values = np.asarray(values, dtype=float).reshape(len(values), -1)
    features = [
        Feature(name=f"j.{at}", mean=0.0, scale=1.0, optional=False)
        for at in range(values.shape[1])
    ]
    names = range(len(values)) if groups is None else groups
    return Table(features, values, values, np.array([str(name) for name in names]))


@pytest.mark.parametrize("kind", ["logistic", "blend"])
def test_features_that_tell_nothing_leave_the_bare_rate(kind):
    rng = np.random.default_rng(3)
    labels = rng.random(150) < 0.3
    chosen = choose(table(rng.normal(size=(150, 12))), labels, kind, 0)
    assert isinstance(chosen.model, Rate)


def test_the_kind_that_fits_the_rows_is_taken():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(200, 2))
    straight = values[:, 0] + rng.normal(0, 0.3, 200) > 0
    crossed = values[:, 0] * values[:, 1] + rng.normal(0, 0.1, 200) > 0
    assert "weights" in _part(values, straight, "auto")
    assert "trees" in _part(values, crossed, "blend")
    assert _part(values, crossed, "logistic") == {"intercept"}


def _part(values, labels, kind):
    chosen = choose(table(values), labels, kind, 0)
    chosen.fit(table(values), labels)
    return {name for name, value in chosen.part(values.shape[1]).items() if value}


def test_only_the_columns_that_help_are_looked_at():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(150, 40))
    labels = values[:, 3] + rng.normal(0, 1, 150) > 0
    some = table(values)
    chosen = choose(some, labels, "logistic", 0, [range(40), [2, 3]])
    chosen.fit(some, labels)
    weights = chosen.part(40)["weights"]
    assert [at for at, weight in enumerate(weights) if weight] == [2, 3]


def test_a_smaller_boosted_model_is_the_beginning_of_a_larger_one():
    rng = np.random.default_rng(5)
    values = table(rng.normal(size=(100, 3)))
    labels = values.raw[:, 0] + rng.normal(size=100) > 0
    small, large = Boosted(20), Boosted(40)
    for model in (small, large):
        model.fit(values, labels)
    first, whole = large.stages(values, (20, 40))
    assert first == pytest.approx(small.log_odds(values))
    assert whole == pytest.approx(large.log_odds(values))


def test_log_loss_is_that_of_the_probabilities():
    found = losses(np.array([0.0, 2.0]), np.array([True, False]))
    assert found == pytest.approx([np.log(2), -np.log(1 - 1 / (1 + np.exp(-2)))])
    assert losses(np.array([1e5, -1e5]), np.array([True, True])) == pytest.approx([0.0, 1e5])


def test_a_gain_of_alike_rows_counts_once():
    gain = np.array([1.0] * 30 + [-0.5] * 30)
    assert clearly(gain, np.array([str(i) for i in range(60)]))
    assert not clearly(gain, np.array(["a"] * 30 + ["b"] * 30))


def test_a_rate_is_never_nought_nor_one():
    assert np.isfinite(log_odds_of(np.array([True] * 5)))
    assert log_odds_of(np.array([True, False])) == 0.0
