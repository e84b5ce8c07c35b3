"""What escalating gains, by who is sent up: the curve that a judge is worth.

Calibration says whether a score can be believed as a probability. It says nothing of whether going
up on it pays: the answers that a small model doubts most are often those that the large one fails
as well. So orders are compared by the accuracy that is left when a share of the prompts is sent up.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from evals.metrics import Interval, bootstrap, mean


class Scored(NamedTuple):
    """One prompt: what is believed of both answers, and whether they are right.

    Attributes:
        small: P(the small model's answer is acceptable).
        large: the same of the large one's.
        length: of the small answer, for the length-only baseline; negative where long answers
            are the better ones.
        group: prompts made alike share one; empty where each stands for itself.
    """

    small: float
    large: float
    length: float
    small_right: bool
    large_right: bool
    group: str = ""


ORDERS: Mapping[str, Callable[[Scored], float]] = {
    "doubt": lambda row: -row.small,
    "uplift": lambda row: row.large - row.small,
    "length": lambda row: row.length,
    "oracle": lambda row: float(row.large_right) - float(row.small_right),
}
"""Who is sent up first: the highest value. "random" needs no order: it is the mean of both."""


def accuracy(rows: Sequence[Scored], order: str, share: float) -> float:
    """Share of right answers when that share of the rows is sent up, the first by the order.

    Rows with the same value go up in equal parts, so that the order of the file decides nothing.
    """
    knots = _curve(rows, order)
    for before, after in pairwise(knots):
        if share <= after.share:
            return before.accuracy + _slope(before, after) * (share - before.share)
    return knots[-1].accuracy


def lead(rows: Sequence[Scored], order: str, over: str, share: float) -> Interval:
    """Interval of what one order gains over another at a share, the rows drawn in pairs."""
    return interval(
        rows, lambda drawn: accuracy(drawn, order, share) - accuracy(drawn, over, share)
    )


def interval(
    rows: Sequence[Scored], statistic: Callable[[Sequence[Scored]], float], resamples: int = 1_000
) -> Interval:
    """Bootstrap interval of a statistic of rows, those of a group drawn together."""
    groups = [row.group or str(number) for number, row in enumerate(rows)]
    return bootstrap(rows, statistic, groups=groups, resamples=resamples)


def recovered(rows: Sequence[Scored], order: str, price_ratio: float) -> float:
    """Share of the gap between the models that is won back, averaged over cost from 0 to 1.

    The cost of sending up a share s is price_ratio + s in units of the large model's, the small
    call always included; below price_ratio nothing can be bought. A perfect order can exceed 1.
    The curve is piecewise linear, so its area is exact. NaN where the large model is no better.
    """
    small, large = _rates(rows)
    if large <= small:
        return math.nan
    last, area = 1.0 - price_ratio, 0.0
    for before, after in pairwise(_curve(rows, order)):
        width = min(after.share, last) - before.share
        if width <= 0:
            break
        middle = before.accuracy + _slope(before, after) * width / 2
        area += width * (middle - small)
    return area / (large - small)


def calibration_error(scores: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error: the mean gap between score and rate over bins of equal count.

    Equal scores count with their common rate, in whichever bin they fall.
    """
    tied: dict[float, list[bool]] = {}
    for score, ok in zip(scores, right, strict=True):
        tied.setdefault(score, []).append(ok)
    ordered = [(score, mean(tied[score])) for score in sorted(tied) for _ in tied[score]]
    gap = 0.0
    for at in range(bins):
        some = ordered[at * len(ordered) // bins : (at + 1) * len(ordered) // bins]
        if some:
            gap += len(some) * abs(mean([s for s, _ in some]) - mean([r for _, r in some]))
    return gap / len(ordered)


def calibration_noise(
    scores: Sequence[float], bins: int = 10, *, draws: int = 1_000, seed: int = 0
) -> tuple[float, float]:
    """The calibration error that perfect scores would show on as many rows.

    Labels are drawn from the scores themselves, so all of the gap is chance. Gives the mean, and
    what nineteen of twenty draws stay below. Rows are drawn one by one: with groups of alike
    prompts chance does more than this.
    """
    rng = random.Random(seed)  # noqa: S311 - made-up labels
    found = sorted(
        calibration_error(scores, [rng.random() < score for score in scores], bins)
        for _ in range(draws)
    )
    return mean(found), found[round(0.95 * (draws - 1))]


class _Knot(NamedTuple):
    share: float
    accuracy: float


def _curve(rows: Sequence[Scored], order: str) -> list[_Knot]:
    """Accuracy by share sent up; linear between its knots, of which ties have one."""
    small, large = _rates(rows)
    if order == "random":
        return [_Knot(0.0, small), _Knot(1.0, large)]
    value = ORDERS[order]
    gained: dict[float, list[int]] = {}
    for row in rows:
        gained.setdefault(value(row), []).append(row.large_right - row.small_right)
    knots, up, gain = [_Knot(0.0, small)], 0, 0
    for key in sorted(gained, reverse=True):
        up += len(gained[key])
        gain += sum(gained[key])
        knots.append(_Knot(up / len(rows), small + gain / len(rows)))
    return knots


def _slope(before: _Knot, after: _Knot) -> float:
    return (after.accuracy - before.accuracy) / (after.share - before.share)


def _rates(rows: Sequence[Scored]) -> tuple[float, float]:
    small = mean([float(row.small_right) for row in rows])
    return small, mean([float(row.large_right) for row in rows])
