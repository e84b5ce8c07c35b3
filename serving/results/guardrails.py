"""The bounds at which an arm is turned off by itself, and whether an arm is beyond one.

An arm is beyond a bound when the whole of its interval is, so it is not turned off by bad luck. The
intervals of one experiment share the level of false alarms: with k bounds and arms to watch, each
is at ALPHA / k, so that the chance of ever turning off an arm that is within all bounds is at most
ALPHA, however often one looks, for each time that the results begin anew.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import Engine

from serving.results import tallies, times
from serving.results.comparisons import Comparison, Measured, compare, measure
from serving.results.ratios import NOTHING, Difference, from_level
from serving.results.sequences import ALPHA, Interval
from serving.results.trial import Trial

QUALITY, COST, ERRORS, LATENCY = "quality", "cost", "error_rate", "latency_p95"
SLOW = 0.05
"""Of the requests, those that take longer than the 95th percentile."""

_ALL = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """An arm that is worse than a bound, with confidence.

    Attributes:
        arm: its name.
        guardrail: which bound.
        bound: as configured.
        interval: what is known of the arm against the control, all of it beyond the bound.
    """

    arm: str
    guardrail: str
    bound: float
    interval: Interval

    @property
    def message(self) -> str:
        """What happened, for people."""
        low, high = (f"{value:+.3g}" for value in (self.interval.low, self.interval.high))
        return (
            f"{self.arm} is beyond the guardrail {self.guardrail} of {self.bound:+g}: against the "
            f"control it is at {self.interval.estimate:+.3g} [{low}, {high}]"
        )


def breaches(engine: Engine, trial: Trial, measured: Measured | None = None) -> list[Breach]:
    """The arms that are beyond a bound; an arm once, by the first bound.

    Args:
        engine: of the audit database.
        trial: the experiment, its bounds and the time that counts.
        measured: its sums, if they are known already.
    """
    if not trial.guardrails:
        return []
    sums = measured or measure(engine, trial)
    arms = [arm for arm in sums.tallies if arm != trial.control]
    watched = [arm for arm in arms if trial.weights.get(arm, 1.0) > 0]
    if not watched or trial.control not in sums.tallies:
        return []
    alpha = ALPHA / (_number_watched(trial, watched) * _bounds(trial, sums))
    slow = _latency(engine, trial, alpha)
    found = []
    for arm in watched:
        comparison = compare(arm, sums, trial, alpha=alpha)
        seen = [*_beyond(comparison, trial.guardrails)]
        if arm in slow:
            seen.append((LATENCY, slow[arm]))
        found += [
            Breach(arm=arm, guardrail=name, bound=trial.guardrails[name], interval=interval)
            for name, interval in seen[:1]
        ]
    return found


def _number_watched(trial: Trial, watched: Sequence[str]) -> int:
    """How many arms may be found beyond a bound: also those that nobody was in yet."""
    dealt = [arm for arm, weight in trial.weights.items() if weight > 0 and arm != trial.control]
    return max(len(watched), len(dealt))


def _bounds(trial: Trial, measured: Measured) -> int:
    """How many intervals of one arm are held against a bound."""
    number = len(trial.guardrails)
    if QUALITY in trial.guardrails:
        number += max(0, len(measured.quality) - 1)
    return number


def _beyond(comparison: Comparison, bounds: Mapping[str, float]) -> Iterator[tuple[str, Interval]]:
    for name, differences in _LOOKED_AT.items():
        if name not in bounds:
            continue
        for difference in differences(comparison):
            found = difference.interval
            if found is None:
                continue
            beyond = found.high < bounds[name] if name == QUALITY else found.low > bounds[name]
            if beyond:
                yield name, found


def _qualities(comparison: Comparison) -> Sequence[Difference]:
    return [each for name, each in comparison.quality.items() if name != "preference"]


_LOOKED_AT: Mapping[str, Callable[[Comparison], Sequence[Difference]]] = MappingProxyType(
    {
        QUALITY: _qualities,
        COST: lambda comparison: [comparison.cost],
        ERRORS: lambda comparison: [comparison.rates[ERRORS]],
    }
)


def _latency(engine: Engine, trial: Trial, alpha: float) -> dict[str, Interval]:
    """By arm beyond the bound, how much longer its 95th percentile is, relative to the control's.

    Each percentile lies between the values whose shares of longer requests are certain to be above
    and below 5 % (Woodruff, "Confidence intervals for medians and other position measures", 1952).
    """
    if LATENCY not in trial.guardrails:
        return {}
    with engine.connect() as connection:
        histograms = times.of_requests(connection, trial, most=_ALL)
        known = {}
        for arm, histogram in histograms.items():
            if (value := histogram.quantile(1.0 - SLOW)) is None:
                continue
            slower = tallies.slower_than(connection, trial, value).get(arm, NOTHING)
            share = from_level(slower, SLOW, alpha=alpha / 2).interval
            if share is not None:
                width = max(share.high - share.estimate, share.estimate - share.low)
                bounds = (1.0 - SLOW - width, 1.0 - SLOW + width)
                low, high = (histogram.quantile(min(max(b, 0.0), 1.0)) for b in bounds)
                known[arm] = (low, value, high if bounds[1] < 1.0 else None)
    control = known.pop(trial.control, None)
    if control is None:
        return {}
    found = {}
    for arm, mine in known.items():
        interval = _longer(mine, control)
        if interval is not None and interval.low > trial.guardrails[LATENCY]:
            found[arm] = interval
    return found


def _longer(
    mine: tuple[float | None, float, float | None],
    control: tuple[float | None, float, float | None],
) -> Interval | None:
    low, value, high = mine
    lowest, middle, highest = control
    if low is None or not highest or not middle:
        return None
    return Interval(
        estimate=value / middle - 1.0,
        low=low / highest - 1.0,
        high=high / lowest - 1.0 if high and lowest else float("inf"),
    )
