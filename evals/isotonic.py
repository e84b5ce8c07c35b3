"""Fits the monotone map from a judge's raw score to the probability that the answer is right.

Isotonic regression alone would end in blocks of a single row with probability 0 or 1 when labels
are few. So rows are first put into a handful of bins of equal size, each bin's rate is smoothed,
and only then neighbours that are out of order are pooled. `cascade.calibration` applies the map.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from cascade.calibration import MonotoneMap

MAX_BINS = 8


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring points that share one value. x is their weighted mean position."""

    x: float
    value: float
    weight: float


def pool_adjacent_violators(points: Sequence[Block]) -> list[Block]:
    """The non-decreasing step function nearest to the points in weighted least squares.

    Walks from left to right and merges the last two blocks while the right one lies below the left
    one, or level with it; M. Ayer et al., Annals of Mathematical Statistics 26 (1955). The values
    of the result increase strictly.

    Args:
        points: in increasing order of x, weights positive.
    """
    blocks: list[Block] = []
    for point in points:
        blocks.append(point)
        while len(blocks) > 1 and blocks[-2].value >= blocks[-1].value:
            right, left = blocks.pop(), blocks.pop()
            blocks.append(_merged(left, right))
    return blocks


def fit_map(scores: Sequence[float], right: Sequence[bool], *, bins: int = MAX_BINS) -> MonotoneMap:
    """Fit P(right | score) with at most as many knots as bins, none at 0 or 1.

    A bin of n rows with k right has the value (k + 1)/(n + 2) (Laplace's rule of succession: the
    mean of the posterior under a uniform prior). Equal scores are never split between bins. A knot
    stands at the mean score of its block; the map is linear between knots.

    Raises:
        ValueError: no rows, or as many scores as labels are not given.
    """
    if not scores or len(scores) != len(right):
        raise ValueError("fitting a map needs one label for each score, and at least one of both")
    blocks = pool_adjacent_violators([_bin(rows) for rows in _bins(scores, right, bins)])
    if len(blocks) == 1:
        # A score that says nothing: the same probability for all, whatever the score.
        return MonotoneMap([0.0, 1.0], [blocks[0].value] * 2)
    return MonotoneMap([block.x for block in blocks], [block.value for block in blocks])


def _bins(
    scores: Sequence[float], right: Sequence[bool], bins: int
) -> list[list[tuple[float, bool]]]:
    """Rows in order of score, in bins of about equal size; equal scores share a bin."""
    rows = sorted(zip(scores, right, strict=True))
    filled: list[list[tuple[float, bool]]] = [[]]
    seen = 0
    for _, ties in groupby(rows, key=lambda row: row[0]):
        tied = list(ties)
        if seen >= len(filled) * len(rows) / bins:
            filled.append([])
        filled[-1].extend(tied)
        seen += len(tied)
    return filled


def _bin(rows: Sequence[tuple[float, bool]]) -> Block:
    good = sum(ok for _, ok in rows)
    return Block(
        x=sum(score for score, _ in rows) / len(rows),
        value=(good + 1) / (len(rows) + 2),
        weight=len(rows),
    )


def _merged(left: Block, right: Block) -> Block:
    weight = left.weight + right.weight
    return Block(
        x=(left.x * left.weight + right.x * right.weight) / weight,
        value=(left.value * left.weight + right.value * right.weight) / weight,
        weight=weight,
    )
