"""How far two samples are apart, and how often two halves of one would be as far by chance.

The chance is told by permutation: which rows belong to which sample is drawn anew, 199 times. Rows
must stand for themselves, so of a session only one may be among them.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float32]

DRAWS: Final = 199
_ROUNDING: Final = 1e-9
BINS: Final = 10
MOST_ROWS: Final = 1_000
"""Of a sample whose distances are taken in pairs."""


class Apart(NamedTuple):
    """A distance, and its p-value: how likely two samples of the same kind are as far apart."""

    distance: float
    p: float


def psi(before: Vector, now: Vector, bins: int = BINS) -> float:
    """Population stability index of two samples of numbers.

    Sum of (a - e) ln(a / e) over bins with equal shares e of the earlier sample, a being those of
    the later one; each bin counts half a row more, so that an empty one is not infinite. By custom
    below 0.1 nothing has changed, and above 0.25 much has.
    """
    edges = np.unique(np.quantile(before, np.linspace(0, 1, bins + 1)[1:-1]))
    e, a = (_shares(edges, each) for each in (before, now))
    return float(np.sum((a - e) * np.log(a / e)))


def kolmogorov_smirnov(before: Vector, now: Vector, *, seed: int = 0) -> Apart:
    """The largest gap between two distribution functions."""
    pooled = np.concatenate([before, now])
    order = np.argsort(pooled, kind="stable")
    last = np.append(np.diff(pooled[order]) > 0, True)

    def gap(is_now: NDArray[np.bool_]) -> float:
        # In whole numbers, as rounding would tell apart samples that are the same.
        steps = np.where(is_now[order], len(before), -len(now))
        return float(np.abs(np.cumsum(steps)[last]).max()) / (len(before) * len(now))

    return _permuted(gap, len(before), len(now), seed)


def energy(before: Matrix, now: Matrix, *, seed: int = 0) -> Apart:
    """Energy distance of two samples of vectors, as a share of how far their rows are apart.

    (2 E|X - Y| - E|X - X'| - E|Y - Y'|) / 2 E|X - Y|, the energy coefficient of inhomogeneity: 0
    for samples of one kind, 1 for two points (G. J. Szekely and M. L. Rizzo, Energy statistics,
    Journal of Statistical Planning and Inference 143, 2013).

    Args:
        before: of shape (rows, dimensions), MOST_ROWS rows at most.
        now: the same.
        seed: of the permutations.
    """
    pooled = np.concatenate([before, now]).astype(np.float32)
    squares = (pooled**2).sum(axis=1)
    apart = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * pooled @ pooled.T, 0.0))
    np.fill_diagonal(apart, 0.0)
    sums = apart.sum(axis=1, dtype=np.float64)

    def coefficient(is_now: NDArray[np.bool_]) -> float:
        mine = is_now.astype(np.float32)
        n, m = float(mine.sum()), float(len(mine) - mine.sum())
        to_mine = apart @ mine
        within = float(to_mine @ mine)
        between = float(to_mine.sum(dtype=np.float64)) - within
        others = float(sums.sum()) - within - 2 * between
        across = 2 * between / (n * m)
        return (across - within / n**2 - others / m**2) / across if across else 0.0

    return _permuted(coefficient, len(before), len(now), seed)


def _permuted(
    statistic: Callable[[NDArray[np.bool_]], float], before: int, now: int, seed: int
) -> Apart:
    rng = np.random.default_rng(seed)
    is_now = np.arange(before + now) >= before
    found = statistic(is_now)
    as_far = sum(statistic(rng.permutation(is_now)) >= found - _ROUNDING for _ in range(DRAWS))
    return Apart(found, (1 + as_far) / (1 + DRAWS))


def _shares(edges: Vector, values: Vector) -> Vector:
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * len(counts)))


def sampled(rows: int, seed: int = 0) -> NDArray[np.int_]:
    """Places of MOST_ROWS of so many rows, in order; all where there are no more."""
    if rows <= MOST_ROWS:
        return np.arange(rows)
    chosen = np.random.default_rng(seed).choice(rows, size=MOST_ROWS, replace=False)
    return np.asarray(np.sort(chosen))
