"""What a curve is worth, as plain numbers: each metric by its published definition.

A curve is a sequence of settings with cost and quality, in the order of its knob; between two of
them it is straight, since mixing two settings reaches every point of the line. The cheapest model
alone can always be mixed in, so a curve that begins dearer begins with a line from there.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from evals.frontier.sweep import Floats, Ints
from evals.metrics import Point

DEFINITIONS: Final = {
    "APGR": "mean PGR over the share of calls to the strong model from 0 to 1, PGR being the share "
    "of the gap in quality between the cheapest and the strong model that is won back; at random "
    ".5; with more than two tiers the share is of the way in cost",
    "CPT50": "smallest share of calls to the strong model with which PGR is .5; at random .5",
    "CPT80": "the same for PGR .8; at random .8",
    "AIQ": "area under the non-decreasing convex hull of (cost, quality) between the cost of the "
    "cheapest and of the dearest model, over that range: a mean quality. The hull's settings are "
    "those of the choose rows",
    "AUC": "area under quality over cost between the cost of the cheapest and of the dearest "
    "model, by trapezes, over that range: a mean quality; level beyond the last setting that buys "
    "quality",
    "IBC lift": "slope from the cheapest model to the policy in (cost, quality) over the slope "
    "from the cheapest to the strong model, less 1: how much more quality a further dollar buys",
    "savings": "share of the best single model's cost that is not spent",
}


_EDGE: Final = 1e-12


class Gap(NamedTuple):
    """The two models between which a curve is measured."""

    weak: Point
    strong: Point

    @property
    def quality(self) -> float:
        """How much better the strong one is."""
        return self.strong.quality - self.weak.quality

    @property
    def cost(self) -> float:
        """How much dearer it is."""
        return self.strong.cost - self.weak.cost


def pgr(quality: Floats, gap: Gap) -> Floats:
    """Share of the gap that is won back: (q - q_weak) / (q_strong - q_weak); NaN without a gap.

    I. Ong et al., RouteLLM: learning to route LLMs with preference data (2024).
    """
    if gap.quality <= 0.0:
        return np.full(np.shape(quality), np.nan)
    return (quality - gap.weak.quality) / gap.quality


def apgr(shares: Floats, quality: Floats, gap: Gap, *, steps: int | None = None) -> float:
    """Mean PGR over the share of strong calls from 0 to 1; NaN without a gap.

    The curve is joined to (0, 0) and (1, 1), which are the two models alone. A perfect order can
    exceed 1.

    Args:
        shares: of strong calls, at each setting.
        quality: at each setting.
        gap: between the two models.
        steps: read at so many steps of the share only, as Ong et al. (2024) do with 10; a curve
            that bends between them, such as an oracle's, then has less. None: every setting.
    """
    if gap.quality <= 0.0:
        return math.nan
    if steps is not None:
        x = np.concatenate([[0.0], shares, [1.0]])
        y = np.concatenate([[gap.weak.quality], quality, [gap.strong.quality]])
        shares = np.linspace(0.0, 1.0, steps + 1)
        quality = np.interp(shares, x, y)
    area = _under(shares, quality)
    area += 0.5 * float(shares[0]) * (gap.weak.quality + float(quality[0]))
    area += 0.5 * (1.0 - float(shares[-1])) * (float(quality[-1]) + gap.strong.quality)
    return (area - gap.weak.quality) / gap.quality


def cpt(shares: Floats, quality: Floats, gap: Gap, levels: Sequence[float]) -> list[float]:
    """Call-performance thresholds: smallest shares of strong calls with which PGR reaches levels.

    Ong et al. (2024). Read between settings, as equal scores may go up in part. NaN without a gap.
    """
    if gap.quality <= 0.0:
        return [math.nan for _ in levels]
    return [_first(shares, quality, gap, level) for level in levels]


def _first(shares: Floats, quality: Floats, gap: Gap, level: float) -> float:
    """The share of strong calls at which a curve that is joined to both models reaches a level."""
    wanted = gap.weak.quality + level * gap.quality
    reached = quality >= wanted - _EDGE
    at = int(reached.argmax())
    if not reached[at]:
        one, other = (shares[-1], quality[-1]), (1.0, gap.strong.quality)
    elif at == 0:
        one, other = (0.0, gap.weak.quality), (shares[0], quality[0])
    else:
        one, other = (shares[at - 1], quality[at - 1]), (shares[at], quality[at])
    if one[1] >= wanted - _EDGE:
        return float(one[0])
    return float(one[0] + (wanted - one[1]) / (other[1] - one[1]) * (other[0] - one[0]))


def hull(cost: Floats, quality: Floats) -> Ints:
    """The settings on the non-decreasing convex hull, from the cheapest; at least one.

    Left out is what is dearer and no better, and what a mix of two others beats. Q. J. Hu et al.,
    RouterBench (2024), section 3.
    """
    order = _candidates(cost, quality)
    kept: list[int] = []
    for at in order[np.lexsort((-quality[order], cost[order]))].tolist():
        if kept and quality[at] <= quality[kept[-1]]:
            continue
        while len(kept) > 1 and _below(cost, quality, (kept[-2], kept[-1], at)):
            kept.pop()
        if kept and cost[kept[-1]] == cost[at]:
            kept.pop()
        kept.append(at)
    return np.array(kept, dtype=np.int64)


def aiq(cost: Floats, quality: Floats, gap: Gap) -> float:
    """Average improvement in quality: the area under the hull over the range of cost.

    Hu et al. (2024), equation 3, over the range between the two models, with the cheapest one among
    the settings; beyond its last setting the hull is level. NaN where the range is empty.
    """
    cost = np.concatenate([[gap.weak.cost], cost])
    quality = np.concatenate([[gap.weak.quality], quality])
    on = hull(cost, quality)
    return _area(cost[on], quality[on], gap)


def auc(cost: Floats, quality: Floats, gap: Gap) -> float:
    """Area under quality over cost between the cheapest and the dearest model, over that range.

    J. Dekoninck et al., A unified approach to routing and cascading for LLMs (2024). By trapezes,
    in the order of the knob: where cost falls back, what was counted twice is taken off again.
    Beyond the last setting quality is level. NaN where the range is empty.
    """
    return _area(cost, quality, gap)


def ibc_lift(policy: Point, gap: Gap) -> float:
    """By how much the policy buys quality cheaper than the strong model does, as a share.

    With IBC = (q - q_weak) / (c - c_weak), the incremental benefit per cost, it is IBC of the
    policy over IBC of the strong model, less 1. P. Aggarwal et al., AutoMix (2023). NaN where
    either spends no more than the cheapest model, or the strong one is no better.
    """
    spent = policy.cost - gap.weak.cost
    if spent <= 0.0 or gap.cost <= 0.0 or gap.quality <= 0.0:
        return math.nan
    slope = (policy.quality - gap.weak.quality) / spent
    return slope / (gap.quality / gap.cost) - 1.0


def saved(cost: float, single: float) -> float:
    """Share of the single model's cost that is not spent; below 0 where more is."""
    return 1.0 - cost / single if single > 0.0 else math.nan


def expected_cost(costs: Floats, reached: Floats) -> float:
    """What a cascade is expected to cost: the sum of each tier's cost times the share reaching it.

    Of two tiers it is c_small + (1 - p) * c_large with p the share that is accepted: 11, 7 and 3
    for costs of 1 and 20 and p = .5, .7 and .9. It is what is spent if those that go up cost as
    much as any; the measured cost shows whether they do.
    """
    return float(costs @ reached)


def _area(x: Floats, y: Floats, gap: Gap) -> float:
    """Mean height of a polyline over the range of cost.

    It begins at the cheapest model and is level beyond its end; what lies outside the range is cut.
    """
    low, high = gap.weak.cost, gap.strong.cost
    if high <= low:
        return math.nan
    inside = np.clip(x, low, high)
    area = _under(inside, y)
    if (inside != x).any():
        area += _cut(x, y, inside)
    first = np.array([low, x[0]]), np.array([gap.weak.quality, y[0]])
    within = np.clip(first[0], low, high)
    area += _under(within, first[1]) + _cut(*first, within)
    area += float(y[-1]) * (high - float(inside[-1]))
    return area / (high - low)


def _under(x: Floats, y: Floats) -> float:
    """Area under a polyline; without `trapezoid`, which takes twice as many passes."""
    width, height = np.diff(x), y[1:] + y[:-1]
    width *= height
    return 0.5 * float(width.sum())


def _cut(x: Floats, y: Floats, inside: Floats) -> float:
    """What is to be added to the area under (inside, y) as pieces are cut where they leave."""
    cut = np.flatnonzero((np.diff(inside) != 0.0) & ((inside != x)[1:] | (inside != x)[:-1]))
    slope = (y[cut + 1] - y[cut]) / (x[cut + 1] - x[cut])
    missing = slope * (inside[cut] - x[cut] + inside[cut + 1] - x[cut + 1])
    return 0.5 * float((missing * (inside[cut + 1] - inside[cut])).sum())


def _below(cost: Floats, quality: Floats, three: tuple[int, int, int]) -> bool:
    """Whether the middle one of three is not above the line between the others."""
    one, middle, last = three
    up = (quality[middle] - quality[one]) * (cost[last] - cost[one])
    return bool(up <= (quality[last] - quality[one]) * (cost[middle] - cost[one]))


_BLOCK: Final = 256


def _candidates(cost: Floats, quality: Floats) -> Ints:
    """Settings that may be on the hull: all but those of blocks whose best corner is below it.

    A block of settings can only matter if a setting with its least cost and its best quality would
    be above the hull of some settings.
    """
    if len(cost) <= 4 * _BLOCK:
        return np.arange(len(cost))
    starts = np.arange(0, len(cost), _BLOCK)
    least = np.minimum.reduceat(cost, starts)
    best = np.maximum.reduceat(quality, starts)
    tops = np.array([at + quality[at : at + _BLOCK].argmax() for at in starts])
    some = tops[hull(cost[tops], quality[tops])]
    # Left of the first known point anything may matter; right of the last what is better.
    line = np.interp(least, cost[some], quality[some], left=-np.inf)
    alive = np.flatnonzero((best >= line) | (least <= cost[some[0]]))
    return np.concatenate([np.arange(at, min(len(cost), at + _BLOCK)) for at in starts[alive]])
