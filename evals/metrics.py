"""Numbers about answers that were scored: rates, intervals, and what mixing at random would give.

Pure functions over plain numbers, so that every figure of a report can be checked by hand.
"""

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import chain
from statistics import NormalDist
from typing import NamedTuple, TypeVar

Row = TypeVar("Row")

CONFIDENCE = 0.95
RESAMPLES = 2_000


class Interval(NamedTuple):
    """Lower and upper end."""

    low: float
    high: float


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; values must not be empty."""
    return math.fsum(values) / len(values)


def wilson(right: int, total: int, *, confidence: float = CONFIDENCE) -> Interval:
    """Interval for a proportion, from right answers among total.

    With p = right/total and z the normal quantile:
    (p + z^2/2n ± z sqrt(p(1 - p)/n + z^2/4n^2)) / (1 + z^2/n). E. B. Wilson, Probable inference,
    the law of succession, and statistical inference, JASA 22 (1927). Unlike p ± z sqrt(p(1 - p)/n)
    it stays inside [0, 1] and is not empty when all answers are right.

    Raises:
        ValueError: total is not positive, or right is not between 0 and total.
    """
    if not 0 <= right <= total or total == 0:
        raise ValueError(f"{right} right of {total} is no proportion")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, spread = right / total, z * z / total
    centre = rate + spread / 2
    half = math.sqrt(rate * (1 - rate) * spread + spread * spread / 4)
    low, high = (centre - half) / (1 + spread), (centre + half) / (1 + spread)
    return Interval(max(0.0, min(low, rate)), min(1.0, max(high, rate)))


def bootstrap(
    rows: Sequence[Row],
    statistic: Callable[[Sequence[Row]], float],
    *,
    groups: Sequence[str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Percentile bootstrap interval of a statistic of rows.

    Rows are drawn with replacement and the statistic is taken anew each time; B. Efron, Bootstrap
    methods: another look at the jackknife, Annals of Statistics 7 (1979). With one row a prompt,
    holding what every policy did on it, a difference between policies is a paired one: prompts that
    are hard for all widen nothing.

    Args:
        rows: at least one.
        statistic: of any resample; called resamples times.
        groups: of the rows; those of a group are drawn together, as they are alike and count for
            less than as many that are not.
        seed: the same seed gives the same interval.
        resamples: how many times rows are drawn.
        confidence: share of resamples that the interval holds.
    """
    rng = random.Random(seed)  # noqa: S311 - resampling, no secret
    blocks = [[row] for row in rows] if groups is None else _blocks(rows, groups)
    drawn = sorted(
        statistic(list(chain.from_iterable(rng.choices(blocks, k=len(blocks)))))
        for _ in range(resamples)
    )
    tail = (1 - confidence) / 2
    return Interval(
        drawn[round(tail * (resamples - 1))], drawn[round((1 - tail) * (resamples - 1))]
    )


def _blocks(rows: Sequence[Row], groups: Sequence[str]) -> list[list[Row]]:
    found: dict[str, list[Row]] = {}
    for row, group in zip(rows, groups, strict=True):
        found.setdefault(group, []).append(row)
    return list(found.values())


class Point(NamedTuple):
    """What a policy costs (dollars, or any unit that all share) and how good it is, in the mean."""

    cost: float
    quality: float


def mix_share(cheap: Point, dear: Point, cost: float) -> float:
    """Share of prompts to send to the dear policy so that a random mix costs that much.

    (cost - cheap.cost) / (dear.cost - cheap.cost), held within [0, 1]: money beyond the dear
    policy's price buys a mix nothing more. Where the dear policy is no dearer after all (a small
    model that rambles), there is nothing to trade and the share is 1.
    """
    if dear.cost <= cheap.cost:
        return 1.0
    return min(1.0, max(0.0, (cost - cheap.cost) / (dear.cost - cheap.cost)))


def mix_quality(cheap: Point, dear: Point, cost: float) -> float:
    """Expected quality of the random mix of two policies that costs as much.

    Each prompt goes to the dear policy with probability s = mix_share, whatever it says, so quality
    is linear in s: (1 - s) cheap.quality + s dear.quality. This is the line that any policy has to
    beat which looks at the prompt or at an answer: the interpolation of two routers in R. J. Hu et
    al., RouterBench (2024).
    """
    share = mix_share(cheap, dear, cost)
    return (1 - share) * cheap.quality + share * dear.quality


def auroc(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """Chance that a right answer scores above a wrong one, ties counting half.

    Mann and Whitney's U over the number of pairs; None when all are right or all are wrong.
    """
    good = [score for score, ok in zip(scores, right, strict=True) if ok]
    bad = sorted(score for score, ok in zip(scores, right, strict=True) if not ok)
    if not good or not bad:
        return None
    won = sum(bisect_left(bad, score) + bisect_right(bad, score) for score in good)
    return won / (2 * len(good) * len(bad))
