"""Reads sums between two times: whole days by the day, other whole hours by the hour, ends by row.

An hour that is cut by the beginning or the end of the range is added up from its rows, so that a
range means what it says; who wants only whole hours pays nothing for it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, func, or_, select

from serving.store.adding import raw_sums
from serving.store.sums import DAY, HOUR, TABLES, Sums, counters_of, keys_of
from serving.store.tables import time_sums, uncounted

Times = dict[str, Counter[int]]
"""By measure, how many times fall into each bin."""

_COUNTED = tuple(table for table in TABLES if table is not time_sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """From `since` on and before `until`, in seconds since the epoch; infinite where it is open."""

    since: float = -math.inf
    until: float = math.inf

    @classmethod
    def of(cls, since: float | None, until: float | None) -> "Range":
        """None is open."""
        return cls(
            since=-math.inf if since is None else since, until=math.inf if until is None else until
        )

    @property
    def whole(self) -> "Range":
        """The hours that lie in it as a whole."""
        return Range(since=_up(self.since, HOUR), until=_down(self.until, HOUR))

    def widened(self, step: int) -> "Range":
        """The same with the hours or days that it cuts as wholes."""
        return Range(since=_down(self.since, step), until=_up(self.until, step))

    @property
    def ends(self) -> list["Range"]:
        """What of it lies in hours that it cuts."""
        whole = self.whole
        if whole.since > whole.until:
            return [self]
        found = [Range(since=self.since, until=whole.since)]
        found.append(Range(since=whole.until, until=self.until))
        return [each for each in found if each.since < each.until]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """Sums of one combination of keys; what was not asked for is not in `key`."""

    key: Mapping[str, Any]
    of: Mapping[str, int]


def read(
    connection: Connection,
    table: Table,
    span: Range,
    by: Iterable[str] = (),
    only: Mapping[str, str] | None = None,
) -> list[Summed]:
    """Sums over whole hours.

    Args:
        connection: to read from.
        table: of sums.
        span: only its whole hours.
        by: the keys to tell apart.
        only: values that keys must have.
    """
    columns = [table.c[name] for name in by]
    counters = [func.sum(table.c[name]).label(name) for name in counters_of(table)]
    wanted = select(*columns, *counters).where(_within(table, span), *_are(table, only))
    if columns:
        wanted = wanted.group_by(*columns)
    rows = connection.execute(wanted).mappings()
    return _summed(rows, by, counters_of(table))


def read_steps(
    connection: Connection,
    table: Table,
    span: Range,
    *,
    step: int,
    by: Iterable[str] = (),
    only: Mapping[str, str] | None = None,
) -> list[Summed]:
    """The same by `at`, the beginning of each hour or day, whole ones only.

    Args:
        connection: to read from.
        table: of sums.
        span: the time.
        step: HOUR or DAY, in seconds.
        by: the keys to tell apart, besides `at`.
        only: values that keys must have.
    """
    columns = [table.c["at"], *(table.c[name] for name in by)]
    counters = [func.sum(table.c[name]).label(name) for name in counters_of(table)]
    wanted = select(*columns, *counters).where(table.c.span == step, *_between(table, span))
    wanted = wanted.where(*_are(table, only))
    rows = connection.execute(wanted.group_by(*columns)).mappings()
    return _summed(rows, ("at", *by), counters_of(table))


def read_times(connection: Connection, span: Range, only: Mapping[str, str] | None = None) -> Times:
    """How many times of each measure fall into each bin, over whole hours."""
    wanted = select(time_sums.c.measure, time_sums.c.bin, func.sum(time_sums.c.number))
    wanted = wanted.where(_within(time_sums, span), *_are(time_sums, only))
    found: Times = defaultdict(Counter)
    for measure, place, number in connection.execute(wanted.group_by("measure", "bin")):
        found[measure][place] = int(number)
    return found


def read_time_steps(
    connection: Connection,
    span: Range,
    measure: str,
    *,
    step: int,
    only: Mapping[str, str] | None = None,
) -> dict[int, Counter[int]]:
    """The same of one measure, by the beginning of each hour or day, whole ones only."""
    wanted = select(time_sums.c["at"], time_sums.c.bin, func.sum(time_sums.c.number))
    wanted = wanted.where(time_sums.c.span == step, *_between(time_sums, span))
    wanted = wanted.where(time_sums.c.measure == measure, *_are(time_sums, only))
    found: dict[int, Counter[int]] = defaultdict(Counter)
    for at, place, number in connection.execute(wanted.group_by("at", "bin")):
        found[at][place] = int(number)
    return found


def read_exactly(connection: Connection, span: Range) -> tuple[dict[Table, list[Summed]], Times]:
    """All sums of a range by all their keys, the hours that it cuts by the row; and all times."""
    whole = span.whole
    found = {table: read(connection, table, whole, keys_of(table)) for table in _COUNTED}
    times = read_times(connection, whole)
    for end in span.ends:
        raw = raw_sums(connection, end.since, end.until)
        for table in _COUNTED:
            found[table] += _of_raw(table, raw)
        for (*_, measure, place), (number,) in raw.of[time_sums].items():
            times[measure][place] += number
    return found, times


def waiting(connection: Connection) -> int:
    """How many requests are not in the sums yet."""
    return connection.scalar(select(func.count()).select_from(uncounted)) or 0


def _of_raw(table: Table, raw: Sums) -> list[Summed]:
    keys, counters = keys_of(table), counters_of(table)
    return [
        Summed(
            key=dict(zip(keys, key[1:], strict=True)),
            of=dict(zip(counters, map(int, numbers), strict=True)),
        )
        for key, numbers in raw.of[table].items()
    ]


def _are(table: Table, only: Mapping[str, str] | None) -> list[ColumnElement[bool]]:
    return [table.c[name] == value for name, value in (only or {}).items()]


def _summed(rows: Any, by: Iterable[str], counters: Iterable[str]) -> list[Summed]:
    # PostgreSQL sums 64-bit integers into a Decimal; of no rows a sum is null.
    return [
        Summed(
            key={name: row[name] for name in by},
            of={name: int(row[name] or 0) for name in counters},
        )
        for row in rows
    ]


def _within(table: Table, span: Range) -> ColumnElement[bool]:
    days = Range(since=_up(span.since, DAY), until=_down(span.until, DAY))
    if days.since >= days.until:
        return and_(table.c.span == HOUR, *_between(table, span))
    ends = (
        Range(since=span.since, until=days.since),
        Range(since=days.until, until=span.until),
    )
    hours = [each for each in ends if each.since < each.until]
    parts = [and_(table.c.span == DAY, *_between(table, days))]
    parts += [and_(table.c.span == HOUR, *_between(table, each)) for each in hours]
    return or_(*parts)


def _between(table: Table, span: Range) -> list[ColumnElement[bool]]:
    bounds = []
    if math.isfinite(span.since):
        bounds.append(table.c["at"] >= int(span.since))
    if math.isfinite(span.until):
        bounds.append(table.c["at"] < int(span.until))
    return bounds


def _up(seconds: float, step: int) -> float:
    return math.ceil(seconds / step) * step if math.isfinite(seconds) else seconds


def _down(seconds: float, step: int) -> float:
    return math.floor(seconds / step) * step if math.isfinite(seconds) else seconds
