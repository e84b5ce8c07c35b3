"""Adds up what each arm's requests cost and what became of them, in the database, by unit.

One row an arm comes back. Money is in dollars, as doubles: the squares of pico-dollars do not fit
into 64 bits.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    Subquery,
    and_,
    case,
    cast,
    func,
    literal,
    select,
)

from cascade.audit import PICO
from serving.results.covariates import earlier, products
from serving.results.ratios import Sums
from serving.results.trial import Trial
from serving.results.units import ANSWERED, arms, in_one, summed, within
from serving.store.tables import requests

RATIOS: Mapping[str, tuple[str, str]] = {
    "cost": ("dollars", "priced"),
    "escalation_rate": ("escalated", "requests"),
    "degraded_rate": ("degraded", "requests"),
    "error_rate": ("failed", "requests"),
}
"""By name, what is above and below the line, as columns of the units."""

COUNTED = ("requests", "dollars", "priced", "escalated", "degraded", "failed")
COMPARED = ("baseline", "compared_dollars", "compared")


def of_requests(connection: Connection, trial: Trial) -> tuple[dict[str, Mapping[str, float]], int]:
    """By arm, sums over its units and products of what `RATIOS` names; and units of two arms."""
    units = _units_of(trial)
    source: Any = units
    names = (*COUNTED, *COMPARED)
    wanted: list[ColumnElement[Any]] = [func.sum(units.c[name]).label(name) for name in names]
    wanted += _products(units)
    if (before := _before(connection, trial)) is not None:
        same = and_(before.c.unit == units.c.unit, units.c.priced > 0)
        source = units.outerjoin(before, same)
        pair = (units.c.dollars, units.c.priced)
        wanted += products(*pair, before.c.dollars, before.c.priced)
    arm = case((in_one(units), units.c.arm)).label("arm")
    grouped = select(arm, func.count().label("units"), *wanted).select_from(source).group_by(arm)
    tallies: dict[str | None, Mapping[str, float]] = {
        row["arm"]: {name: float(row[name] or 0) for name in row if name != "arm"}
        for row in connection.execute(grouped).mappings()
    }
    crossed = int(tallies.pop(None, {}).get("units", 0.0))
    return {arm: tally for arm, tally in tallies.items() if arm is not None}, crossed


def sums_of(tally: Mapping[str, float], name: str) -> Sums:
    """One ratio out of an arm's tally."""
    above, below = RATIOS[name]
    return Sums(
        units=int(tally[f"{below}_units"]),
        s=tally[above],
        n=tally[below],
        ss=tally[f"{above}_ss"],
        sn=tally[f"{above}_sn"],
        nn=tally[f"{below}_nn"],
    )


def slower_than(connection: Connection, trial: Trial, milliseconds: float) -> dict[str, Sums]:
    """By arm, the share of answered requests that took longer."""
    slower = case((requests.c.duration_ms > milliseconds, 1.0), else_=0.0)
    units = (
        select(
            requests.c.unit,
            *arms(),
            func.sum(slower).label("s"),
            cast(func.count(), Double).label("n"),
        )
        .where(*within(trial), requests.c.status.in_(ANSWERED))
        .group_by(requests.c.unit)
        .subquery()
    )
    return summed(connection, units)


def _units_of(trial: Trial) -> Subquery:
    both = and_(requests.c.cost_pico.is_not(None), requests.c.baseline_pico.is_not(None))
    return (
        select(
            requests.c.unit,
            *arms(),
            func.count().label("requests"),
            *_spent(),
            _number(requests.c.answers > 1).label("escalated"),
            _number(requests.c.status == "degraded").label("degraded"),
            _number(requests.c.status == "error").label("failed"),
            _dollars(case((both, requests.c.baseline_pico))).label("baseline"),
            _dollars(case((both, requests.c.cost_pico))).label("compared_dollars"),
            _number(both).label("compared"),
        )
        .where(*within(trial))
        .group_by(requests.c.unit)
        .subquery("units")
    )


def _before(connection: Connection, trial: Trial) -> Subquery | None:
    """What units spent before the experiment."""
    if (where := earlier(connection, trial)) is None:
        return None
    key, before = where
    return select(key.label("unit"), *_spent()).where(*before).group_by(key).subquery("before")


def _spent() -> Iterator[ColumnElement[Any]]:
    yield _dollars(requests.c.cost_pico).label("dollars")
    yield func.count(requests.c.cost_pico).label("priced")


def _dollars(pico: ColumnElement[Any]) -> ColumnElement[Any]:
    """Of a unit: its whole pico-dollars are summed exactly, and become a double once."""
    return cast(func.coalesce(func.sum(pico), 0), Double) / literal(float(PICO))


def _number(condition: ColumnElement[bool]) -> ColumnElement[Any]:
    return func.count(case((condition, 1)))


def _products(units: Subquery) -> Iterator[ColumnElement[Any]]:
    for above, below in RATIOS.values():
        s, n = units.c[above], units.c[below]
        yield func.sum(s * s).label(f"{above}_ss")
        yield func.sum(s * n).label(f"{above}_sn")
    for below in sorted({below for _, below in RATIOS.values()}):
        yield func.sum(units.c[below] * units.c[below]).label(f"{below}_nn")
        yield _number(units.c[below] > 0).label(f"{below}_units")
