"""What our policy costs at equal quality over the best of its rivals, cell by cell and in the mean.

Which rival is the best is chosen in hindsight, on the turns that are compared and at each quality
anew; this favours the rivals, by the more the fewer turns there are. So with several seeds it is
also chosen on all seeds but one, and compared on that one. How sure a number is, is asked by
drawing each cell's seeds again.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from evals.simulate.conversations import NAIVE, OURS, PRICED, TIERS, Cell, Run
from evals.simulate.frontier import Against, Frontiers, against, averaged, hull, qualities
from evals.simulate.rivals import WITHOUT_UTILITY

BLIND: Final = "blind"
PLAIN: Final = "no rule"
RIVALS: Final[Mapping[str, Sequence[str]]] = {
    BLIND: (*WITHOUT_UTILITY, *PRICED),
    PLAIN: tuple(WITHOUT_UTILITY),
    NAIVE: (NAIVE,),
}
"""The policies that each ratio is against: those that know nothing of caches, those of them that
have no utility rule, and the utility rule with the exact bill of each call."""

TOO_DEAR: Final = 1.02
RESAMPLES: Final = 1000
_ENDS: Final = (2.5, 97.5)
_WIDE: Final = 1.96

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A cell, with our cost over that of rivals.

    Attributes:
        frontiers: in the mean of the seeds.
        against: at each quality, by the name in RIVALS.
        resampled: the cell's ratio, by the same names, with its seeds drawn again.
        elsewhere: each seed's ratio, by the same names, with the rival of each quality chosen on
            the other seeds; none with one seed.
    """

    cell: Cell
    seeds: Sequence[int]
    frontiers: Frontiers
    against: Mapping[str, Sequence[Against]]
    resampled: Mapping[str, Floats]
    elsewhere: Mapping[str, Sequence[float]]

    def ratio(self, name: str) -> float:
        """The mean over the qualities that both sides reach; nan where there is none."""
        return _mean(self.against[name])

    @property
    def outside(self) -> int:
        """Qualities that lie outside of what was swept, for us or for a rival."""
        found = self.against.values()
        return sum(not all(each.swept for each in at) for at in zip(*found, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Ratios of some cells.

    Attributes:
        ends: of the mean, over draws of each cell's seeds; None with one seed.
        spread: standard deviation from cell to cell; 0 for one.
        worst_ends: of the worst cell's ratio.
        above: share of cells above 1.02.
    """

    mean: float
    ends: tuple[float, float] | None
    spread: float
    worst: float
    worst_ends: tuple[float, float] | None
    worst_cell: str
    above: float
    above_ends: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Ratios of some cells, against rivals that were chosen on other seeds.

    Attributes:
        ends: of the mean: 95 %, from how the seeds of a cell differ.
        spread: standard deviation from cell to cell; 0 for one.
        above: share of cells above 1.02.
    """

    mean: float
    ends: tuple[float, float]
    spread: float
    worst: float
    above: float


def compared(runs: Sequence[Run]) -> Compared:
    """The runs of one cell, one a seed."""
    frontiers = averaged([run.frontiers for run in runs])
    found = _against(frontiers, RIVALS)
    ratios = {name: _mean(each) for name, each in found.items()}
    return Compared(
        cell=runs[0].cell,
        seeds=[run.seed for run in runs],
        frontiers=frontiers,
        against=found,
        resampled=_resampled(runs, ratios),
        elsewhere={name: _elsewhere(runs, rivals) for name, rivals in RIVALS.items()},
    )


def by_cell(runs: Sequence[Run]) -> list[Compared]:
    """The cells of some runs, in the order in which they come first."""
    found: dict[Cell, list[Run]] = {}
    for run in runs:
        found.setdefault(run.cell, []).append(run)
    return [compared(some) for some in found.values()]


def summary(some: Sequence[Compared], name: str) -> Summary:
    """The cells' ratios against the rivals of that name; cells without one are left out."""
    known = [each for each in some if not np.isnan(each.ratio(name))]
    ratios = [each.ratio(name) for each in known]
    worst = max(known, key=lambda each: each.ratio(name))
    sure = len(worst.seeds) > 1
    drawn = np.array([each.resampled[name] for each in known])
    return Summary(
        mean=fmean(ratios),
        ends=_ends(np.nanmean(drawn, axis=0)) if sure else None,
        spread=stdev(ratios) if len(ratios) > 1 else 0.0,
        worst=worst.ratio(name),
        worst_ends=_ends(worst.resampled[name]) if sure else None,
        worst_cell=worst.cell.name,
        above=fmean(ratio > TOO_DEAR for ratio in ratios),
        above_ends=_ends(np.mean(drawn > TOO_DEAR, axis=0)) if sure else None,
    )


def alone(some: Sequence[Compared], rival: str) -> tuple[float, float, float, float]:
    """Mean, least and largest of our cost over one rival's, and the share above 1.02.

    This rival is not chosen in hindsight. Cells where one side reaches no quality are left out.
    """
    ratios = [_mean(_against(each.frontiers, {rival: (rival,)})[rival]) for each in some]
    known = [ratio for ratio in ratios if not np.isnan(ratio)]
    return fmean(known), min(known), max(known), fmean(ratio > TOO_DEAR for ratio in known)


def chosen_elsewhere(some: Sequence[Compared], name: str) -> Elsewhere | None:
    """The cells against rivals that were chosen on other seeds; None where no cell has two seeds.

    Seeds of a cell are drawn independently, and so are cells, so the mean's standard error is
    sqrt(sum over cells of variance / seeds) / cells.
    """
    known = [each.elsewhere[name] for each in some if len(each.elsewhere[name]) > 1]
    if not known:
        return None
    means = [fmean(ratios) for ratios in known]
    error = math.sqrt(sum(variance(ratios) / len(ratios) for ratios in known)) / len(known)
    mean = fmean(means)
    return Elsewhere(
        mean=mean,
        ends=(mean - _WIDE * error, mean + _WIDE * error),
        spread=stdev(means) if len(means) > 1 else 0.0,
        worst=max(means),
        above=fmean(each > TOO_DEAR for each in means),
    )


def best_rivals(some: Sequence[Compared], name: str) -> dict[str, float]:
    """Which rival was the cheapest, as a share of cells and qualities, most often first."""
    best = [at.rival for each in some for at in each.against[name]]
    shares = {rival: best.count(rival) / len(best) for rival in RIVALS[name] if rival in best}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def grouped(
    some: Sequence[Compared], key: Callable[[Cell], float | str]
) -> dict[float | str, list[Compared]]:
    """The cells by what is asked of them."""
    found: dict[float | str, list[Compared]] = {}
    for each in some:
        found.setdefault(key(each.cell), []).append(each)
    return found


def _against(frontiers: Frontiers, rivals: Mapping[str, Sequence[str]]) -> dict[str, list[Against]]:
    at = qualities(frontiers[TIERS])
    hulls = {name: hull(points) for name, points in frontiers.items()}
    return {
        name: [against(hulls, OURS, some, quality) for quality in at]
        for name, some in rivals.items()
    }


def _elsewhere(runs: Sequence[Run], rivals: Sequence[str]) -> list[float]:
    if len(runs) == 1:
        return []
    found = []
    for at, run in enumerate(runs):
        others = [each.frontiers for i, each in enumerate(runs) if i != at]
        chosen = _against(averaged(others), {"": rivals})[""]
        hulls = {name: hull(points) for name, points in run.frontiers.items()}
        ratio = _mean(
            [
                against(hulls, OURS, (each.rival,), quality)
                for each, quality in zip(chosen, qualities(run.frontiers[TIERS]), strict=True)
                if each.rival
            ]
        )
        found += [] if math.isnan(ratio) else [ratio]
    return found


def _mean(found: Sequence[Against]) -> float:
    known = [each.ratio for each in found if each.ratio is not None]
    return fmean(known) if known else float("nan")


def _resampled(runs: Sequence[Run], ratios: Mapping[str, float]) -> dict[str, Floats]:
    """The cell's ratios when as many of its seeds are drawn with replacement.

    Few seeds drawn again scatter too little, by sqrt((n - 1) / n), which is made up for.
    """
    count = len(runs)
    random = np.random.default_rng(crc32(repr(runs[0].cell).encode()))
    draws = np.sort(random.integers(count, size=(RESAMPLES, count)), axis=1)
    kinds, which = np.unique(draws, axis=0, return_inverse=True)
    found = []
    for kind in kinds:
        drawn = averaged([runs[i].frontiers for i in kind])
        found.append({name: _mean(each) for name, each in _against(drawn, RIVALS).items()})
    widened = math.sqrt(count / (count - 1)) if count > 1 else 1.0
    return {
        name: ratio + widened * (np.array([each[name] for each in found])[which.ravel()] - ratio)
        for name, ratio in ratios.items()
    }


def _ends(values: Floats) -> tuple[float, float]:
    low, high = np.nanpercentile(values, _ENDS)
    return float(low), float(high)
