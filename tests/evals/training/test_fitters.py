import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge

from evals.training.fitters import (
    BlendFitter,
    ColumnsFitter,
    LinearFitter,
    NeighboursFitter,
    TopicsFitter,
    as_classes,
    folds,
)
from evals.training.trees import BoostedFitter, ForestFitter

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6))
CHANCES = 1 / (1 + np.exp(-2 * X[:, :2]))
Y = (RNG.random((300, 2)) < CHANCES).astype(float)
GROUPS = np.array([f"g{at // 2}" for at in range(300)])

BOOSTED = {
    "max_iter": 100,
    "max_leaf_nodes": 8,
    "max_depth": 3,
    "learning_rate": 0.05,
    "min_samples_leaf": 15,
    "l2_regularization": 20.0,
    "max_features": 0.3,
    "early_stopping": False,
    "random_state": 4,
}


def fitters():
    """Fresh ones: they keep what they chose."""
    return {
        "linear": LinearFitter(log_odds=True),
        "ridge": LinearFitter(log_odds=False),
        "neighbours": NeighboursFitter(),
        "topics": TopicsFitter(draws=2),
        "boosted": BoostedFitter(log_odds=True, seeds=[0]),
        "forest": ForestFitter(trees=20),
        "columns": ColumnsFitter(LinearFitter(log_odds=False), 0, 2),
        "blend": BlendFitter([LinearFitter(log_odds=False), ForestFitter(trees=10)]),
    }


@pytest.fixture(params=sorted(fitters()))
def fitter(request):
    return fitters()[request.param]


def test_a_fitted_head_tells_what_is_likely_from_what_is_not(fitter):
    told = fitter.fit(X, Y, GROUPS).predict(X)
    assert told.shape == (300, 2)
    for at in range(2):
        assert told[Y[:, at] > 0, at].mean() > told[Y[:, at] == 0, at].mean() + 0.03


def test_predict_is_what_the_head_says(fitter):
    fitter.fit(X, Y, GROUPS)
    np.testing.assert_allclose(fitter.predict(X), fitter.head_(X), atol=1e-6)


def test_the_same_rows_give_the_same_head(fitter):
    first = fitter.fit(X, Y, GROUPS).predict(X)
    np.testing.assert_array_equal(fitter.fit(X, Y, GROUPS).predict(X), first)


def test_an_output_that_is_not_known_everywhere_is_learned_from_where_it_is(fitter):
    holes = Y.copy()
    holes[::3, 1] = np.nan
    told = fitter.fit(X, holes, GROUPS).predict(X)
    assert np.isfinite(told).all()
    assert told[Y[:, 1] > 0, 1].mean() > told[Y[:, 1] == 0, 1].mean()


def test_a_logistic_head_is_scikit_learns():
    fitter = LinearFitter(log_odds=True, penalties=[0.02]).fit(X, Y, GROUPS)
    theirs = LogisticRegression(C=1 / (0.02 * 300), max_iter=1000).fit(X, Y[:, 0])
    np.testing.assert_allclose(fitter.predict(X)[:, 0], theirs.predict_proba(X)[:, 1], atol=1e-9)


def test_a_ridge_head_is_scikit_learns():
    fitter = LinearFitter(log_odds=False, penalties=[0.02]).fit(X, Y, GROUPS)
    theirs = Ridge(alpha=0.02 * 300).fit(X, Y)
    np.testing.assert_allclose(fitter.predict(X), theirs.predict(X), atol=1e-9)


@pytest.mark.parametrize("log_odds", [True, False])
def test_boosted_trees_are_scikit_learns(log_odds):
    fitter = BoostedFitter(log_odds=log_odds, seeds=[4]).fit(X, Y, GROUPS)
    if log_odds:
        theirs = HistGradientBoostingClassifier(**BOOSTED).fit(X, Y[:, 1]).predict_proba(X)[:, 1]
    else:
        theirs = HistGradientBoostingRegressor(**BOOSTED).fit(X, Y[:, 1]).predict(X)
    np.testing.assert_allclose(fitter.predict(X)[:, 1], theirs, atol=1e-6)


def test_boosted_trees_of_several_seeds_are_their_mean():
    each = [BoostedFitter(log_odds=False, seeds=[s]).fit(X, Y, GROUPS).predict(X) for s in (1, 2)]
    both = BoostedFitter(log_odds=False, seeds=[1, 2]).fit(X, Y, GROUPS).predict(X)
    np.testing.assert_allclose(both, np.mean(each, axis=0), atol=1e-6)


def test_a_forest_is_scikit_learns():
    fitter = ForestFitter(trees=20, seed=3).fit(X, Y, GROUPS)
    theirs = ExtraTreesRegressor(20, min_samples_leaf=6, max_features=0.3, random_state=3)
    np.testing.assert_allclose(fitter.predict(X), theirs.fit(X, Y).predict(X), atol=1e-5)


def test_labels_between_right_and_wrong_count_for_both():
    rows, classes, weights = as_classes(np.array([[1.0], [2.0]]), np.array([0.25, 1.0]))
    assert rows[:, 0].tolist() == [1.0, 2.0, 1.0, 2.0]
    assert classes.tolist() == [True, True, False, False]
    assert weights.tolist() == [0.25, 1.0, 0.75, 0.0]


def test_a_group_is_never_on_both_sides_of_a_fold():
    seen = []
    for train, test in folds(GROUPS, 5, 0):
        assert not set(GROUPS[train]) & set(GROUPS[test])
        seen.extend(test.tolist())
    assert sorted(seen) == list(range(300))


def test_the_number_of_neighbours_is_chosen_without_a_rows_own_group():
    # Each group says one thing and says it twice; between groups there is nothing to learn.
    x = np.repeat(RNG.normal(size=(100, 2)), 2, axis=0)
    y = np.repeat((RNG.random((100, 1)) < 0.5).astype(float), 2, axis=0)
    groups = np.repeat([f"g{at}" for at in range(100)], 2)
    head = NeighboursFitter(nearest=[1, 40]).fit(x, y, groups).head_
    assert head.nearest == 40


def test_a_network_tells_what_is_likely_and_repeats_itself():
    pytest.importorskip("torch")
    from evals.training.network import NetworkFitter

    first = NetworkFitter(log_odds=True, passes=60).fit(X, Y, GROUPS).predict(X)
    assert first[Y[:, 0] > 0, 0].mean() > first[Y[:, 0] == 0, 0].mean() + 0.1
    again = NetworkFitter(log_odds=True, passes=60).fit(X, Y, GROUPS).predict(X)
    np.testing.assert_array_equal(first, again)
