"""Doubly robust means: what is known, a model where it is not, and the model's error taken out.

Row i of n is known (y), or it is open and was drawn with probability p. With a model m of the open
rows that was not fitted on row i, and r = y - m where it was drawn, row i counts as

    u_i = y                                        known
    u_i = m + rbar + [drawn] (N / W) (r - rbar)/p  open

where, within a stratum of N open rows, W is the sum of 1/p over the drawn ones and rbar the mean of
r weighted by 1/p. So the mean of u is that of y and m, plus what the drawn rows show m to be off
by: right if m is right, and, with many rows drawn, also if it is not (J. M. Robins, A. Rotnitzky
and L. P. Zhao, JASA 1994; for policies M. Dudik et al., Doubly robust policy evaluation,
2011). Weights are divided by their sum, so that a share of the draws which was lost, as to a full
queue, lowers precision and moves nothing.

The interval is that of the mean of u, with rows of a session taken together, and Student's t with
the degrees of freedom of the sessions that were drawn.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evals.metrics import CONFIDENCE

Vector = NDArray[np.float64]
Fit = Callable[[NDArray[np.float64], Vector, Vector], Callable[[NDArray[np.float64]], Vector]]
"""(features, values, weights) of drawn rows to a function of features."""

FOLDS: Final = 5
FEW: Final = 5
"""Drawn rows of a stratum, or sessions of them, below which nothing can be said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """n rows.

    Attributes:
        values: of shape (n,); NaN where it is not known.
        chance: of shape (n,): 1 where the value is known for sure, p where it was drawn, 0 where it
            is open.
        strata: of shape (n,): which rows are alike in what would have to be known.
        clusters: of shape (n,): the session.
        features: of shape (n, k): what the model looks at; nothing that a draw showed.
    """

    values: Vector
    chance: Vector
    strata: NDArray[Any]
    clusters: NDArray[Any]
    features: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean, or a difference of two.

    Attributes:
        mean: over the rows that have support.
        low: of the interval.
        high: of the interval.
        influence: u, of shape (n,); NaN where there is no support.
        drawn: open rows that were drawn.
        open: rows that are not known for sure.
        effective: as how many rows of equal weight the drawn ones count.
        unsupported: share of the rows of whose stratum too few were drawn.
    """

    mean: float
    low: float
    high: float
    influence: Vector
    drawn: int
    open: int
    effective: float
    unsupported: float


def ridge(features: NDArray[np.float64], values: Vector, weights: Vector) -> Callable[..., Vector]:
    """Least squares on features of about the same scale, each held back as if by one more row."""
    centre, w = features.mean(axis=0), weights / weights.mean()
    x = features - centre
    mean = float(np.average(values, weights=w))
    gram = (x * w[:, None]).T @ x + np.eye(x.shape[1])
    slopes = np.linalg.solve(gram, (x * w[:, None]).T @ (values - mean))
    return lambda other: np.asarray(mean + (other - centre) @ slopes)


def doubly_robust(rows: Rows, fit: Fit = ridge, *, model: Vector | None = None) -> Estimate:
    """The mean of the values over all rows that have support.

    Args:
        rows: at least one.
        fit: makes the model of the open rows of a stratum, by folds of sessions.
        model: of shape (n,): a model that was made without these values, instead.
    """
    known, influence = rows.chance >= 1.0, np.full(len(rows.values), np.nan)
    known &= ~np.isnan(rows.values)
    drawn = ~known & (rows.chance > 0.0) & ~np.isnan(rows.values)
    influence[known] = rows.values[known]
    features = _standardised(rows.features)
    for name in np.unique(rows.strata[~known]):
        inside = np.flatnonzero(~known & (rows.strata == name))
        seen = inside[drawn[inside]]
        if len(np.unique(rows.clusters[seen])) < FEW:
            continue
        expected = _expected(rows, features, inside, seen, fit) if model is None else model[inside]
        influence[inside] = _corrected(rows, inside, seen, expected)
    weights = 1.0 / rows.chance[drawn & ~np.isnan(influence)]
    effective = float(weights.sum() ** 2 / (weights**2).sum()) if len(weights) else 0.0
    counted = rows.clusters[drawn] if drawn.any() else None
    mean, low, high = interval(influence, rows.clusters, counted)
    return Estimate(
        mean=mean,
        low=low,
        high=high,
        influence=influence,
        drawn=int(drawn.sum()),
        open=int((~known).sum()),
        effective=effective,
        unsupported=float(np.isnan(influence).mean()),
    )


def interval(
    influence: Vector,
    clusters: NDArray[Any],
    drawn: NDArray[Any] | None = None,
    confidence: float = CONFIDENCE,
) -> tuple[float, float, float]:
    """(mean, low, high) of rows, those of a cluster taken together.

    Args:
        influence: of shape (n,); NaN is left out.
        clusters: of shape (n,).
        drawn: clusters that bear on the spread, whose number counts; None: all.
        confidence: of the interval.
    """
    there = ~np.isnan(influence)
    if not there.any():
        return math.nan, math.nan, math.nan
    values = influence[there]
    mean = float(values.mean())
    names, place = np.unique(clusters[there], return_inverse=True)
    if len(names) < 2:  # noqa: PLR2004 - one has no spread
        return mean, math.nan, math.nan
    sums = np.bincount(place, weights=values - mean)
    variance = float((sums**2).sum()) * len(names) / (len(names) - 1) / len(values) ** 2
    counted = len(names) if drawn is None else len(np.unique(drawn))
    half = student(max(1, counted - 1), confidence) * math.sqrt(variance)
    return mean, mean - half, mean + half


def student(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The two-sided quantile of Student's t, by its expansion around the normal one.

    G. W. Hill, Algorithm 396, CACM 13 (1970), to the fourth order; within 1 % from 4 degrees on.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum([z, *(term / degrees**n for n, term in enumerate(terms, 1))])


def _standardised(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """By all rows: of few drawn ones the spread may be next to nothing, and a slope anything."""
    spread = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _folds(clusters: NDArray[Any]) -> NDArray[np.int_]:
    _, place = np.unique(clusters, return_inverse=True)
    return np.asarray(place % FOLDS)


def _expected(
    rows: Rows,
    features: NDArray[np.float64],
    inside: NDArray[np.int_],
    seen: NDArray[np.int_],
    fit: Fit,
) -> Vector:
    """The model's word on the open rows, each fold's from the others."""
    expected, folds = np.empty(len(inside)), _folds(rows.clusters)
    for fold in range(FOLDS):
        here, others = folds[inside] == fold, seen[folds[seen] != fold]
        if not here.any():
            continue
        if not len(others):
            others = seen
        apply = fit(features[others], rows.values[others], 1.0 / rows.chance[others])
        expected[here] = apply(features[inside][here])
    return expected


def _corrected(
    rows: Rows, inside: NDArray[np.int_], seen: NDArray[np.int_], expected: Vector
) -> Vector:
    where = np.searchsorted(inside, seen)
    weights = 1.0 / rows.chance[seen]
    off = rows.values[seen] - expected[where]
    mean_off = float(np.average(off, weights=weights))
    found = expected + mean_off
    found[where] += len(inside) / weights.sum() * weights * (off - mean_off)
    return found
