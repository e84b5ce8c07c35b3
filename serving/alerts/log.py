"""Alerts in the database: each kept once, until it was sent."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, insert, select, text, update

from serving.store.database import WRITES
from serving.store.tables import alerts

REPEAT_SECONDS = 86_400.0
"""What goes on is told again after a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that somebody should look at.

    Attributes:
        kind: judge_silent, escalation_rate, cost, cache_hit_rate, guardrail or sample_ratio.
        subject: the judge, policy, tier or experiment that it is about.
        message: a sentence for people.
        details: its numbers.
    """

    kind: str
    subject: str
    message: str
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A finding as it was kept.

    Attributes:
        id: the same in every delivery, so that a second one can be told.
        delivered_at: seconds since the epoch; None: not yet.
    """

    id: int
    created_at: float
    kind: str
    subject: str
    message: str
    details: Mapping[str, Any] | None
    delivered_at: float | None


def keep(engine: Engine, finding: Finding, *, repeat_seconds: float = REPEAT_SECONDS) -> int | None:
    """Keep a finding, unless one of the same kind and subject was kept lately.

    Returns:
        Its id; None when it was known.
    """
    now = time.time()
    known = select(alerts.c.id).where(
        alerts.c.kind == finding.kind,
        alerts.c.subject == finding.subject,
        alerts.c.created_at > now - repeat_seconds,
    )
    with engine.execution_options(**WRITES).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE alerts IN SHARE ROW EXCLUSIVE MODE"))
        if connection.execute(known.limit(1)).first() is not None:
            return None
        return put(connection, finding)


def put(connection: Connection, finding: Finding) -> int:
    """Keep a finding together with what else is written in a transaction; its id."""
    new = {
        "created_at": time.time(),
        "kind": finding.kind,
        "subject": finding.subject,
        "message": finding.message,
        "details": _storable(finding.details),
    }
    done = connection.execute(insert(alerts).values(new).returning(alerts.c.id))
    identity: int = done.scalar_one()
    return identity


def waiting(engine: Engine, *, since: float) -> list[Alert]:
    """Alerts from then on that were not delivered yet, the oldest first."""
    wanted = select(alerts).where(alerts.c.delivered_at.is_(None), alerts.c.created_at >= since)
    with engine.connect() as connection:
        rows = connection.execute(wanted.order_by(alerts.c.id)).mappings()
        return [_alert(row) for row in rows]


def delivered(engine: Engine, alert: Alert) -> None:
    """It has arrived."""
    done = update(alerts).where(alerts.c.id == alert.id).values(delivered_at=time.time())
    with engine.execution_options(**WRITES).begin() as connection:
        connection.execute(done)


def latest(engine: Engine, limit: int = 50) -> list[Alert]:
    """The last alerts, the latest first."""
    wanted = select(alerts).order_by(alerts.c.created_at.desc(), alerts.c.id.desc()).limit(limit)
    with engine.connect() as connection:
        return [_alert(row) for row in connection.execute(wanted).mappings()]


def _storable(value: Any) -> Any:
    """The same with None for numbers without an end, which JSON has no word for."""
    if isinstance(value, Mapping):
        return {name: _storable(each) for name, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _alert(row: RowMapping) -> Alert:
    return Alert(**row)
