"""What pictures show of a curve: few enough settings to be drawn and hovered over."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from evals.frontier.figures import Result
from evals.frontier.measure import Frontier
from evals.frontier.sweep import Curve, Floats, Ints

MOST: Final = 250


class Line(NamedTuple):
    """A policy's settings: knob, cost and quality of each, and the shares of shape (n, tiers)."""

    name: str
    knob: str
    curve: Curve


def lines(frontier: Frontier) -> Iterator[Line]:
    """The settings that somebody might run, thinned evenly; the ends and the hull are kept."""
    for result in frontier.results.values():
        yield Line(result.name, result.knob, _thinned(result))


def _thinned(result: Result) -> Curve:
    curve = result.curve
    if result.sound <= MOST:
        return _at(curve, np.arange(result.sound))
    steps = _scaled(curve.cost[: result.sound]) + _scaled(curve.quality[: result.sound])
    way = np.concatenate([[0.0], np.cumsum(steps)])
    even = np.searchsorted(way, np.linspace(0.0, way[-1], MOST))
    hull = result.hull[:: 1 + len(result.hull) // MOST]
    last = result.sound - 1
    return _at(curve, np.unique(np.concatenate([even, hull, [last]]).clip(0, last)))


def _at(curve: Curve, kept: Ints) -> Curve:
    return Curve(
        knob=curve.knob[kept],
        cost=curve.cost[kept],
        quality=curve.quality[kept],
        shares=curve.shares[kept],
    )


def _scaled(values: Floats) -> Floats:
    """Lengths of the steps, as shares of the whole range."""
    steps = np.abs(np.diff(values))
    span = np.ptp(values)
    return steps / span if span > 0.0 else steps
