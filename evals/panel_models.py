"""The models that a panel's head may be: a logistic one, boosted trees, the mean of both, a rate.

Each says of rows what a head would, and what it adds to the artifact that is applied without
scikit-learn.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from judges.fitted import LEAF, Feature, Tree

Matrix = NDArray[np.float64]
Labels = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as a matrix.

    Attributes:
        features: the columns, described.
        raw: rows by values, the means where optional ones are missing, then which were missing.
        standard: the same per standard deviation.
        groups: of the rows.
    """

    features: Sequence[Feature]
    raw: Matrix
    standard: Matrix
    groups: NDArray[np.str_]

    def only(self, rows: NDArray[Any]) -> "Table":
        """Some of the rows, by their numbers or by a mask."""
        return Table(self.features, self.raw[rows], self.standard[rows], self.groups[rows])

    def narrowed(self, columns: Sequence[int]) -> "Table":
        """Only some of the values."""
        raw, standard = self.raw[:, columns], self.standard[:, columns]
        return Table(self.features, raw, standard, self.groups)


class Model(Protocol):
    """Log-odds from a table."""

    def fit(self, table: Table, labels: Labels) -> None:
        """Learn from rows of both classes."""

    def log_odds(self, table: Table) -> Matrix:
        """One a row."""
        ...

    def part(self) -> dict[str, Any]:
        """What it adds to a head."""
        ...


class Rate:
    """The same for every row."""

    def __init__(self) -> None:
        self._log_odds = 0.0

    def fit(self, table: Table, labels: Labels) -> None:
        """Take the smoothed rate, which is neither 0 nor 1."""
        del table
        self._log_odds = log_odds_of(labels)

    def log_odds(self, table: Table) -> Matrix:
        """One a row."""
        return np.full(len(table.groups), self._log_odds)

    def part(self) -> dict[str, Any]:
        """The rate, as the intercept."""
        return {"intercept": short(self._log_odds)}


class Logistic:
    """L2-penalised logistic regression on standardised values."""

    def __init__(self, c: float) -> None:
        self._model = LogisticRegression(C=c, max_iter=5000)

    def fit(self, table: Table, labels: Labels) -> None:
        """Learn from rows of both classes."""
        self._model.fit(table.standard, labels)

    def log_odds(self, table: Table) -> Matrix:
        """One a row."""
        return np.asarray(self._model.decision_function(table.standard))

    def part(self) -> dict[str, Any]:
        """Weights and intercept."""
        return {
            "weights": [short(weight) for weight in self._model.coef_[0]],
            "intercept": short(self._model.intercept_[0]),
        }


class Boosted:
    """Gradient-boosted trees of depth 2: interactions of two features, and no more."""

    def __init__(self, rounds: int, seed: int = 0) -> None:
        self._model = GradientBoostingClassifier(
            n_estimators=rounds,
            learning_rate=0.05,
            max_depth=2,
            min_samples_leaf=10,
            subsample=0.6,
            max_features=0.5,
            random_state=seed,
        )

    def fit(self, table: Table, labels: Labels) -> None:
        """Learn from rows of both classes."""
        self._model.fit(table.raw, labels)

    def log_odds(self, table: Table) -> Matrix:
        """One a row."""
        return np.asarray(self._model.decision_function(table.raw))

    def stages(self, table: Table, rounds: Sequence[int]) -> list[Matrix]:
        """What `log_odds` would be after fewer rounds."""
        after = [np.ravel(each) for each in self._model.staged_decision_function(table.raw)]
        return [after[count - 1] for count in rounds]

    def part(self) -> dict[str, Any]:
        """Trees and what they start from."""
        rate = self._model.learning_rate
        share = float(self._model.init_.class_prior_[1])
        trees = [_tree(each.tree_, rate) for (each,) in self._model.estimators_]
        return {"trees": trees, "base": short(math.log(share / (1 - share)))}


class Blend:
    """The mean of two models' log-odds, which on few rows is steadier than either."""

    def __init__(self, first: Model, second: Model) -> None:
        self._models = (first, second)

    def fit(self, table: Table, labels: Labels) -> None:
        """Learn from rows of both classes."""
        for model in self._models:
            model.fit(table, labels)

    def log_odds(self, table: Table) -> Matrix:
        """One a row."""
        first, second = (model.log_odds(table) for model in self._models)
        return (first + second) / 2

    def part(self) -> dict[str, Any]:
        """Both parts."""
        first, second = (model.part() for model in self._models)
        return first | second


def log_odds_of(labels: Labels) -> float:
    """Of the rate among the labels by Laplace's rule of succession: neither 0 nor 1."""
    right = int(labels.sum())
    return math.log((right + 1) / (len(labels) - right + 1))


def short(value: float) -> float:
    """Six significant digits: an artifact is to be read."""
    return float(f"{value:.6g}")


def _tree(tree: Any, rate: float) -> Tree:
    leaf = tree.children_left == LEAF
    return Tree(
        feature=[LEAF if end else int(f) for f, end in zip(tree.feature, leaf, strict=True)],
        threshold=[0.0 if end else float(t) for t, end in zip(tree.threshold, leaf, strict=True)],
        left=[max(0, int(node)) for node in tree.children_left],
        right=[max(0, int(node)) for node in tree.children_right],
        value=[
            short(value * rate) if end else 0.0
            for value, end in zip(tree.value[:, 0, 0], leaf, strict=True)
        ],
    )
