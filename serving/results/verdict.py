"""What an experiment says of an arm, in a sentence that anybody can read, and in a word."""

from enum import StrEnum

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


_SAID = {
    Decision.UNDECIDED: "not yet decided",
    Decision.DEARER: "better and dearer, for you to weigh",
}


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


def sentence(results: Results, comparison: Comparison) -> str:
    """The verdict: what the arm costs, how good it is, and what follows."""
    found = decision(results, comparison)
    source, cost = comparison.source, comparison.cost.interval
    costs = f"{comparison.arm} {_cost(cost)}" if cost else f"{comparison.arm}: cost not known yet"
    quality = "quality not known yet"
    if source is not None:
        quality = f"{_named(source)} {_points(comparison.quality[source].interval)}"
    return f"{costs}; {quality}: {_so(results, comparison, found)}"


def _so(results: Results, comparison: Comparison, found: Decision) -> str:
    points = f"{results.trial.margin * _POINTS:g} point"
    margin = points if points == "1 point" else f"{points}s"
    if found is Decision.TAKE:
        return f"it costs less and is not more than {margin} worse"
    if found is Decision.WORSE:
        return f"worse by more than {margin}"
    if found is Decision.DROP:
        return f"it costs more and is not more than {margin} better"
    if found is Decision.BROKEN:
        return "the arms did not get their share of units, so none of this can be trusted"
    if found is Decision.EARLY:
        return _early(comparison)
    return _SAID[found]


def _early(comparison: Comparison) -> str:
    if comparison.cost.needs:
        return f"too early, {comparison.cost.needs} more units whose cost is known are needed"
    if comparison.cost.interval is None:
        return "the costs are not known, so nothing can be said"
    deciding = (each for name, each in comparison.quality.items() if name != PREFERENCE)
    needs = [each.needs for each in deciding if each.needs]
    if needs:
        return f"too early, {min(needs)} more units with a word on their quality are needed"
    return "nobody says how good the answers are: send feedback, or let a judge sample them"


def _cost(found: Interval) -> str:
    low, high = found.low, found.high
    if abs(found.estimate) * 100 < _EVEN:
        return f"costs the same [{_percent(low)}, {_percent(high)}]"
    if found.estimate < 0:
        return f"costs {_percent(-found.estimate)} % less [{_percent(-high)}, {_percent(-low)}]"
    return f"costs {_percent(found.estimate)} % more [{_percent(low)}, {_percent(high)}]"


def _percent(value: float) -> str:
    whole = abs(value) >= 0.1  # noqa: PLR2004 - two digits say enough
    return _number(value * 100, 0 if whole else 1)


def _points(found: Interval | None) -> str:
    if found is None:
        return "not known yet"
    numbers = (found.estimate, found.low, found.high)
    estimate, low, high = (_number(value * _POINTS, 1) for value in numbers)
    sign = "" if estimate.startswith("-") or float(estimate) == 0 else "+"
    return f"{sign}{estimate} points [{low}, {high}]"


def _named(source: str) -> str:
    return f"quality by {source.removeprefix(JUDGE)}" if source.startswith(JUDGE) else "quality"


def _number(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text
