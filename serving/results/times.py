"""How long each arm's requests took, as a histogram that answers for any quantile.

Times are counted by their first three digits, so that no row is sorted, and a quantile is right to
one percent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from cascade.types import Kind, Outcome
from serving.results.trial import Trial
from serving.results.units import ANSWERED, LATEST, latest
from serving.store.tables import attempts

_DECADES = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6)
_LAST_STEP = 1e5


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Milliseconds with how often each occurred, the shortest first."""

    values: Sequence[tuple[float, int]]

    def quantile(self, share: float) -> float | None:
        """What that share of them does not exceed; None when there are none."""
        number = sum(count for _, count in self.values)
        seen = 0
        for value, count in self.values:
            seen += count
            if seen >= share * number:
                return value
        return self.values[-1][0] if self.values else None


def of_requests(connection: Connection, trial: Trial, most: int = LATEST) -> dict[str, Times]:
    """By arm, from the request's arrival to its end; of the latest that were answered."""
    asked = latest(trial, most)
    at = _binned(asked.c.duration_ms)
    wanted = select(asked.c.arm, at, func.count()).where(asked.c.status.in_(ANSWERED))
    return _by_arm(connection.execute(wanted.group_by(asked.c.arm, at)))


def of_first_tokens(connection: Connection, trial: Trial) -> dict[str, Times]:
    """By arm, from arrival until the answer could begin to be read; of the latest requests.

    An answer that was judged could not be before it was whole.
    """
    held = attempts.c.started_ms + attempts.c.duration_ms
    streamed = attempts.c.started_ms + attempts.c.first_token_ms
    at = _binned(case((attempts.c.judge.is_(None), streamed), else_=held))
    asked = latest(trial)
    served = and_(
        attempts.c.request_id == asked.c.id,
        attempts.c.kind == Kind.ANSWER.value,
        attempts.c.outcome == Outcome.ACCEPTED.value,
        attempts.c.first_token_ms.is_not(None),
    )
    wanted = select(asked.c.arm, at, func.count()).join_from(asked, attempts, served)
    return _by_arm(connection.execute(wanted.group_by(asked.c.arm, at)))


def _binned(milliseconds: ColumnElement[float]) -> ColumnElement[float]:
    steps = [
        (milliseconds < decade, func.round(milliseconds * (100.0 / decade)) * (decade / 100.0))
        for decade in _DECADES
    ]
    return case(*steps, else_=func.round(milliseconds / _LAST_STEP) * _LAST_STEP)


def _by_arm(rows: Iterable[Any]) -> dict[str, Times]:
    found: dict[str, list[tuple[float, int]]] = {}
    for arm, value, count in rows:
        found.setdefault(arm, []).append((float(value), count))
    return {arm: Times(values=sorted(values)) for arm, values in found.items()}
