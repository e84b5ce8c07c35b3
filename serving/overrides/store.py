"""The overrides in the database: written one after the other, never changed, read as a state.

The state of a subject is its latest override whose time is not over; one without a value gives the
word back to the file. So a time limit ends by itself, and what held before it holds again.

Writers take turns: who looks for what is new by the largest version must not be able to see a
version before a smaller one is there.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Engine, RowMapping, func, insert, or_, select, text

from cascade.errors import CascadeError, RequestError
from serving.overrides.stacking import Value, layers
from serving.store.database import WRITES
from serving.store.tables import overrides

PIN: Final = "pin"
EXPERIMENT: Final = "experiment:"
DRAIN: Final = "drain:"

LONGEST_DAYS: Final = 30
LONGEST_SECONDS: Final = LONGEST_DAYS * 86_400.0
"""What is to hold for longer has no end, or belongs into the file."""

MOST_WHO: Final = 100
MOST_WHY: Final = 1000


class OverrideConflictError(CascadeError):
    """Somebody else changed it since it was looked at."""

    status = 412
    code: ClassVar[str] = "version_conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """One word of an operator, or of a guardrail.

    Attributes:
        version: counts up over all subjects.
        subject: `experiment:NAME`, `pin` or `drain:TIER`.
        value: what holds instead of the file; None: what the file says.
        until: seconds since the epoch; None has no end.
        who: made it.
        why: in their words.
        created_at: seconds since the epoch.
    """

    version: int
    subject: str
    value: Mapping[str, Any] | None
    until: float | None
    who: str
    why: str
    created_at: float

    def over(self, now: float) -> bool:
        """Whether its time is over."""
        return self.until is not None and self.until <= now


State = Mapping[str, Override]
"""By subject, the override in force; of those that have a value."""


def put(
    engine: Engine,
    subject: str,
    value: Mapping[str, Any] | None,
    *,
    who: str,
    why: str,
    until: float | None = None,
    expected: int | None = None,
) -> int:
    """Override a subject as a whole, or give it back to the file.

    Args:
        engine: of the audit database.
        subject: `experiment:NAME`, `pin` or `drain:TIER`.
        value: what holds instead of the file; None: what the file says.
        who: for the record.
        why: for the record; not empty.
        until: seconds since the epoch; None has no end.
        expected: the subject's version that the change was made on, 0 for none; None: any.

    Returns:
        The version.

    Raises:
        OverrideConflictError: the subject has another version by now.
        RequestError: there is no reason, or the time is over already or too far away.
    """
    with writing(engine, subject, until, expected) as turn:
        return turn.write([(value, until)], who=who, why=why)


def change(
    engine: Engine,
    subject: str,
    changes: Mapping[str, Any],
    *,
    who: str,
    why: str,
    until: float | None = None,
    expected: int | None = None,
) -> int:
    """Change some keys of what overrides a subject and leave its others as they are.

    A key that is None is given back to the file; of a key that is a mapping, such as `weights`,
    only what is named changes. Each override keeps its own end: a change without one outlasts
    another's that has one, and the other way round.

    Arguments, result and errors are those of `put`.
    """
    with writing(engine, subject, until, expected) as turn:
        return turn.write(layers(turn.standing(), changes, until), who=who, why=why)


def latest(engine: Engine) -> int:
    """The newest version of all; 0 without any."""
    with engine.connect() as connection:
        return connection.scalar(select(func.max(overrides.c.version))) or 0


def versions(engine: Engine) -> dict[str, int]:
    """By subject that was ever overridden, its newest version."""
    newest = select(overrides.c.subject, func.max(overrides.c.version))
    with engine.connect() as connection:
        return dict(iter(connection.execute(newest.group_by(overrides.c.subject))))


def standing(engine: Engine, now: float | None = None) -> list[Override]:
    """What is in force at a time, and what will be when its time is over; by version."""
    with engine.connect() as connection:
        return _standing(connection, time.time() if now is None else now)


def in_force(found: Iterable[Override], now: float) -> dict[str, Override]:
    """Of overrides by version, the state at a time."""
    last = {each.subject: each for each in found if not each.over(now)}
    return {subject: each for subject, each in last.items() if each.value is not None}


def state(engine: Engine, now: float | None = None) -> State:
    """What is in force at a time."""
    when = time.time() if now is None else now
    return in_force(standing(engine, when), when)


def history(engine: Engine, subject: str | None = None, limit: int = 100) -> list[Override]:
    """The overrides made so far, of one subject or of all, the latest first."""
    wanted = select(overrides).order_by(overrides.c.version.desc()).limit(limit)
    if subject is not None:
        wanted = wanted.where(overrides.c.subject == subject)
    with engine.connect() as connection:
        return [_override(row) for row in connection.execute(wanted).mappings()]


def _standing(connection: Connection, now: float, subject: str | None = None) -> list[Override]:
    """By version; nothing from before a subject's latest without an end can come back."""
    lasting = (
        select(overrides.c.subject, func.max(overrides.c.version).label("version"))
        .where(overrides.c.until.is_(None))
        .group_by(overrides.c.subject)
        .subquery()
    )
    wanted = (
        select(overrides)
        .outerjoin(lasting, lasting.c.subject == overrides.c.subject)
        .where(
            or_(overrides.c.until.is_(None), overrides.c.until > now),
            overrides.c.version >= func.coalesce(lasting.c.version, 0),
        )
        .order_by(overrides.c.version)
    )
    if subject is not None:
        wanted = wanted.where(overrides.c.subject == subject)
    return [_override(row) for row in connection.execute(wanted).mappings()]


class Turn:
    """A transaction in which nobody else writes an override, so that what it sees stays so.

    Attributes:
        connection: for what is to be written with the override or not at all.
    """

    def __init__(self, connection: Connection, subject: str) -> None:
        self.connection = connection
        self._subject = subject

    def state(self) -> State:
        """What is in force of all subjects."""
        now = time.time()
        return in_force(_standing(self.connection, now), now)

    def standing(self) -> list[tuple[Value, float | None]]:
        """Value and end of what is in force of the subject, or will be; the oldest first."""
        found = _standing(self.connection, time.time(), self._subject)
        return [(each.value, each.until) for each in found]

    def write(self, rows: Iterable[tuple[Value, float | None]], *, who: str, why: str) -> int:
        """Override the subject by values, each with its end; the version of the last, which holds.

        Raises:
            RequestError: there is no reason.
        """
        return _insert(self.connection, self._subject, rows, who=who, why=why)


@contextmanager
def writing(
    engine: Engine, subject: str, until: float | None, expected: int | None
) -> Iterator[Turn]:
    """A turn to override a subject.

    Args:
        engine: of the audit database.
        subject: `experiment:NAME`, `pin` or `drain:TIER`.
        until: when the override ends, in seconds since the epoch; None has no end.
        expected: the subject's version that it is made on, 0 for none; None: any.

    Raises:
        OverrideConflictError: the subject has another version than expected.
        RequestError: the time is over already, or too far away.
    """
    if until is not None:
        _require_near(until)
    with engine.execution_options(**WRITES).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE overrides IN SHARE ROW EXCLUSIVE MODE"))
        if expected is not None:
            _require(connection, subject, expected)
        yield Turn(connection, subject)


def _require_near(until: float) -> None:
    left = until - time.time()
    if left <= 0:
        raise RequestError("until: the time is over already", param="until")
    if not left <= LONGEST_SECONDS:  # nor is it a number
        raise RequestError(
            f"until: at most {LONGEST_DAYS} days from now; leave it out for no end", param="until"
        )


def _require(connection: Connection, subject: str, expected: int) -> None:
    wanted = select(overrides).where(overrides.c.subject == subject)
    row = connection.execute(wanted.order_by(overrides.c.version.desc()).limit(1)).mappings()
    last = next(map(_override, row), None)
    version = last.version if last else 0
    if version != expected:
        by = f" ({last.who}: {last.why})" if last else ""
        raise OverrideConflictError(
            f"{subject} is at version {version}{by}, and the change was made on {expected}: "
            "look at it again",
            param="expected_version",
        )


def _insert(
    connection: Connection,
    subject: str,
    rows: Iterable[tuple[Value, float | None]],
    *,
    who: str,
    why: str,
) -> int:
    if not why.strip():
        raise RequestError("why: a change needs a reason", param="why")
    said = why.replace("\0", " ").strip()  # which PostgreSQL cannot keep
    told = {"who": who[:MOST_WHO], "why": said[:MOST_WHY], "created_at": time.time()}
    version = 0
    for value, until in rows:
        row = {"subject": subject, "value": value, "until": until, **told}
        done = connection.execute(insert(overrides).values(row).returning(overrides.c.version))
        version = done.scalar_one()
    return version


def _override(row: RowMapping) -> Override:
    value = row["value"]
    # It is JSON, and so may be what we never wrote.
    return Override(**{**row, "value": value if isinstance(value, dict | None) else {}})
