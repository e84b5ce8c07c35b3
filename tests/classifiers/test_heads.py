import numpy as np
import pytest

from cascade.errors import ConfigError
from classifiers.heads import (
    Blend,
    Columns,
    Linear,
    Neighbours,
    Network,
    Topics,
    Trees,
    head_of,
    parts_of,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 3))


def linear(*, log_odds=True):
    return Linear(RNG.normal(size=(3, 2)), np.array([0.1, -0.2]), log_odds)


def stump():
    """Two trees of one output: x0 <= 0 adds 1 or 2, x1 <= 0.5 adds 10 or 20."""
    return Trees(
        feature=np.array([0, 0, 0, 1, 0, 0]),
        threshold=np.array([0.0, np.inf, np.inf, 0.5, np.inf, np.inf]),
        left=np.array([1, 1, 2, 4, 4, 5]),
        right=np.array([2, 1, 2, 5, 4, 5]),
        value=np.array([[0.0], [1.0], [2.0], [0.0], [10.0], [20.0]]),
        roots=np.array([[0, 3]]),
        base=np.array([0.5]),
        depth=1,
        log_odds=False,
    )


HEADS = {
    "linear": linear(),
    "neighbours": Neighbours(X.astype(np.float32), RNG.random((7, 2)), 3),
    "trees": stump(),
    "topics": Topics(RNG.normal(size=(2, 4, 3)).astype(np.float32), RNG.random((2, 4, 2)), 5.0),
    "columns": Columns([Linear(RNG.normal(size=(2, 1)), np.zeros(1), log_odds=True)], 1, 3),
    "network": Network(
        [RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))],
        [np.zeros(4), np.zeros(2)],
        log_odds=True,
    ),
    "blend": Blend([linear(), linear(log_odds=False)], np.array([0.25, 0.75])),
}


@pytest.mark.parametrize("name", sorted(HEADS))
def test_a_head_comes_back_from_its_parts(name):
    head = HEADS[name]
    settings, arrays = parts_of(head)
    assert settings["kind"] == name
    np.testing.assert_array_equal(head_of(settings, arrays)(X), head(X))


@pytest.mark.parametrize("name", sorted(HEADS))
def test_a_head_says_the_same_of_a_row_alone_and_among_others(name):
    head = HEADS[name]
    alone = np.vstack([head(row[None, :]) for row in X])
    np.testing.assert_allclose(alone, head(X), atol=1e-6)


@pytest.mark.parametrize("name", sorted(HEADS))
def test_a_head_that_lacks_an_array_is_refused_by_its_name(name):
    settings, arrays = parts_of(HEADS[name])
    missing = min(arrays)
    del arrays[missing]
    with pytest.raises(ConfigError, match=missing.replace(".", r"\.")):
        head_of(settings, arrays)


def test_an_unknown_kind_of_head_is_refused():
    with pytest.raises(ConfigError, match="oracle"):
        head_of({"kind": "oracle"}, {})


def test_trees_add_the_leaves_that_a_row_falls_into():
    rows = np.array([[-1.0, 0.0, 0.0], [0.0, 0.6, 0.0], [1.0, 0.5, 0.0]])
    np.testing.assert_array_equal(stump()(rows)[:, 0], [11.5, 21.5, 12.5])


def test_neighbours_take_the_mean_of_the_nearest_where_it_is_known():
    seen = np.array([[0.0], [1.0], [2.0], [10.0]], dtype=np.float32)
    values = np.array([[1.0, np.nan], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    head = Neighbours(seen, values, 2)
    np.testing.assert_array_equal(head(np.array([[0.1]])), [[0.5, 0.5]])


def test_fewer_rows_than_neighbours_are_all_of_them():
    head = Neighbours(np.array([[0.0], [5.0]], dtype=np.float32), np.array([[1.0], [0.0]]), 50)
    np.testing.assert_array_equal(head(np.array([[0.0]])), [[0.5]])


def test_log_odds_of_any_size_become_probabilities():
    head = Linear(np.array([[1.0]]), np.array([0.0]), log_odds=True)
    told = head(np.array([[-1e4], [0.0], [1e4]]))[:, 0]
    np.testing.assert_allclose(told, [0.0, 0.5, 1.0], atol=1e-12)
