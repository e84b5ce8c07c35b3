"""What a mean is at least, with a stated probability, for any number of rows.

Quality lies in [0, 1], so nothing has to be assumed of how it is spread. The bound bets against the
claim (I. Waudby-Smith, A. Ramdas, Estimating means of bounded random variables by betting, JRSS B
86, 2024): a gambler begins with 1 and stakes a share of what it has on each group of rows in turn,
knowing those before. If the claim were false its wealth would not grow, and would reach 1 / delta
with probability delta at most (Ville's inequality). So where it does, the claim stands.

Betting is used rather than Hoeffding's inequality or an empirical Bernstein bound because it is
never much wider than either, and far narrower where a policy nearly always does what it is compared
with. Groups of like rows are bet on as a whole, since their rows are not independent: that needs
the size of the largest group, which is taken from all rows. For right and wrong answers that stand
alone, the exact binomial interval is narrower still.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Floats = NDArray[np.float64]
Texts = NDArray[np.str_]

STAKE: Final = 0.75
"""The largest share of what could be lost that is ever staked."""
_PRIOR: Final = 0.25
"""Variance of a value in [0, 1] that nothing is known of, which counts as one group."""

_SEED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """What a claim of the form mean(value) >= level * mean(yardstick) is tested on, by group.

    Attributes:
        values: sum of the values of each group's rows.
        yardsticks: sum of the yardstick's; of 1 each where the level is absolute.
        sizes: rows of each group.
        largest: rows of the largest group that there is.
        least: the least that a value can be, 0 or -1.
    """

    values: Floats
    yardsticks: Floats
    sizes: Floats
    largest: int
    least: float

    def __len__(self) -> int:
        return len(self.values)

    def margins(self, level: float) -> Floats:
        """What each group adds for the claim, as a share of what a group could take away.

        The level is not 0 where nothing can be below it.
        """
        worst = self.largest * (max(level, 0.0) - self.least)
        return (self.values - level * self.yardsticks) / worst


def paired(
    values: Floats,
    groups: Texts,
    *,
    yardstick: Floats | None = None,
    largest: int = 1,
    least: float = 0.0,
) -> Paired:
    """Rows as what claims are tested on; groups in an order drawn by a fixed seed.

    Names of groups, and the order of a file, may tell what is in them, and a gambler who sees the
    good ones first would be misled.

    Args:
        values: of each row, from least to 1.
        groups: of each row.
        yardstick: of each row, in [0, 1]; None: 1 each.
        largest: rows of the largest group known, where that is not among these.
        least: the least that a value can be.
    """
    names, member = np.unique(groups, return_inverse=True)
    member = np.random.default_rng(_SEED).permutation(len(names))[member]
    sizes = np.bincount(member).astype(np.float64)
    weights = np.ones(len(values)) if yardstick is None else yardstick
    return Paired(
        values=np.bincount(member, weights=values).astype(np.float64),
        yardsticks=np.bincount(member, weights=weights).astype(np.float64),
        sizes=sizes,
        largest=max(largest, int(sizes.max(initial=1.0))),
        least=least,
    )


def holds(found: Paired, level: float, delta: float) -> bool:
    """Whether mean(value) >= level * mean(yardstick) can be said, being wrong with delta at most.

    The level must not come from these rows.
    """
    if level <= found.least:
        return True
    return _wealth(found.margins(level), delta) >= math.log(1.0 / delta)


def at_least(found: Paired, delta: float, *, lowest: float = 0.0, highest: float = 1.0) -> float:
    """The level that the ratio of the means is at least, being wrong with delta at most.

    Every level up to it can be ruled out; `lowest` where none can. For right and wrong answers in
    groups of one and no yardstick it is the lower end of the exact interval (C. Clopper, E.
    Pearson, 1934).
    """
    if _are_trials(found):
        right, trials = int(found.values.sum()), len(found)
        return float(betaincinv(right, trials - right + 1, delta)) if right else 0.0
    reached = lowest
    for step in (0.01, 0.0005):
        while reached + step <= highest and holds(found, reached + step, delta):
            reached += step
    return round(reached, 4)


def rows_needed(found: Paired, level: float, delta: float, *, doubt: float = 0.0) -> int | None:
    """About how many rows of this kind would carry the claim, more often than not; None: no number.

    With mean m and standard deviation s of a group's margin, the stakes that suit n groups multiply
    what is there by exp(m sqrt(2 n log(1/delta)) / s) / (1/delta), which is enough from
    n = 2 log(1/delta) (s / m)^2 on; with the largest stake b it takes log(1/delta) / log(1 + b m).

    Args:
        found: the rows that m and s are taken from.
        level: of the claim.
        delta: of the claim.
        doubt: standard errors that are taken off the mean, which is known from these rows only.
    """
    margins = found.margins(level)
    spread = float(margins.std())
    mean = float(margins.mean()) - doubt * spread / math.sqrt(len(margins))
    if mean <= 0.0:
        return None
    target = math.log(1.0 / delta)
    groups = max(2.0 * target * (spread / mean) ** 2, target / math.log1p(STAKE * mean))
    return math.ceil(groups * float(found.sizes.mean()))


def _are_trials(found: Paired) -> bool:
    alone = found.largest == 1 and found.least == 0.0 and bool((found.yardsticks == 1.0).all())
    return alone and bool(np.isin(found.values, (0.0, 1.0)).all())


def _wealth(margins: Floats, delta: float) -> float:
    """Log of the most that is ever there, betting on groups in turn.

    The stake on a group is sqrt(2 log(1/delta) / (n v)), v being the variance of the groups before
    it, and STAKE at most.

    Args:
        margins: of each group, at least -1.
        delta: what the stakes are meant for.
    """
    count = len(margins)
    seen = np.arange(1, count + 1)
    centre = np.cumsum(margins) / (seen + 1)
    variance = (_PRIOR + np.cumsum((margins - centre) ** 2)) / (seen + 1)
    before = np.concatenate([[_PRIOR], variance[:-1]])
    stakes = np.minimum(STAKE, np.sqrt(2.0 * math.log(1.0 / delta) / (count * before)))
    return float(np.log1p(stakes * margins).cumsum().max(initial=0.0))
