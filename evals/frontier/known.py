"""What policies may know before they decide: learned from the fit rows, and from nothing else."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cascade.errors import CascadeError
from evals.frontier.metrics import hull
from evals.frontier.sweep import Floats
from evals.tables import OutcomeTable

_PAIR: Final = 2


class FrontierError(CascadeError):
    """A table cannot be replayed; says what is missing and what to do."""

    code = "not_replayed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What a call is expected to cost by the length of its prompt: at + slope * characters.

    The answer's length is not known when a policy decides, so a bill may not decide: it would tell
    of the answer.
    """

    at: float
    slope: float = 0.0

    def of(self, lengths: Floats) -> Floats:
        """Expected dollars of prompts of these lengths."""
        if self.slope == 0.0:
            return np.full(len(lengths), self.at)
        return np.maximum(0.0, self.at + self.slope * lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the fit rows say.

    Attributes:
        tiers: of the table, the cheapest first.
        best: the single tier with the best quality.
        strong: the best of those that are not the cheapest: what a pair of tiers goes up to.
        mix: the tiers between which a random mix is straight and best, from the cheapest.
        dearest: the tier with the largest mean cost.
        rates: mean quality of each tier, of shape (tiers,).
        lines: what a call to each tier is expected to cost.
        judging: what judging an answer of each tier is expected to cost; NaN without a judge.
        grouped: requests are looked up by their group, as the table has no kinds.
        kinds: of the fit rows, or their groups.
        kind_rates: mean quality of each tier by kind, of shape (kinds, tiers).
    """

    tiers: tuple[str, ...]
    best: int
    strong: int
    mix: tuple[int, ...]
    dearest: int
    rates: Floats
    lines: tuple[Line, ...]
    judging: Floats
    grouped: bool
    kinds: NDArray[np.str_]
    kind_rates: Floats

    def quotes(self, table: OutcomeTable) -> Floats:
        """Expected dollars of each call, of shape (rows, tiers)."""
        return np.stack([line.of(table.lengths) for line in self.lines], axis=1)

    def judged(self) -> list[int]:
        """Tiers whose answers are judged."""
        return np.flatnonzero(~np.isnan(self.judging)).tolist()

    def by_kind(self, table: OutcomeTable) -> Floats:
        """Mean quality of a row's kind on the fit rows, of shape (rows, tiers); of all for others.

        Any kind that was not seen is believed to be as the others in the mean.
        """
        names = table.groups if self.grouped else table.kinds
        place = np.minimum(np.searchsorted(self.kinds, names), len(self.kinds) - 1)
        seen = self.kinds[place] == names
        return np.where(seen[:, None], self.kind_rates[place], self.rates)


def complete(table: OutcomeTable) -> OutcomeTable:
    """The rows whose quality and cost are known of every tier: those that can be replayed.

    What the judge's verdicts on a row cost has to be known as well.

    Raises:
        FrontierError: there are none, or the table has one tier alone.
    """
    if len(table.tiers) < _PAIR:
        raise FrontierError(
            f"{table.source}: has only the tier {table.tiers[0]}: there is nothing to route between"
        )
    known = ~np.isnan(table.quality).any(axis=1)
    priced = ~np.isnan(table.cost)
    if not known.any():
        raise FrontierError(f"{table.source}: no row has the quality of every tier")
    if unpriced := [t for t, some in zip(table.tiers, priced.T, strict=True) if not some.any()]:
        raise FrontierError(
            f"{table.source}: nothing says what an answer of {unpriced[0]} costs: give a column "
            f"cost.{unpriced[0]}, or its price by --price {unpriced[0]}=DOLLARS"
        )
    paid = ~np.isnan(table.judge_cost).any(axis=1)
    kept = np.flatnonzero(known & priced.all(axis=1) & paid)
    found = table if len(kept) == len(table) else table.take(kept)
    if not len(found):
        lack = "" if paid.any() else ": nothing says what judging them costs"
        raise FrontierError(f"{table.source}: no row has the quality and the cost of all{lack}")
    return found


def learn(table: OutcomeTable) -> Known:
    """What the fit rows of a table say, which are all rows that are not of another split.

    Raises:
        FrontierError: there are no fit rows.
    """
    fit = complete(table).of("fit")
    if not len(fit):
        raise FrontierError(
            f"{table.source}: there are no fit rows: give some rows the split fit, or leave the "
            "column of splits out to have them drawn"
        )
    rates, costs = fit.quality.mean(axis=0), fit.cost.mean(axis=0)
    strong = 1 + int(rates[1:].argmax())
    mix = hull(costs, rates).tolist()
    grouped = not (fit.kinds != "").any()
    names, member = np.unique(fit.groups if grouped else fit.kinds, return_inverse=True)
    counts = np.bincount(member)
    by_kind = [np.bincount(member, weights=some) / counts for some in fit.quality.T]
    return Known(
        tiers=fit.tiers,
        best=int(rates.argmax()),
        strong=strong,
        mix=tuple(mix) if len(mix) > 1 else (0, strong),
        dearest=int(costs.argmax()),
        rates=rates,
        lines=tuple(_line(fit.lengths, some) for some in fit.cost.T),
        judging=np.array(
            [_mean_where(*each) for each in zip(fit.judge_cost.T, fit.judged.T, strict=True)]
        ),
        grouped=grouped,
        kinds=names,
        kind_rates=np.stack(by_kind, axis=1),
    )


def _line(lengths: Floats, costs: Floats) -> Line:
    """Least squares over the prompt's length; the mean where that says nothing or less is more."""
    if np.ptp(costs) == 0.0:
        return Line(at=float(costs[0]))
    if np.isnan(lengths).any() or np.ptp(lengths) == 0.0:
        return Line(at=float(costs.mean()))
    off = lengths - lengths.mean()
    slope = float(off @ costs / (off @ off))
    if slope <= 0.0:
        return Line(at=float(costs.mean()))
    return Line(at=float(costs.mean() - slope * lengths.mean()), slope=slope)


def _mean_where(costs: Floats, judged: Floats) -> float:
    known = ~np.isnan(judged)
    return float(costs[known].mean()) if known.any() else np.nan
