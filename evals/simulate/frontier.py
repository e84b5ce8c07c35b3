"""What quality costs under a policy: the frontier that its knob draws, and two of them compared.

Policies have different knobs, so that two of them are only comparable at the same quality. A policy
that plays one setting for some tenants and another for the rest reaches every mean of the two, so
its frontier is the lower convex hull of its points.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

FRACTIONS: Final = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Of the way from the quality of the cheapest tier to that of the dearest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What a policy came to with one setting of its knob.

    Attributes:
        knob: its setting.
        quality: acceptable answers, as a share of turns.
        dollars: a turn.
        switches: turns answered by another tier than the one before, as a share of turns.
        premium: share of the dollars that was spent because a prefix was cold.
    """

    knob: float
    quality: float
    dollars: float
    switches: float
    premium: float


Frontiers = Mapping[str, Sequence[Point]]
"""Points by policy, in the order of the knob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """A policy's cost over that of the best of some rivals, at one quality.

    Attributes:
        ratio: None where one side reaches that quality with no setting.
        rival: the best, chosen in hindsight; empty where none reaches it.
        swept: whether the quality lies between settings of both; else the ratio is of the nearest
            one that is at least as good.
    """

    ratio: float | None
    rival: str
    swept: bool


def hull(points: Sequence[Point]) -> list[Point]:
    """The lower convex hull of cost over quality, without what is dearer and no better."""
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (-p.quality, p.dollars)):
        if not best or point.dollars < best[-1].dollars:
            best.append(point)
    found: list[Point] = []
    for point in reversed(best):
        while len(found) > 1 and _slope(found[-2], found[-1]) >= _slope(found[-1], point):
            found.pop()
        found.append(point)
    return found


def cost_at(frontier: Sequence[Point], quality: float) -> float | None:
    """Dollars a turn at that quality on a hull; None above its best point.

    Below its least point it is what that one costs, which is good enough.
    """
    place = bisect_left(frontier, quality, key=lambda p: p.quality)
    if place == len(frontier):
        return None
    high = frontier[place]
    if place == 0:
        return high.dollars
    low = frontier[place - 1]
    return low.dollars + _slope(low, high) * (quality - low.quality)


def qualities(tiers: Sequence[Point]) -> list[float]:
    """The qualities at which policies are compared, from what each tier alone comes to."""
    low, high = tiers[0].quality, tiers[-1].quality
    return [low + fraction * (high - low) for fraction in FRACTIONS]


def against(hulls: Frontiers, one: str, rivals: Sequence[str], quality: float) -> Against:
    """One policy's cost at a quality over that of the cheapest of its rivals there."""
    ours = cost_at(hulls[one], quality)
    costs = {r: cost for r in rivals if (cost := cost_at(hulls[r], quality)) is not None}
    if not costs:
        return Against(ratio=None, rival="", swept=False)
    rival = min(costs, key=lambda r: costs[r])
    if ours is None:
        return Against(ratio=None, rival=rival, swept=False)
    swept = all(hulls[each][0].quality <= quality for each in (one, rival))
    return Against(ratio=ours / costs[rival], rival=rival, swept=swept)


def averaged(runs: Sequence[Frontiers]) -> dict[str, list[Point]]:
    """The mean of several runs with the same knobs, as if their tenants were one."""
    found = {}
    for policy in runs[0]:
        settings = zip(*(run[policy] for run in runs), strict=True)
        found[policy] = [_mean(setting) for setting in settings]
    return found


def _slope(low: Point, high: Point) -> float:
    return (high.dollars - low.dollars) / (high.quality - low.quality)


def _mean(points: Sequence[Point]) -> Point:
    dollars = sum(p.dollars for p in points)
    return Point(
        knob=points[0].knob,
        quality=sum(p.quality for p in points) / len(points),
        dollars=dollars / len(points),
        switches=sum(p.switches for p in points) / len(points),
        premium=sum(p.premium * p.dollars for p in points) / dollars,
    )
