"""An experiment's results for people in 100 columns, and as JSON for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType

from serving.results.arms import ArmReport
from serving.results.clauses import ENGLISH, Clause, clause
from serving.results.comparisons import FEEDBACK, JUDGE, Comparison
from serving.results.ratios import Difference
from serving.results.results import Results
from serving.results.sequences import ALPHA, LEAST_UNITS
from serving.results.verdict import decision, more, sentence, units_to_decide
from serving.store.formats import NONE, columns, dollars, duration, moment, percent, plain

_ROW_NAMES: Mapping[str, str] = {
    "escalation_rate": "escalated",
    "degraded_rate": "degraded",
    "error_rate": "failed",
}


def results_view(found: Results) -> RenderableType:
    """Verdicts first, then each arm, then what they differ by."""
    if not found.arms:
        return plain(
            f"No request of the experiment {found.trial.name} in that time: send some with model "
            f"{found.trial.name}, or widen --since.",
            "dim",
        )
    return Group(
        plain(found.trial.name, "bold"),
        plain(_span(found), "dim"),
        *(plain(line) for each in found.comparisons for line in _told(found, each)),
        *(plain(each.told(ENGLISH), "yellow") for each in doubts(found)),
        _arms(found),
        *([_differences(found)] if found.comparisons else []),
        plain(
            f"Intervals hold at all times at once, with {1 - ALPHA:.0%} each: look as often as you "
            "like.",
            "dim",
        ),
    )


def results_json(found: Results) -> dict[str, Any]:
    """The same for programs."""
    return {
        "experiment": found.trial.name,
        "control": found.trial.control,
        "unit": found.trial.unit,
        "since": found.trial.since,
        "until": found.trial.until,
        "arms": [_arm_json(each) for each in found.arms],
        "comparisons": [
            {
                "arm": each.arm,
                "verdict": sentence(found, each).told(ENGLISH),
                "decision": decision(found, each),
                "units_to_decide": units_to_decide(found, each),
                "quality_source": each.source,
                "cost": _difference_json(each.cost),
                "quality": {name: _difference_json(d) for name, d in each.quality.items()},
                "rates": {name: _difference_json(d) for name, d in each.rates.items()},
            }
            for each in found.comparisons
        ],
        "shares": None if found.shares is None else _shares_json(found),
        "crossed_units": found.crossed,
        "acting_judges": list(found.acting),
        "notes": [each.told(ENGLISH) for each in doubts(found)],
    }


def doubts(found: Results) -> Iterator[Clause]:
    """What a reader of the numbers should know beside them."""
    if found.shares is not None and found.shares.broken:
        came = found.shares.units
        arms = [
            clause("doubt.share", arm=arm, units=f"{came.get(arm, 0):,}", share=f"{share:.1%}")
            for arm, share in found.shares.expected.items()
        ]
        yield clause("doubt.shares", p=f"{found.shares.p:.1g}", arms=arms)
    if found.crossed:
        yield clause("doubt.crossed", units=f"{found.crossed:,}")
    unknown = sum(each.requests - each.priced for each in found.arms)
    if unknown:
        yield clause("doubt.unpriced", requests=f"{unknown:,}")


def _told(found: Results, comparison: Comparison) -> Iterator[str]:
    yield sentence(found, comparison).told(ENGLISH)
    if (needed := more(found, comparison)) is not None:
        yield needed.told(ENGLISH)


def _span(found: Results) -> str:
    since, until = found.trial.since, found.trial.until
    begin = "from the first request" if since is None else f"from {moment(since)} UTC"
    end = "until now" if until is None else f"until {moment(until)} UTC"
    return f"{begin} {end}, by {found.trial.unit}, against {found.trial.control}"


def _arms(found: Results) -> RenderableType:
    table = columns("", right=tuple(each.arm for each in found.arms))
    for name, cells in _rows(found.arms):
        table.add_row(name, *cells)
    return table


def _rows(arms: Sequence[ArmReport]) -> Iterator[tuple[str, list[str]]]:
    yield "units", [f"{each.units:,}" for each in arms]
    yield "requests", [f"{each.requests:,}" for each in arms]
    for source in sorted({name for each in arms for name in each.quality}):
        yield _source(source), [_quality(each, source) for each in arms]
    yield "a request costs", [_money(each.dollars_a_request) for each in arms]
    yield "cost", [_money(each.dollars if each.priced else None) for each in arms]
    yield "dearest tier alone", [_money(each.baseline if each.compared else None) for each in arms]
    yield "saved", [percent(each.saved, each.baseline) for each in arms]
    yield "escalated", [percent(each.escalated, each.requests) for each in arms]
    yield "degraded", [percent(each.degraded, each.requests) for each in arms]
    yield "failed", [percent(each.failed, each.requests) for each in arms]
    for place, share in enumerate(("50 %", "95 %", "99 %")):
        yield f"first token, {share}", [_time(each.first_token, place) for each in arms]
    for place, share in enumerate(("50 %", "95 %", "99 %")):
        yield f"whole answer, {share}", [_time(each.duration, place) for each in arms]
    yield "prompt tokens cached", [_share(each.cached_share) for each in arms]
    yield "cold premium a request", [_money(each.cold_premium) for each in arms]


def _differences(found: Results) -> RenderableType:
    table = columns("against the control", right=tuple(each.arm for each in found.comparisons))
    table.add_row("cost", *(_relative(each.cost) for each in found.comparisons))
    for source in sorted({name for each in found.comparisons for name in each.quality}):
        table.add_row(
            _source(source), *(_points(each.quality.get(source)) for each in found.comparisons)
        )
    for name, title in _ROW_NAMES.items():
        table.add_row(title, *(_points(each.rates[name]) for each in found.comparisons))
    by_title: dict[str, Sequence[Difference | None]] = {
        "cost": [each.cost for each in found.comparisons],
        FEEDBACK: [each.quality.get(FEEDBACK) for each in found.comparisons],
    }
    for title, known in by_title.items():
        if any(each and each.reduced for each in known):
            cells = [_share(each.reduced if each else None) for each in known]
            table.add_row(f"variance of the {title} taken away", *cells)
    return table


def _quality(arm: ArmReport, source: str) -> str:
    if source not in arm.quality:
        return NONE
    mean, units = arm.quality[source]
    return f"{mean:.1%} of {units:,}"


def _source(source: str) -> str:
    if source.startswith(JUDGE):
        return f"quality by {source.removeprefix(JUDGE)}"
    return {"feedback": "quality by feedback", "preference": "preferred, over one half"}[source]


def _relative(found: Difference) -> str:
    if found.interval is None:
        return _missing(found)
    numbers = (found.interval.estimate, found.interval.low, found.interval.high)
    estimate, low, high = (f"{value * 100:+.1f}" for value in numbers)
    return f"{estimate} % [{low}, {high}]"


def _points(found: Difference | None) -> str:
    if found is None or found.interval is None:
        return _missing(found)
    numbers = (found.interval.estimate, found.interval.low, found.interval.high)
    estimate, low, high = (f"{value * 100:+.2f}" for value in numbers)
    return f"{estimate} points [{low}, {high}]"


def _missing(found: Difference | None) -> str:
    if found is None or not found.needs:
        return NONE
    return f"after {found.needs} more units of at least {LEAST_UNITS} an arm"


def _time(values: Sequence[float] | None, place: int) -> str:
    return duration(values[place] if values else None)


def _money(amount: float | None) -> str:
    return dollars(None if amount is None else Decimal(f"{amount:.12f}"))


def _share(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def _arm_json(arm: ArmReport) -> dict[str, Any]:
    return {
        **asdict(arm),
        "dollars_a_request": arm.dollars_a_request,
        "saved_share": arm.saved_share,
        "quality": {n: {"mean": mean, "units": units} for n, (mean, units) in arm.quality.items()},
    }


def _difference_json(found: Difference) -> dict[str, Any]:
    return asdict(found)


def _shares_json(found: Results) -> dict[str, Any]:
    if found.shares is None:
        raise AssertionError("asked for without any")
    return {**asdict(found.shares), "broken": found.shares.broken}
