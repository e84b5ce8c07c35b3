"""Bootstrap of whole curves: each resample weighs the groups anew and walks every setting once.

A group drawn twice counts twice, so a resample is a weight for each group, and a policy's curve
under it is a running total of weighted changes in the one order that the sweep has. Nothing is
sorted, copied or decided again. B. Efron, Bootstrap methods: another look at the jackknife, Annals
of Statistics 7 (1979).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evals.frontier.sweep import Floats, Ints, Sweep
from evals.metrics import CONFIDENCE, Interval
from evals.tables import OutcomeTable

THREADS: Final = min(8, os.cpu_count() or 1)
"""numpy works without the interpreter's lock; what a resample gives does not depend on this."""


class Totals(NamedTuple):
    """Means over the rows at each setting: dollars, quality, share of a tier's answers."""

    cost: Floats
    quality: Floats
    share: Floats


class Clusters:
    """Which rows are drawn together.

    Args:
        table: whose groups they are.
    """

    def __init__(self, table: OutcomeTable) -> None:
        names, member = np.unique(table.groups, return_inverse=True)
        self.member = member.astype(np.int32)
        self.count = len(names)
        self.sizes = self.sums(np.ones(len(table)))

    def sums(self, values: Floats) -> Floats:
        """Of a value of each row, the sum by group."""
        return np.bincount(self.member, weights=values, minlength=self.count).astype(np.float64)

    def all(self) -> Floats:
        """The weights of the rows as they are."""
        return np.ones(self.count)

    def drawn(self, seed: int, number: int) -> Floats:
        """How often each group is in a resample; the same for the same seed and number."""
        rng = np.random.default_rng([seed, number])
        chosen = rng.integers(0, self.count, self.count)
        return np.bincount(chosen, minlength=self.count).astype(np.float64)

    def total(self, sums: Floats, weights: Floats) -> float:
        """A weighted total of what was summed by group, the same on any number of cores."""
        return float(np.multiply(sums, weights).sum())

    def means(self, sums: Sequence[Floats], weights: Floats) -> list[float]:
        """Means over rows of several things that were summed by group."""
        rows = self.total(self.sizes, weights)
        return [self.total(each, weights) / rows for each in sums]


class Tracked:
    """A policy's sweep, ready to be walked under any weights.

    Args:
        clusters: of the table that was swept.
        tier: whose share is followed.
    """

    def __init__(self, sweep: Sweep, clusters: Clusters, tier: int) -> None:
        some = sweep.changes
        self._clusters = clusters
        self._member = clusters.member[some.row].astype(np.int64)
        self._cost, self._quality = some.cost, some.quality
        self._share = (some.after == tier).astype(np.float64) - (some.before == tier)
        ends = sweep.ends()
        tied = len(ends) < len(some.row)
        self._kept: Ints | None = np.concatenate([[0], ends]) if tied else None
        served = (sweep.served == tier).astype(np.float64)
        self._start = [clusters.sums(each) for each in (sweep.cost, sweep.quality, served)]

    def totals(self, weights: Floats) -> Totals:
        """The means at every setting."""
        weights = weights / self._clusters.total(self._clusters.sizes, weights)
        each = np.take(weights, self._member)
        changes = (self._cost, self._quality, self._share)
        found = [
            self._along(self._clusters.total(start, weights), some, each)
            for start, some in zip(self._start, changes, strict=True)
        ]
        return Totals(*found)

    def _along(self, first: float, changes: Floats, weights: Floats) -> Floats:
        totals: Floats = np.empty(len(changes) + 1)
        totals[0] = first
        np.multiply(changes, weights, out=totals[1:])
        np.cumsum(totals, out=totals)
        return totals if self._kept is None else np.take(totals, self._kept)


def resampled(
    clusters: Clusters,
    statistics: Callable[[Floats], Sequence[float]],
    *,
    resamples: int,
    seed: int,
) -> NDArray[np.float64]:
    """Statistics of every resample, of shape (resamples, statistics).

    There are none where all rows are of one group: drawn anew it is the same, which would look as
    if nothing scattered.

    Args:
        clusters: what is drawn.
        statistics: of the groups' weights; called from several threads.
        resamples: how many times.
        seed: the same one gives the same numbers.
    """

    def one(number: int) -> Sequence[float]:
        return statistics(clusters.drawn(seed, number))

    if clusters.count == 1:
        return np.full((resamples, len(statistics(clusters.all()))), np.nan)
    with ThreadPoolExecutor(THREADS) as pool:
        return np.array(list(pool.map(one, range(resamples))), dtype=np.float64)


def intervals(drawn: NDArray[np.float64]) -> Iterator[Interval]:
    """Percentile intervals of each column; NaN where no resample has a value."""
    tail = (1.0 - CONFIDENCE) / 2.0
    for column in drawn.T:
        known = column[~np.isnan(column)]
        if len(known):
            low, high = np.quantile(known, [tail, 1.0 - tail])
            yield Interval(float(low), float(high))
        else:
            yield Interval(np.nan, np.nan)
