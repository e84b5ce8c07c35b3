"""Intervals that stay valid however often somebody looks, for estimates that grow by units.

An ordinary 95 % interval holds at one time that was fixed before. Who looks every day and stops at
the first interval without zero is wrong far more often. A confidence sequence holds at all times at
once: with probability 1 - alpha the truth is in every one of its intervals.

This is the asymptotic confidence sequence with the normal mixture (Waudby-Smith, Arbour, Sinha,
Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences", Annals
of Statistics, 2024). Its conditions: units come one after another and do not depend on each other,
the variance of a unit's contribution is finite, and there are enough units for the variance to be
known well when one looks first. Before `LEAST_UNITS` in each arm there is no interval at all.
"""

import math
from dataclasses import dataclass, replace

ALPHA = 0.05
LEAST_UNITS = 50
TIGHTEST_AT = 2_000
"""Units at which the interval is narrowest, against one for a single look. It is chosen before any
data is seen, once for all: from 500 to 50,000 units the interval is at most 12 % wider than one
that was tuned for just that number."""


_MOST_STEPS = 142  # of 5 % each: a thousand times as many


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its bounds, all in the same unit."""

    estimate: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the sign is known."""
        return self.low > 0 or self.high < 0

    def within(self, lowest: float, highest: float) -> "Interval":
        """The same, less what cannot be."""
        return replace(self, low=max(self.low, lowest), high=min(self.high, highest))


def half_width(
    standard_error: float, units: int, *, alpha: float = ALPHA, tightest_at: int = TIGHTEST_AT
) -> float:
    """How far the truth may be from the estimate, at every time at once.

    Args:
        standard_error: of the estimate now.
        units: that the estimate rests on now, of all arms.
        alpha: the chance that the truth is ever outside.
        tightest_at: units at which it is to be narrowest.

    Returns:
        In the unit of the standard error. With rho^2 the mixture's variance and t the units it is
        se * sqrt((1 + 1/(t rho^2)) * (2 log(1/alpha) + log(1 + t rho^2))).
    """
    level = -2.0 * math.log(alpha)
    mixed = units * (level + math.log(level) + 1.0) / tightest_at
    return standard_error * math.sqrt((1.0 + 1.0 / mixed) * (level + math.log1p(mixed)))


def units_for(width: float, now: float, units: int) -> int | None:
    """How many units in all would bring the half width down, if they spread as those so far.

    Args:
        width: to come down to.
        now: the half width now.
        units: that it rests on.

    Returns:
        None when it would take more than a thousand times as many.
    """
    one = now / half_width(1.0, units) * math.sqrt(units)
    for wanted in (math.ceil(units * 1.05**step) for step in range(_MOST_STEPS)):
        if half_width(one / math.sqrt(wanted), wanted) <= width:
            return wanted
    return None


def interval(
    estimate: float, standard_error: float, units: int, *, alpha: float = ALPHA
) -> Interval:
    """The estimate within its bounds."""
    width = half_width(standard_error, units, alpha=alpha)
    return Interval(estimate=estimate, low=estimate - width, high=estimate + width)


def relative(estimate: float, log_error: float, units: int, *, alpha: float = ALPHA) -> Interval:
    """A ratio to something, less one, within bounds that are symmetric in its logarithm.

    Args:
        estimate: the ratio, above 0.
        log_error: standard error of its logarithm.
        units: that it rests on.
        alpha: the chance that the truth is ever outside.
    """
    width = half_width(log_error, units, alpha=alpha)
    return Interval(
        estimate=estimate - 1.0,
        low=estimate * math.exp(-width) - 1.0,
        high=estimate * math.exp(width) - 1.0,
    )
