"""Plays every policy over the same tenants, cell by cell.

A cell is a line-up of tiers and a kind of traffic. A run of it plays all policies and settings over
the turns of one tenant, after those of another that are not counted: from these come the rates that
are learned and the mean prices that the flat rival decides with. Settings of knobs are swept on the
turns that are counted, for every policy alike, to draw its frontier; none is chosen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from zlib import crc32

from evals.simulate.frontier import Frontiers, Point
from evals.simulate.play import Player, list_price_of, mean_list_prices
from evals.simulate.rivals import (
    WITHOUT_UTILITY,
    Made,
    View,
    all_warm,
    as_quoted,
    exact,
    fixed,
    flat,
    list_price,
    utility,
)
from evals.simulate.truth import Skill, skills
from evals.simulate.world import TTL, Lineup, Regime, Turn, lineups, regimes, tenant

WARM_UP: Final = 150
"""Turns of the tenant from which is learned."""

WARM_UP_SEED: Final = 1000
"""Its seed is so much larger than that of the one that counts."""

HELD_OUT: Final = 100
"""The first of the seeds on which nothing was chosen."""

FACTORS: Final = (0.05, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.8, 6.0, 15.0)
"""What quality is worth to the utility rule, over the difference of the tiers' mean list prices."""

AUC: Final = 0.85
TIERS: Final = "tiers"
OURS: Final = "ours"
NAIVE: Final = "naive"
PRICED: Final = ("flat", "list", "warm")
"""The utility rule with prices that know nothing of what is warm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A line-up and a kind of traffic.

    Attributes:
        auc: the judge's.
        ttl: seconds for which the caches of the line-ups with an API keep a prefix.
    """

    lineup: str
    regime: Regime
    auc: float = AUC
    ttl: float = TTL

    @property
    def name(self) -> str:
        """In short."""
        return f"{self.lineup} {self.regime.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What all policies came to on one tenant of a cell."""

    cell: Cell
    seed: int
    turns: int
    frontiers: Frontiers


def cells(names: Sequence[str]) -> list[Cell]:
    """All 36 kinds of traffic with each of the line-ups."""
    return [Cell(lineup=name, regime=regime) for name in names for regime in regimes()]


def lineup_of(cell: Cell) -> Lineup:
    """Its tiers.

    Raises:
        KeyError: there is no line-up of that name.
    """
    return {each.name: each for each in lineups(cell.ttl)}[cell.lineup]


def timed(cell: Cell) -> bool:
    """Whether its caches keep a prefix for a time."""
    return any(card.ttl_seconds is not None for card in lineup_of(cell).caches.values())


def tenants(cell: Cell, skill: Skill, *, seed: int, turns: int) -> tuple[list[Turn], list[Turn]]:
    """The turns of the tenant from which is learned, and of the one that counts, which follows.

    Tenants of two line-ups or kinds of traffic are drawn independently of each other. What else a
    cell has changes as little of the draw as it can.
    """
    of, regime = crc32(cell.name.encode()), cell.regime
    first = tenant(regime, skill, turns=WARM_UP, seed=(seed + WARM_UP_SEED, of))
    second = tenant(regime, skill, turns=turns, seed=(seed, of), number=1, begins=first[-1].at)
    return first, second


def played(cell: Cell, seed: int, turns: int) -> Run:
    """All policies with all settings on one tenant."""
    lineup = lineup_of(cell)
    names = list(lineup.cards)
    skill = skills(lineup.abilities, names, cell.auc)
    learned, counted = tenants(cell, skill, seed=seed, turns=turns)
    both = [*learned, *counted]
    prices = mean_list_prices(lineup, learned)
    scale = float(max(prices.values()) - min(prices.values()))

    def swept(made: Made, knobs: Sequence[float], view: View, unit: float = 1.0) -> list[Point]:
        found = []
        for knob in knobs:
            policy = made(names, knob * unit)
            outcome = Player(lineup, cell.regime).play(both, policy, view, counted=len(learned))
            found.append(outcome.point(knob))
        return found

    frontiers = {TIERS: swept(fixed, range(len(names)), as_quoted)}
    for name, (made, knobs) in WITHOUT_UTILITY.items():
        frontiers[name] = swept(made, knobs, as_quoted)
    for name, view in _views(lineup, prices).items():
        frontiers[name] = swept(utility, FACTORS, view, scale)
    return Run(cell=cell, seed=seed, turns=turns, frontiers=frontiers)


def _views(lineup: Lineup, prices: Mapping[str, Decimal]) -> dict[str, View]:
    """What the utility rule is told, by the name of the policy that this makes of it."""
    listed = list_price(lambda q: list_price_of(lineup, q.tier, q.warm_tokens + q.cold_tokens))
    return {
        "flat": flat(prices),
        "list": listed,
        "warm": all_warm,
        NAIVE: exact,
        OURS: as_quoted,
    }
