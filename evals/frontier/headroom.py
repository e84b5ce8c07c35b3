"""What there is to gain at all: how far apart the tiers are, and how hard the prompts."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evals.frontier.known import Known
from evals.frontier.metrics import hull
from evals.frontier.replayed import oracle
from evals.metrics import Point
from evals.tables import OutcomeTable

RIGHT: Final = 0.5
"""Qualities from this on count as right where right and wrong are told apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """What the test rows leave to be gained.

    Attributes:
        best: the best single tier, by the fit rows.
        cheapest: the cheapest tier.
        singles: cost and quality of each tier alone, by name.
        oracle: the best quality there is, each answer by the cheapest tier that has it.
        oracle_cost: share of the best single tier's cost that an oracle of its quality spends.
        all_right: share of prompts on which every tier is right.
        all_wrong: share on which none is.
        only_dearer: share that the cheapest fails and another tier gets right.
        only_cheapest: share that the cheapest gets right and the best single tier fails.
    """

    best: str
    cheapest: str
    singles: dict[str, Point]
    oracle: Point
    oracle_cost: float
    all_right: float
    all_wrong: float
    only_dearer: float
    only_cheapest: float


def headroom(table: OutcomeTable, known: Known) -> Headroom:
    """Measured on the rows of a table that every tier has answered."""
    rows = np.arange(len(table))
    right = table.quality >= RIGHT
    top = table.quality == table.quality.max(axis=1, keepdims=True)
    taken = np.where(top, table.cost, np.inf).argmin(axis=1)
    singles = {
        tier: Point(float(table.cost[:, at].mean()), float(table.quality[:, at].mean()))
        for at, tier in enumerate(table.tiers)
    }
    best = table.tiers[known.best]
    return Headroom(
        best=best,
        cheapest=table.tiers[0],
        singles=singles,
        oracle=Point(
            float(table.cost[rows, taken].mean()), float(table.quality[rows, taken].mean())
        ),
        oracle_cost=_oracle_cost(table, singles[best]),
        all_right=float(right.all(axis=1).mean()),
        all_wrong=float((~right).all(axis=1).mean()),
        only_dearer=float((~right[:, 0] & right[:, 1:].any(axis=1)).mean()),
        only_cheapest=float((right[:, 0] & ~right[:, known.best]).mean()),
    )


def _oracle_cost(table: OutcomeTable, single: Point) -> float:
    """The least that the single tier's quality can be had for, as a share of its cost.

    The oracle's convex hull, where quality is bought where it is cheapest first.
    """
    curve = oracle().curve(table)
    on = hull(curve.cost, curve.quality)
    cost = float(np.interp(single.quality, curve.quality[on], curve.cost[on]))
    return cost / single.cost if single.cost else np.nan
