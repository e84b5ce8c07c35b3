"""Maps from what a head says of rows it has not seen to what became of them."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from classifiers.chances import Isotonic, Line, Platt, log_odds
from evals.isotonic import fit_map
from evals.training.fitters import as_classes

Matrix = NDArray[np.float64]

ISOTONIC_FROM = 300
"""Labels from which an isotonic map may be better than Platt's line."""
BINS = 15
FOLDS = 5


def calibration(values: Matrix, labels: Matrix) -> Platt | Isotonic:
    """The map with the smaller cross-validated squared error of Platt's line and isotonic steps.

    Args:
        values: what the head says, of rows that were held out.
        labels: in [0, 1].
    """
    if len(labels) < ISOTONIC_FROM or not np.isin(labels, (0.0, 1.0)).all():
        return _platt(values, labels)
    kinds: tuple[Callable[[Matrix, Matrix], Platt | Isotonic], ...] = (_platt, _isotonic)
    losses = [_loss(kind, values, labels) for kind in kinds]
    return kinds[losses.index(min(losses))](values, labels)


def line(values: Matrix, labels: Matrix) -> Line:
    """Least squares for a difference; what does not carry over is shrunk to its mean."""
    spread = float(values.var())
    together = float(np.mean((values - values.mean()) * (labels - labels.mean())))
    slope = max(0.0, together / spread) if spread > 0.0 else 0.0
    return Line(slope=slope, offset=float(labels.mean() - slope * values.mean()))


def _loss(
    kind: Callable[[Matrix, Matrix], Platt | Isotonic], values: Matrix, labels: Matrix
) -> float:
    # Every fifth of the right ones and every fifth of the wrong ones, so a fold has some of both.
    place = np.empty(len(labels), dtype=int)
    place[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % FOLDS
    lost = 0.0
    for at in range(FOLDS):
        test = place == at
        told = kind(values[~test], labels[~test])(values[test])
        lost += float(((told - labels[test]) ** 2).sum())
    return lost


def _isotonic(values: Matrix, labels: Matrix) -> Isotonic:
    fitted = fit_map(values.tolist(), [bool(label) for label in labels], bins=BINS)
    return Isotonic(x=list(fitted.x), y=list(fitted.y))


def _platt(values: Matrix, labels: Matrix) -> Platt:
    rows, classes, weights = as_classes(log_odds(values).reshape(-1, 1), labels)
    fitted = LogisticRegression(C=1e6, max_iter=1000).fit(rows, classes, sample_weight=weights)
    slope, offset = float(fitted.coef_[0][0]), float(fitted.intercept_[0])
    if slope > 0.0:
        return Platt(slope=slope, offset=offset)
    # What was learned does not carry over to rows it has not seen: everything gets the rate.
    rate = float(labels.mean())
    return Platt(slope=0.0, offset=math.log(rate / (1.0 - rate)))
