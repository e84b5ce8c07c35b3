"""The requests of an experiment, by the unit that was assigned an arm.

A unit that was seen in two arms belongs to neither, and is counted and left out.
"""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Subquery, func, literal, select

from cascade.types import Kind
from serving.results.covariates import adjusted, products
from serving.results.ratios import Sums
from serving.results.trial import Trial
from serving.store.tables import requests

LATEST = 20_000
"""Requests that say how long they take and what they find in caches; more would say the same."""

ANSWERED = ("ok", "degraded")
"""How a request ends that took as long as it did because it was answered."""

SHADOW = literal(Kind.SHADOW.value, literal_execute=True)
"""Written out in the statement, so that the databases see that the index of such calls will do."""


def within(trial: Trial) -> list[ColumnElement[bool]]:
    """The experiment's requests in the time that counts."""
    bounds = [requests.c.experiment == trial.name, requests.c.arm.is_not(None)]
    if trial.since is not None:
        bounds.append(requests.c.created_at >= trial.since)
    if trial.until is not None:
        bounds.append(requests.c.created_at < trial.until)
    return bounds


def latest(trial: Trial, most: int = LATEST) -> Subquery:
    """The last requests of the experiment in the time that counts."""
    columns = (requests.c.id, requests.c.arm, requests.c.status, requests.c.duration_ms)
    ordered = select(*columns).where(*within(trial)).order_by(requests.c.created_at.desc())
    return ordered.limit(most).subquery("latest")


def arms() -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """The arm of a unit's requests, twice: `arm` and `last_arm` differ when there are two."""
    return func.min(requests.c.arm).label("arm"), func.max(requests.c.arm).label("last_arm")


def in_one(units: Subquery) -> ColumnElement[bool]:
    """Only units of one arm."""
    return units.c.arm == units.c.last_arm


def summed(
    connection: Connection, units: Subquery, before: Subquery | None = None
) -> dict[str, Sums]:
    """By arm, the sums over units with one `s` and one `n` each.

    Args:
        connection: to read from.
        units: with `unit`, `arm`, `last_arm`, `s` and `n`.
        before: the same units' `s` and `n` before the experiment, if that is known.
    """
    s, n = units.c.s, units.c.n
    sums = {"s": s, "n": n, "ss": s * s, "sn": s * n, "nn": n * n}
    wanted: list[ColumnElement[Any]] = [func.sum(v).label(name) for name, v in sums.items()]
    source: Any = units
    if before is not None:
        source = units.outerjoin(before, before.c.unit == units.c.unit)
        wanted += products(s, n, before.c.s, before.c.n)
    grouped = select(units.c.arm, func.count().label("units"), *wanted).select_from(source)
    rows = connection.execute(grouped.where(in_one(units)).group_by(units.c.arm)).mappings()
    found = {
        row["arm"]: {name: float(row[name] or 0) for name in row if name != "arm"} for row in rows
    }
    return adjusted(
        {
            arm: Sums(units=int(each["units"]), **{name: each[name] for name in sums})
            for arm, each in found.items()
        },
        found,
    )
