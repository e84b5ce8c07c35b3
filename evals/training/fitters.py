"""Heads that are fitted with scikit-learn, one interface for all: fit(x, y), predict(x), head_.

`head_` is the fitted head as it is served. `predict` applies it, so what is measured in training is
what will answer. Labels are in [0, 1], or differences of them; NaN is not known.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold

from classifiers.heads import (
    Blend,
    Columns,
    Head,
    Linear,
    Neighbours,
    Topics,
    distances,
    sigmoid,
    softly,
)
from evals.training.rows import TrainingError

Matrix = NDArray[np.float64]
Groups = NDArray[np.str_]

PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Candidates for the weight of the squared coefficients, per row."""

NEAREST = (10, 20, 40, 80, 160)
SHARPNESS = 20.0
SHRINK_ROWS = 20.0
ROWS_A_TOPIC = 80
MOST_TOPICS = 120
_ROWS_AT_ONCE = 1_000
FOLDS = 3
_MOST_CHOSEN_ON = 4_000
"""Rows that settings are chosen on."""


class Fitter(Protocol):
    """What every head's fitting looks like.

    Attributes:
        head_: what was fitted, as it is served.
    """

    head_: Head

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """Fit on rows x of shape (rows, width) and labels y of shape (rows, outputs)."""
        ...

    def predict(self, x: Matrix) -> Matrix:
        """Of shape (rows, outputs)."""
        ...


class LinearFitter:
    """Logistic or ridge regression, its penalty chosen by cross-validation once an instance.

    Args:
        log_odds: fit probabilities by their likelihood; otherwise values by least squares.
        penalties: candidates.
        seed: of the folds.
    """

    head_: Head

    def __init__(
        self, *, log_odds: bool, penalties: Sequence[float] = PENALTIES, seed: int = 0
    ) -> None:
        self._log_odds = log_odds
        self._penalties = penalties
        self._seed = seed
        self._chosen: dict[int, float] = {}

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """Each output by itself, on the rows where it is known."""
        weights, intercepts = [], []
        for output, labels in enumerate(y.T):
            known = ~np.isnan(labels)
            rows, seen = x[known], labels[known]
            if output not in self._chosen:
                self._chosen[output] = self._penalty(rows, seen, groups[known])
            fitted = self._line(rows, seen, self._chosen[output])
            weights.append(fitted[0])
            intercepts.append(fitted[1])
        self.head_ = Linear(np.column_stack(weights), np.array(intercepts), self._log_odds)
        return self

    def predict(self, x: Matrix) -> Matrix:
        """What the head says."""
        return self.head_(x)

    def _line(self, x: Matrix, y: Matrix, penalty: float) -> tuple[Matrix, float]:
        if not self._log_odds:
            ridge = Ridge(alpha=penalty * len(x)).fit(x, y)
            return ridge.coef_, float(ridge.intercept_)
        rows, classes, weights = as_classes(x, y)
        model = LogisticRegression(C=1.0 / (penalty * len(x)), max_iter=1000)
        model.fit(rows, classes, sample_weight=weights)
        return model.coef_[0], float(model.intercept_[0])

    def _penalty(self, x: Matrix, y: Matrix, groups: Groups) -> float:
        if len(self._penalties) == 1:
            return self._penalties[0]
        some = sample(len(x), _MOST_CHOSEN_ON, self._seed)
        x, y, groups = x[some], y[some], groups[some]
        losses = dict.fromkeys(self._penalties, 0.0)
        for train, test in folds(groups, FOLDS, self._seed):
            for penalty in self._penalties:
                weights, intercept = self._line(x[train], y[train], penalty)
                losses[penalty] += self._loss(x[test] @ weights + intercept, y[test])
        return min(losses, key=losses.__getitem__)

    def _loss(self, told: Matrix, y: Matrix) -> float:
        if not self._log_odds:
            return float(((told - y) ** 2).sum())
        chances = np.clip(sigmoid(told), 1e-9, 1.0 - 1e-9)
        return float(-(y * np.log(chances) + (1.0 - y) * np.log(1.0 - chances)).sum())


class NeighboursFitter:
    """The mean over the nearest rows; how many, chosen by leaving each row's group out."""

    head_: Head

    def __init__(self, *, nearest: Sequence[int] = NEAREST, seed: int = 0) -> None:
        self._nearest = nearest
        self._seed = seed

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """Keep the rows."""
        seen = x.astype(np.float32)
        some = sample(len(x), _MOST_CHOSEN_ON // 2, self._seed)
        apart = distances(x[some], seen)
        apart[groups[some][:, None] == groups[None, :]] = np.inf
        order = np.argpartition(apart, min(max(self._nearest), len(x) - 1), axis=1)
        order = order[:, : max(self._nearest)]
        order = np.take_along_axis(order, np.take_along_axis(apart, order, 1).argsort(1), 1)
        losses = {}
        for nearest in self._nearest:
            around = y[order[:, :nearest]]
            counts = np.maximum(1, (~np.isnan(around)).sum(axis=1))
            losses[nearest] = float(np.nansum((np.nansum(around, axis=1) / counts - y[some]) ** 2))
        chosen = min(min(losses, key=losses.__getitem__), len(x))
        self.head_ = Neighbours(seen, y, chosen)
        return self

    def predict(self, x: Matrix) -> Matrix:
        """What the head says."""
        return in_parts(self.head_, x)


class TopicsFitter:
    """Topics are clusters of the embeddings; each has the shrunken mean of what was seen on it.

    The clusters do not look at labels, so they are found once an instance.

    Args:
        draws: clusterings, whose answers are averaged.
        seed: of the first.
    """

    head_: Head

    def __init__(self, *, draws: int = 4, seed: int = 0) -> None:
        self._draws = draws
        self._seed = seed
        self._centres: NDArray[np.float32] | None = None

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """On rows x of unit length."""
        del groups
        if self._centres is None:
            self._centres = np.stack([self._clusters(x, at) for at in range(self._draws)])
        values = [self._means(softly(x, centres, SHARPNESS), y) for centres in self._centres]
        self.head_ = Topics(self._centres, np.stack(values), SHARPNESS)
        return self

    def predict(self, x: Matrix) -> Matrix:
        """What the head says."""
        return in_parts(self.head_, x)

    def _clusters(self, x: Matrix, draw: int) -> NDArray[np.float32]:
        count = min(max(8, len(x) // ROWS_A_TOPIC), MOST_TOPICS, len(x))
        model = KMeans(count, n_init=1, max_iter=50, random_state=self._seed + draw)
        centres = model.fit(x.astype(np.float32)).cluster_centers_
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        return np.asarray(centres / np.maximum(lengths, 1e-9), dtype=np.float32)

    @staticmethod
    def _means(shares: Matrix, y: Matrix) -> Matrix:
        known = (~np.isnan(y)).astype(np.float64)
        overall = np.nanmean(y, axis=0)
        total = shares.T @ np.nan_to_num(y) + SHRINK_ROWS * overall
        return np.asarray(total / (shares.T @ known + SHRINK_ROWS))


class ColumnsFitter:
    """A head that looks at some of the columns only."""

    head_: Head

    def __init__(self, part: Fitter, first: int, end: int) -> None:
        self._part = part
        self._first, self._end = first, end

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """The part, on its columns."""
        self._part.fit(x[:, self._first : self._end], y, groups)
        self.head_ = Columns([self._part.head_], self._first, self._end)
        return self

    def predict(self, x: Matrix) -> Matrix:
        """What the part says."""
        return self._part.predict(x[:, self._first : self._end])


class BlendFitter:
    """The mean of several heads, which on few rows is steadier than any of them."""

    head_: Head

    def __init__(self, parts: Sequence[Fitter]) -> None:
        self._parts = parts

    def fit(self, x: Matrix, y: Matrix, groups: Groups) -> Self:
        """Each part on all rows."""
        for part in self._parts:
            part.fit(x, y, groups)
        count = len(self._parts)
        self.head_ = Blend([part.head_ for part in self._parts], np.full(count, 1.0 / count))
        return self

    def predict(self, x: Matrix) -> Matrix:
        """The mean of what the parts say."""
        return np.asarray(np.mean([part.predict(x) for part in self._parts], axis=0))


def in_parts(head: Head, x: Matrix) -> Matrix:
    """What a head says, some rows at a time, which takes less memory."""
    starts = range(0, len(x), _ROWS_AT_ONCE)
    return np.vstack([head(x[at : at + _ROWS_AT_ONCE]) for at in starts])


def as_classes(x: Matrix, y: Matrix) -> tuple[Matrix, NDArray[np.bool_], Matrix | None]:
    """Labels between 0 and 1 as rows of both classes with weights; whole ones as they are.

    Raises:
        TrainingError: they are all right, or all wrong.
    """
    if (y == y[0]).all() and y[0] in (0.0, 1.0):
        raise TrainingError(
            f"the {len(y)} labels to learn from are all {'right' if y[0] else 'wrong'}: right and "
            "wrong ones must be in several groups each; give more rows, or use the target "
            '"difference"'
        )
    if np.isin(y, (0.0, 1.0)).all():
        return x, y.astype(bool), None
    right = np.repeat([True, False], len(y))
    return np.vstack([x, x]), right, np.concatenate([y, 1.0 - y])


def folds(groups: Groups, count: int, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Train and test rows of each fold; a group is never on both sides.

    Raises:
        TrainingError: there is only one group.
    """
    count = min(count, len(np.unique(groups)))
    if count < 2:  # noqa: PLR2004 - one is held back, one is left
        raise TrainingError(
            f"the {len(groups)} rows are of one group, and no group is split: it takes rows of "
            "several groups (without a column `group` each prompt is one, in a log each session)"
        )
    made = GroupKFold(count, shuffle=True, random_state=seed)
    return list(made.split(groups, groups=groups))


@contextmanager
def without_fold(number: int, count: int) -> Iterator[None]:
    """Say of what cannot be learned from the other folds that these are not all rows."""
    try:
        yield
    except TrainingError as error:
        raise TrainingError(
            f"without fold {number} of {count}, which is held back: {error.message}"
        ) from None


def sample(rows: int, most: int, seed: int) -> NDArray[np.intp]:
    """Indices of at most so many rows, in order."""
    if rows <= most:
        return np.arange(rows)
    drawn = np.random.default_rng(seed).choice(rows, most, replace=False)
    return np.asarray(np.sort(drawn))
