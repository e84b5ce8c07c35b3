"""Means of rows with intervals, the rows of a group drawn together."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Texts = NDArray[np.str_]

RESAMPLES: Final = 1_000
CONFIDENCE: Final = 0.95
_AT_ONCE: Final = 1 << 20


class Spread(NamedTuple):
    """A figure, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def spread(
    values: Floats,
    groups: Texts,
    *,
    over: Floats | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Spread:
    """Mean of the values, or its ratio to another mean, with a percentile bootstrap interval.

    Whole groups are drawn with replacement (B. Efron, Bootstrap methods: another look at the
    jackknife, Annals of Statistics 7, 1979). Both means are of the same draw, so the interval of a
    difference between two policies on the same rows is that of its own values. NaN where the other
    mean is 0.

    Args:
        values: of each row.
        groups: of each row.
        over: of each row; None: 1 each, for the mean.
        resamples: draws.
        seed: the same seed gives the same interval.
    """
    _, member = np.unique(groups, return_inverse=True)
    below = np.ones(len(values)) if over is None else over
    parts = np.array([np.bincount(member, weights=values), np.bincount(member, weights=below)])
    count = parts.shape[1]
    rng = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // count)
    sums = np.hstack(
        [
            parts[:, rng.integers(0, count, (min(at_once, resamples - begun), count))].sum(axis=2)
            for begun in range(0, resamples, at_once)
        ]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = sums[0] / sums[1]
    known = ratios[np.isfinite(ratios)]
    if not len(known):
        return Spread(float("nan"), float("nan"), float("nan"))
    value = float(parts[0].sum() / parts[1].sum())
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(known, [tail, 1.0 - tail])
    return Spread(value, float(low), float(high))
