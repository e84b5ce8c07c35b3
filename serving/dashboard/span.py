"""Which time the page is about: one of a few lengths up to now, or some days."""

import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from serving.dashboard.visit import Visit

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
LENGTHS: Final = {"24h": DAY, "3d": 3 * DAY, "7d": 7 * DAY, "30d": 30 * DAY, "90d": 90 * DAY}
DEFAULT: Final = "3d"
DAYS: Final = "days"
LAST_DAY: Final = date.max - timedelta(days=1)
"""The last that has a day after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time, in seconds since the epoch.

    Attributes:
        name: one of LENGTHS, or DAYS.
        until: None is now.
        first: the first day, as a form has it; empty unless days were chosen. As is `last`.
    """

    name: str
    since: float
    until: float | None
    first: str = ""
    last: str = ""

    @property
    def query(self) -> str:
        """The part of an address that asks for it."""
        if self.name == DAYS:
            return f"range={DAYS}&from={self.first}&to={self.last}"
        return f"range={self.name}"


def span_of(visit: Visit, default: str = DEFAULT) -> Span:
    """The time that a visitor asks for, in whole hours; what cannot be read is the default."""
    first, last = _day(visit.query("from")), _day(visit.query("to"))
    if visit.query("range") == DAYS and first and last and first <= last:
        return Span(
            name=DAYS,
            since=_seconds(first),
            until=_seconds(last + timedelta(days=1)),
            first=first.isoformat(),
            last=last.isoformat(),
        )
    name = visit.query("range") if visit.query("range") in LENGTHS else default
    now = time.time()
    return Span(name=name, since=-(-(now - LENGTHS[name]) // HOUR) * HOUR, until=None)


def _day(text: str) -> date | None:
    try:
        return min(date.fromisoformat(text), LAST_DAY)
    except ValueError:
        return None


def _seconds(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
