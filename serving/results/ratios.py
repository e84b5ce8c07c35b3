"""What arms differ by, from sums over units that a database adds up.

Everything that is compared is a ratio of two sums: dollars over requests, scores over scored
requests. Requests of one unit depend on each other, so the unit is what counts once: the ratio R of
an arm has the variance of sum(S - R N) / sum(N) over its units (the delta method; Deng, Knoblich
and Lu, "Applying the delta method in metric analytics", KDD 2018).

What a unit did before the experiment explains part of what it does now and has nothing to do with
its arm. Taking that part out makes intervals narrower and moves no expected value (CUPED; Deng, Xu,
Kohavi and Walker, WSDM 2013). The covariate is a unit's own sum before, less what its requests
would have come to at everybody's mean; a unit that was not there before has zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from serving.results.sequences import ALPHA, LEAST_UNITS, Interval, interval, relative


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """One ratio of one arm, summed over its units.

    Attributes:
        units: that have anything below the line.
        s: sum of what is above the line, of each unit S.
        n: sum of what is below it, of each unit N.
        ss: sum of S^2; sn, nn likewise.
        x: sum of the covariate X; 0 without one. xx, sx, nx likewise.
    """

    units: int
    s: float
    n: float
    ss: float
    sn: float
    nn: float
    x: float = 0.0
    xx: float = 0.0
    sx: float = 0.0
    nx: float = 0.0

    @property
    def ratio(self) -> float | None:
        """S over N; None when there is nothing below the line."""
        return self.s / self.n if self.n > 0 else None


NOTHING = Sums(units=0, s=0.0, n=0.0, ss=0.0, sn=0.0, nn=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A ratio with the standard error that its units give it."""

    ratio: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An arm against the control arm in one respect.

    Attributes:
        arm: the ratio of the arm, as it was counted; None when it has none.
        control: the same of the control arm.
        units: that it rests on, of both arms.
        needs: units that the smaller side still needs before there can be an interval.
        interval: the arm less the control, or the arm over the control less one; None when there
            are too few units, or nothing to compare with.
        reduced: the share of the variance that what units did before has taken away.
    """

    arm: float | None
    control: float | None
    units: int
    needs: int = 0
    interval: Interval | None = None
    reduced: float = 0.0


def difference(
    arm: Sums, control: Sums, *, bounded: bool, alpha: float = ALPHA, as_ratio: bool = False
) -> Difference:
    """The arm against the control arm.

    Args:
        arm: sums of the arm.
        control: sums of the control arm.
        bounded: each thing counted is between 0 and 1, so that one more of either kind may come at
            any time: it keeps an interval from closing on 0 because nothing was seen yet.
        alpha: the chance that the truth is ever outside the interval.
        as_ratio: relative to the control arm, rather than the plain difference.
    """
    units = arm.units + control.units
    needs = max(0, LEAST_UNITS - min(arm.units, control.units))
    plain = Difference(arm=arm.ratio, control=control.ratio, units=units, needs=needs)
    if needs or arm.n <= 0 or control.n <= 0:
        return plain
    slope = _slope((arm, control))
    middle = (arm.x + control.x) / units
    mine, theirs = (estimate(each, slope, middle, bounded=bounded) for each in (arm, control))
    if as_ratio and (mine.ratio <= 0 or theirs.ratio <= 0):
        return plain
    raw = [estimate(each, 0.0, 0.0, bounded=bounded) for each in (arm, control)]
    before, after = _variance(raw), _variance((mine, theirs))
    if as_ratio:
        error = math.hypot(mine.error / mine.ratio, theirs.error / theirs.ratio)
        found = relative(mine.ratio / theirs.ratio, error, units, alpha=alpha)
    else:
        found = interval(mine.ratio - theirs.ratio, math.sqrt(after), units, alpha=alpha)
        found = found.within(-1.0, 1.0) if bounded else found
    reduced = max(0.0, 1.0 - after / before) if before > 0 else 0.0
    return replace(plain, interval=found, reduced=reduced)


def from_level(sums: Sums, level: float, *, alpha: float = ALPHA) -> Difference:
    """A ratio of things between 0 and 1 against a level that is known."""
    needs = max(0, LEAST_UNITS - sums.units)
    plain = Difference(arm=sums.ratio, control=level, units=sums.units, needs=needs)
    if needs or sums.n <= 0:
        return plain
    found = estimate(sums, 0.0, 0.0, bounded=True)
    around = interval(found.ratio - level, found.error, sums.units, alpha=alpha)
    return replace(plain, interval=around.within(-level, 1.0 - level))


def estimate(sums: Sums, slope: float, middle: float, *, bounded: bool) -> Estimate:
    """One arm's ratio, freed of what its units did before.

    Args:
        sums: of at least two units.
        slope: how much of the covariate to take out.
        middle: mean of the covariate over all arms.
        bounded: see `difference`.
    """
    units, mean = sums.units, sums.n / sums.units
    ratio = sums.s / sums.n
    squares = sums.ss - 2.0 * ratio * sums.sn + ratio**2 * sums.nn
    if bounded:
        squares += mean**2 * ((1.0 - ratio) ** 2 + ratio**2)
    covariate = sums.xx - sums.x**2 / units
    with_it = sums.sx - ratio * sums.nx
    squares += slope**2 * mean**2 * covariate - 2.0 * slope * mean * with_it
    variance = max(0.0, squares) / ((units - 1) * units * mean**2)
    return Estimate(
        ratio=ratio - slope * (sums.x / units - middle),
        error=math.sqrt(variance),
    )


def _slope(arms: Sequence[Sums]) -> float:
    """Least squares of a unit's contribution on the covariate, within arms; 0 without one."""
    with_it = covariate = 0.0
    for arm in arms:
        if arm.ratio is not None:
            with_it += (arm.sx - arm.ratio * arm.nx) * arm.units / arm.n
            covariate += arm.xx - arm.x**2 / arm.units
    return with_it / covariate if covariate > 0 else 0.0


def _variance(arms: Sequence[Estimate]) -> float:
    return sum(each.error**2 for each in arms)
