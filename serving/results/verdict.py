"""What an experiment says of an arm, in a sentence that anybody can read, and in a word."""

from enum import StrEnum

from serving.results.clauses import Clause, clause
from serving.results.comparisons import JUDGE, PREFERENCE, Comparison
from serving.results.results import Results
from serving.results.sequences import Interval, units_for

_POINTS = 100.0
_EVEN = 0.05  # percent or points: what rounds to nothing


class Decision(StrEnum):
    """What follows.

    `broken`: the arms did not get their share of units. `early`: too little is known. `take`: it
    costs less, and its quality is not lower by more than the margin. `worse`: its quality is lower
    by more than the margin. `dearer`: its quality is higher and it costs more, which is for
    somebody to weigh. `drop`: it costs more, and its quality is not higher by more than the margin.
    """

    BROKEN = "broken"
    EARLY = "early"
    UNDECIDED = "undecided"
    TAKE = "take"
    DEARER = "dearer"
    WORSE = "worse"
    DROP = "drop"


_WITH_MARGIN = frozenset({Decision.TAKE, Decision.WORSE, Decision.DROP})


def decision(results: Results, comparison: Comparison) -> Decision:
    """What follows from an arm's intervals."""
    if results.shares is not None and results.shares.broken:
        return Decision.BROKEN
    cost = comparison.cost.interval
    source = comparison.source
    if cost is None or source is None:
        return Decision.EARLY
    quality = comparison.quality[source].interval
    if quality is None:
        return Decision.EARLY
    return _decided(cost, quality, results.trial.margin)


def _decided(cost: Interval, quality: Interval, margin: float) -> Decision:
    if quality.high < -margin:
        return Decision.WORSE
    if quality.low > -margin and cost.high < 0:
        return Decision.TAKE
    if quality.low > 0 and cost.low > 0:
        return Decision.DEARER
    if quality.high < margin and cost.low > 0:
        return Decision.DROP
    return Decision.UNDECIDED


def units_to_decide(results: Results, comparison: Comparison) -> int | None:
    """About how many more units, whose quality is known, would decide what is not decided yet.

    None when it is decided, or too early to tell, or when it would take very many. It assumes that
    the difference in quality stays as it is.
    """
    source = comparison.source
    if decision(results, comparison) is not Decision.UNDECIDED or source is None:
        return None
    quality = comparison.quality[source]
    found = quality.interval
    if found is None:
        return None
    width = max(found.high - found.estimate, found.estimate - found.low)
    wanted = units_for(abs(found.estimate + results.trial.margin), width, quality.units)
    return None if wanted is None or wanted <= quality.units else wanted - quality.units


def sentence(results: Results, comparison: Comparison) -> Clause:
    """The verdict: what the arm costs, how good it is, and what follows."""
    return clause(
        "verdict.sentence",
        costs=_cost(comparison),
        quality=_quality(comparison),
        so=_so(results, comparison, decision(results, comparison)),
    )


def more(results: Results, comparison: Comparison) -> Clause | None:
    """How many more units would decide, where that can be said."""
    units = units_to_decide(results, comparison)
    return None if units is None else clause("verdict.more", units=f"{_rounded(units):,}")


def _so(results: Results, comparison: Comparison, found: Decision) -> Clause:
    if found is Decision.EARLY:
        return _early(comparison)
    if found in _WITH_MARGIN:
        points = f"{results.trial.margin * _POINTS:g}"
        margin = clause("verdict.point" if points == "1" else "verdict.points", points=points)
        return clause(f"verdict.so.{found}", margin=margin)
    return clause(f"verdict.so.{found}")


def _early(comparison: Comparison) -> Clause:
    if comparison.cost.needs:
        return clause("verdict.early.cost", units=f"{comparison.cost.needs}")
    if comparison.cost.interval is None:
        return clause("verdict.early.free")
    deciding = (each for name, each in comparison.quality.items() if name != PREFERENCE)
    needs = [each.needs for each in deciding if each.needs]
    if needs:
        return clause("verdict.early.quality", units=f"{min(needs)}")
    return clause("verdict.early.silent")


def _cost(comparison: Comparison) -> Clause:
    arm, found = comparison.arm, comparison.cost.interval
    if found is None:
        return clause("verdict.cost.unknown", arm=arm)
    bounds = found.low, found.high
    if abs(found.estimate) * 100 < _EVEN:
        key = "same"
    elif found.estimate < 0:
        key, bounds = "less", (-found.high, -found.low)
    else:
        key = "more"
    low, high = map(_percent, bounds)
    percent = {} if key == "same" else {"percent": _percent(abs(found.estimate))}
    return clause(f"verdict.cost.{key}", arm=arm, low=low, high=high, **percent)


def _quality(comparison: Comparison) -> Clause:
    source = comparison.source
    found = None if source is None else comparison.quality[source].interval
    if source is None or found is None:
        return clause("verdict.quality.unknown")
    numbers = (found.estimate, found.low, found.high)
    estimate, low, high = (_number(value * _POINTS, 1) for value in numbers)
    sign = "" if estimate.startswith("-") or float(estimate) == 0 else "+"
    points = {"points": f"{sign}{estimate}", "low": low, "high": high}
    if source.startswith(JUDGE):
        return clause("verdict.quality.judge", judge=source.removeprefix(JUDGE), **points)
    return clause("verdict.quality.feedback", **points)


def _rounded(number: int) -> int:
    """To two digits, which is all that an estimate of an estimate has."""
    return round(number, 2 - len(str(number))) if number >= 10 else number  # noqa: PLR2004


def _percent(value: float) -> str:
    whole = abs(value) >= 0.1  # noqa: PLR2004 - two digits say enough
    return _number(value * 100, 0 if whole else 1)


def _number(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text
