"""The first page: what was spent and saved, how good it was, and who answered, over time."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from starlette.responses import Response

from serving.alerts.log import latest
from serving.dashboard.charts import Figure, Line, Mark, Unit
from serving.dashboard.span import LENGTHS, span_of
from serving.dashboard.visit import Visit
from serving.store.overview import Only, Overview, Point
from serving.store.overview import overview as added_up

ALERTS: Final = 5
COLOURS: Final = 6
"""So many tiers have a colour of their own."""

Value = Callable[[Point], float | None]


def overview(visit: Visit) -> Response:
    """The log added up, for a time, and a tenant or an experiment."""
    span, database = span_of(visit), visit.page.database
    only = Only(tenant=visit.query("tenant") or None, experiment=visit.query("experiment") or None)
    found = added_up(database, span.since, span.until, only=only)
    return visit.show(
        "overview.html",
        current="overview",
        span=span,
        styled=visit.page.assets.styled,
        lengths=LENGTHS,
        only=only,
        found=found,
        figures=[each for each in _figures(visit, found) if not each.empty],
        alerts=latest(database, ALERTS),
        first_model=visit.page.service.engine.snapshot.models[0][0],
        experiments=sorted(visit.page.service.engine.snapshot.experiments),
    )


def _figures(visit: Visit, found: Overview) -> list[Figure]:
    t, steps = visit.texts, _steps(found)

    def figure(name: str, unit: Unit, *lines: Line) -> Figure:
        return Figure(
            name=name,
            title=t(f"chart.{name}"),
            axis="time",
            places=list(steps),
            step=found.step_seconds,
            unit=unit,
            lines=lines,
            stacked=sum(line.mark == "bar" for line in lines) > 1,
        )

    def line(name: str, value: Value, role: str = "accent", mark: Mark = "line") -> Line:
        values = [None if point is None else value(point) for point in steps.values()]
        return Line(name=name, values=values, role=role, mark=mark)

    return [
        figure(
            "spend",
            "usd",
            line(t("line.spend"), lambda p: float(p.totals.dollars), mark="bar"),
            line(t("line.baseline"), _baseline, "muted", "dashes"),
        ),
        figure("tiers", "count", *_tiers(_ordered(visit, found), steps.values())),
        figure(
            "quality",
            "share",
            line(t("line.quality"), lambda p: p.totals.mean_score),
            line(t("line.escalated"), _escalated, "muted", "dashes"),
        ),
        figure(
            "ttft",
            "ms",
            line("p50", lambda p: p.first_token.p50 if p.first_token else None),
            line("p95", lambda p: p.first_token.p95 if p.first_token else None, "muted", "dashes"),
        ),
        figure("cache", "share", line(t("line.cache"), lambda p: p.totals.cached_share)),
        figure(
            "trouble",
            "count",
            line(t("line.failed"), lambda p: float(p.totals.failed), "bad", "bar"),
            line(t("line.degraded"), lambda p: float(p.totals.degraded), "warn", "bar"),
        ),
    ]


def _ordered(visit: Visit, found: Overview) -> list[str]:
    """The tiers that answered, in the configuration's order, so that each keeps its colour."""
    known = list(visit.page.service.engine.snapshot.tiers)
    return known + [each.tier for each in found.tiers if each.tier not in known]


def _steps(found: Overview) -> dict[int, Point | None]:
    """Every step from the first to the last, also those without requests."""
    known = {point.at: point for point in found.series}
    if not known:
        return {}
    return {at: known.get(at) for at in range(min(known), max(known) + 1, found.step_seconds)}


def _tiers(names: Sequence[str], points: Iterable[Point | None]) -> list[Line]:
    steps = list(points)
    return [
        Line(
            name=name,
            values=[float(point.answered.get(name, 0)) if point else None for point in steps],
            role=f"tier-{i % COLOURS}",
            mark="bar",
        )
        for i, name in enumerate(names)
    ]


def _baseline(point: Point) -> float | None:
    return float(point.totals.baseline) if point.totals.compared else None


def _escalated(point: Point) -> float | None:
    totals = point.totals
    return totals.escalated / totals.requests if totals.requests else None
