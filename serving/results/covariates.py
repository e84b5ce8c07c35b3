"""What units did before the experiment, to be taken out of what they do in it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from serving.results.ratios import Sums
from serving.results.trial import UNIT_COLUMNS, Trial
from serving.store.tables import requests

BEFORE_SECONDS = 28 * 86_400.0
"""How far back is looked."""

Earlier = tuple[ColumnElement[Any], list[ColumnElement[bool]]]
"""The column that has the unit on every request, and the requests of the time before."""


def earlier(connection: Connection, trial: Trial) -> Earlier | None:
    """Where to look; None when a unit cannot be told there, or nothing was there.

    That is before the experiment's first request, however late the time begins that counts: what
    units did in an arm is that arm's doing, and taking it out would take out what the arms differ
    by.
    """
    column = UNIT_COLUMNS.get(trial.unit)
    if column is None or (begun := first_request(connection, trial)) is None:
        return None
    before = [
        requests.c.created_at >= begun - BEFORE_SECONDS,
        requests.c.created_at < begun,
    ]
    if connection.execute(select(requests.c.id).where(*before).limit(1)).first() is None:
        return None
    return requests.c[column], before


def first_request(connection: Connection, trial: Trial) -> float | None:
    """When the experiment had its first request; None when it had none."""
    wanted = select(func.min(requests.c.created_at)).where(requests.c.experiment == trial.name)
    return connection.execute(wanted).scalar()


def products(
    s: ColumnElement[Any], n: ColumnElement[Any], ps: ColumnElement[Any], pn: ColumnElement[Any]
) -> list[ColumnElement[Any]]:
    """Sums over units with what they did before; one that was not there adds nothing to any.

    Args:
        s: above the line now; n below it.
        n: see s.
        ps: above the line before; pn below it.
        pn: see ps.
    """
    found = {"ps": ps, "pn": pn, "psps": ps * ps, "pspn": ps * pn, "pnpn": pn * pn}
    found |= {"sps": s * ps, "spn": s * pn, "nps": n * ps, "npn": n * pn}
    return [func.sum(product).label(name) for name, product in found.items()]


def adjusted(sums: Mapping[str, Sums], found: Mapping[str, Mapping[str, float]]) -> dict[str, Sums]:
    """The arms' sums with their covariate: what units did before, less what was usual then.

    Args:
        sums: by arm.
        found: by arm, what `products` came to; nothing of it where there was nothing before.
    """
    below = sum(each.get("pn", 0.0) for each in found.values())
    if not below:
        return dict(sums)
    usual = sum(each.get("ps", 0.0) for each in found.values()) / below
    return {arm: _with(each, found[arm], usual) for arm, each in sums.items()}


def _with(sums: Sums, found: Mapping[str, float], usual: float) -> Sums:
    return replace(
        sums,
        x=found["ps"] - usual * found["pn"],
        xx=found["psps"] - 2.0 * usual * found["pspn"] + usual**2 * found["pnpn"],
        sx=found["sps"] - usual * found["spn"],
        nx=found["nps"] - usual * found["npn"],
    )
