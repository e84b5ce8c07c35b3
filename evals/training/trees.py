"""Heads of trees: boosted and randomised, fitted with scikit-learn and kept as arrays.

scikit-learn has no public way to a boosted model's trees; a test compares both.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from classifiers.heads import Head, Trees
from evals.training.fitters import Groups, Matrix, as_classes, in_parts

Nodes = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], int]
"""Feature, threshold, left, right and value of the nodes of a tree; and how deep it is."""


class BoostedFitter:
    """Few, shallow, strongly regularised gradient-boosted trees; the mean over several seeds.

    Args:
        log_odds: fit probabilities by their likelihood; otherwise values by least squares.
        seeds: of the columns drawn for each split.
    """

    head_: Head

    def __init__(self, *, log_odds: bool, seeds: Sequence[int] = (0, 1, 2)) -> None:
        self._log_odds = log_odds
        self._seeds = seeds

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """Each output by itself, on the rows where it is known."""
        del groups
        models = [[self._model(x, labels, seed) for seed in self._seeds] for labels in y.T]
        share = 1.0 / len(self._seeds)
        base = [np.mean([float(np.ravel(m._baseline_prediction)[0]) for m in o]) for o in models]  # noqa: SLF001
        sets = [[nodes for m in some for nodes in _boosted(m, share)] for some in models]
        self.head_ = _trees(sets, np.array(base), log_odds=self._log_odds)
        return self

    def predict(self, x: Matrix) -> Matrix:
        """What the head says."""
        return in_parts(self.head_, x)

    def _model(
        self, x: Matrix, labels: Matrix, seed: int
    ) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
        known = ~np.isnan(labels)
        rows: Matrix = x[known]
        values: NDArray[Any] = labels[known]
        weights: Matrix | None = None
        kind = HistGradientBoostingClassifier if self._log_odds else HistGradientBoostingRegressor
        if self._log_odds:
            rows, values, weights = as_classes(rows, values)
        model = kind(
            max_iter=100,
            max_leaf_nodes=8,
            max_depth=3,
            learning_rate=0.05,
            min_samples_leaf=min(60, max(5, len(rows) // 20)),
            l2_regularization=20.0,
            max_features=0.3,
            early_stopping=False,
            random_state=seed,
        )
        return model.fit(rows, values, sample_weight=weights)


class ForestFitter:
    """Extremely randomised trees of large leaves, all outputs at once; least squares.

    P. Geurts et al., Extremely randomized trees (2006).
    """

    head_: Head

    def __init__(self, *, trees: int = 100, seed: int = 0) -> None:
        self._trees = trees
        self._seed = seed

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """All outputs together where all are known on every row, else each by itself."""
        del groups
        if not np.isnan(y).any():
            sets = [self._set(x, y)]
        else:
            known = [~np.isnan(labels) for labels in y.T]
            sets = [self._set(x[k], y[k, at, None]) for at, k in enumerate(known)]
        self.head_ = _trees(sets, np.zeros(y.shape[1]), log_odds=False)
        return self

    def predict(self, x: Matrix) -> Matrix:
        """What the head says."""
        return in_parts(self.head_, x)

    def _set(self, x: Matrix, y: Matrix) -> list[Nodes]:
        model = ExtraTreesRegressor(
            self._trees,
            min_samples_leaf=min(20, max(5, len(x) // 50)),
            max_features=0.3,
            random_state=self._seed,
        )
        model.fit(x, y if y.shape[1] > 1 else y[:, 0])
        return [_randomised(each.tree_, len(model.estimators_)) for each in model.estimators_]


def _boosted(model: Any, share: float) -> Iterator[Nodes]:
    for (tree,) in model._predictors:  # noqa: SLF001 - see above
        found = tree.nodes
        leaf = found["is_leaf"].astype(bool)
        own = np.arange(len(found))
        yield (
            np.where(leaf, 0, found["feature_idx"]),
            np.where(leaf, np.inf, found["num_threshold"]),
            np.where(leaf, own, found["left"]),
            np.where(leaf, own, found["right"]),
            np.where(leaf, share * found["value"], 0.0)[:, None],
            int(found["depth"].max()),
        )


def _randomised(tree: Any, count: int) -> Nodes:
    leaf = tree.children_left < 0
    own = np.arange(tree.node_count)
    return (
        np.where(leaf, 0, tree.feature),
        np.where(leaf, np.inf, tree.threshold),
        np.where(leaf, own, tree.children_left),
        np.where(leaf, own, tree.children_right),
        np.where(leaf[:, None], tree.value[:, :, 0] / count, 0.0),
        int(tree.max_depth),
    )


def _trees(sets: Sequence[Sequence[Nodes]], base: Matrix, *, log_odds: bool) -> Trees:
    """Trees of each set in one array of nodes."""
    starts: list[list[int]] = []
    size = 0
    for some in sets:
        starts.append([])
        for nodes in some:
            starts[-1].append(size)
            size += len(nodes[0])
    every = [nodes for some in sets for nodes in some]
    offsets = [start for some in starts for start in some]
    width = max(map(len, starts))
    return Trees(
        feature=np.concatenate([nodes[0] for nodes in every]).astype(np.int32),
        threshold=np.concatenate([nodes[1] for nodes in every]),
        left=_moved([nodes[2] for nodes in every], offsets),
        right=_moved([nodes[3] for nodes in every], offsets),
        value=np.concatenate([nodes[4] for nodes in every]).astype(np.float32),
        roots=np.array([r + [-1] * (width - len(r)) for r in starts], dtype=np.int32),
        base=base,
        depth=max(nodes[5] for nodes in every),
        log_odds=log_odds,
    )


def _moved(children: Sequence[NDArray[Any]], offsets: Sequence[int]) -> NDArray[Any]:
    pairs = zip(children, offsets, strict=True)
    return np.concatenate([nodes + offset for nodes, offset in pairs]).astype(np.int32)
