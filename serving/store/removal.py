"""Takes requests out of the audit log for good: those that are old, a tenant's, a user's.

Rows go in batches, each with its attempts and its feedback in a transaction of its own, with a
pause as long as the batch took, so that whoever writes meanwhile never waits for long. What was
removed is noted without its content. Sums stay, since they say nothing of anybody; those of a
tenant go with it.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    Delete,
    Engine,
    Select,
    delete,
    func,
    insert,
    select,
    update,
)

from cascade.audit import key_hash
from serving.store.adding import catch_up, take_turn
from serving.store.chain import leave_gaps
from serving.store.database import WRITES
from serving.store.keys import AuditKeys
from serving.store.tables import (
    attempts,
    call_sums,
    deletions,
    experiment_results,
    feedback,
    request_sums,
    requests,
)

Row = Mapping[str, Any]

BATCH = 500
RETENTION = "retention"
_LONGEST_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """How many rows went."""

    requests: int = 0
    attempts: int = 0
    feedback: int = 0

    def __add__(self, other: "Removed") -> "Removed":
        return Removed(
            requests=self.requests + other.requests,
            attempts=self.attempts + other.attempts,
            feedback=self.feedback + other.feedback,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What is to go, and what is noted of it.

    Attributes:
        kind: retention, tenant or user.
        subject: of whom or up to when; a user only as a hash.
        which: the requests.
        said: feedback that goes although its request may not be there.
        asks: whether a request that is not in the log yet, by its columns' names, goes as well.
        says: the same of feedback.
        tenant: whose sums go as well; None: nobody's.
    """

    kind: str
    subject: str
    which: ColumnElement[bool]
    said: ColumnElement[bool] | None = None
    asks: Callable[[Row], bool]
    says: Callable[[Row], bool] = lambda _: False
    tenant: str | None = None

    @classmethod
    def before(cls, seconds: float) -> "Removal":
        """Everything that began before a time, in seconds since the epoch."""
        return cls(
            kind=RETENTION,
            subject=f"before {seconds:.0f}",
            which=requests.c.created_at < seconds,
            said=feedback.c.given_at < seconds,
            asks=lambda row: float(row["created_at"]) < seconds,
            says=lambda row: float(row["given_at"]) < seconds,
        )

    @classmethod
    def of_tenant(cls, tenant: str) -> "Removal":
        """Everything of a tenant."""
        return cls(
            kind="tenant",
            subject=tenant,
            which=requests.c.tenant == tenant,
            said=feedback.c.tenant == tenant,
            asks=lambda row: row["tenant"] == tenant,
            says=lambda row: row["tenant"] == tenant,
            tenant=tenant,
        )

    @classmethod
    def of_user(cls, user: str, tenant: str | None = None) -> "Removal":
        """Everything that was asked in a user's name, by any tenant or by one."""
        which = requests.c.end_user == user
        if tenant is not None:
            which &= requests.c.tenant == tenant
        return cls(
            kind="user",
            subject=str(key_hash(user)),
            which=which,
            asks=lambda row: row["end_user"] == user and tenant in {None, row["tenant"]},
        )

    def number(self, engine: Engine) -> int:
        """How many requests would go."""
        with engine.connect() as connection:
            counting = select(func.count()).select_from(requests).where(self.which)
            return connection.scalar(counting) or 0


def removed(connection: Connection) -> int:
    """How many requests were ever removed, so that who adds them up sees that some went."""
    return int(connection.scalar(select(func.sum(deletions.c.requests))) or 0)


def remove(
    engine: Engine,
    removal: Removal,
    *,
    who: str,
    keys: AuditKeys | None = None,
    batch: int = BATCH,
    going_on: Callable[[int], bool] = lambda _: True,
) -> Removed:
    """Remove, oldest first, until nothing is left of it.

    Args:
        engine: from `engine_for`.
        removal: what is to go.
        who: noted beside it.
        keys: without them, nothing that is chained can be removed.
        batch: requests in one transaction.
        going_on: told after each batch how many requests went by it; False ends it there.

    Raises:
        PermissionError: a row is chained and there are no keys.
    """
    while catch_up(engine):  # so that the sums keep what goes
        pass
    writing = engine.execution_options(**WRITES)
    done, note = Removed(), _Note(removal, who)
    for gone in _batches(writing, removal, note, keys, batch):
        done += gone
        if not going_on(gone.requests):
            return done
    with writing.begin() as connection:
        done += _rest(connection, removal, note, keys)
    if removal.kind != RETENTION and engine.name == "sqlite":
        empty_journal(engine)
    return done


def _batches(
    writing: Engine, removal: Removal, note: "_Note", keys: AuditKeys | None, most: int
) -> Iterator[Removed]:
    which = select(requests.c.id).where(removal.which).order_by(requests.c.created_at).limit(most)
    while True:
        before = time.monotonic()
        with writing.begin() as connection:
            take_turn(connection)  # two that remove would each say that the same rows are missing
            _overwrite(connection)
            ids = list(connection.scalars(which))
            if not ids:
                return
            gone = _remove(connection, ids, note, keys)
        yield gone
        time.sleep(min(time.monotonic() - before, _LONGEST_PAUSE_SECONDS))


def _remove(
    connection: Connection, ids: Sequence[str], note: "_Note", keys: AuditKeys | None
) -> Removed:
    leave_gaps(connection, ids, note.number(connection), keys)
    gone = Removed(
        feedback=_delete(connection, delete(feedback).where(feedback.c.request_id.in_(ids))),
        attempts=_delete(connection, delete(attempts).where(attempts.c.request_id.in_(ids))),
        requests=_delete(connection, delete(requests).where(requests.c.id.in_(ids))),
    )
    connection.execute(delete(experiment_results))  # which may still count them
    note.add(connection, gone)
    return gone


def _rest(
    connection: Connection, removal: Removal, note: "_Note", keys: AuditKeys | None
) -> Removed:
    """What came meanwhile, and what hangs on no request that is there."""
    take_turn(connection)  # first, as writers do, so that nobody waits in a circle
    _overwrite(connection)
    came, gone = Removed(), Removed()
    # A row that stayed would be in no sum, once the tenant's sums are gone.
    if ids := list(connection.scalars(select(requests.c.id).where(removal.which))):
        came = _remove(connection, ids, note, keys)
    if removal.said is not None:
        there: Select[Any] = select(requests.c.id).where(requests.c.id == feedback.c.request_id)
        orphans = delete(feedback).where(removal.said, ~there.exists())
        gone = Removed(feedback=_delete(connection, orphans))
    if removal.tenant is not None:
        for table in (request_sums, call_sums):
            connection.execute(delete(table).where(table.c.tenant == removal.tenant))
    if gone.feedback or removal.tenant is not None:
        note.add(connection, gone)
    return came + gone


def _overwrite(connection: Connection) -> None:
    """Have SQLite overwrite what it deletes, which it would leave readable in the file."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete = ON")


def empty_journal(engine: Engine) -> bool:
    """Empty the file beside a SQLite database, where pages are as they were; if nobody reads."""
    with contextlib.closing(engine.raw_connection()) as connection:
        busy, *_ = connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy


class _Note:
    """The row that says what was removed, written with the first batch of it."""

    def __init__(self, removal: Removal, who: str) -> None:
        self._values = {"kind": removal.kind, "subject": removal.subject, "who": who}
        self._number: int | None = None
        self._done = Removed()

    def number(self, connection: Connection) -> int:
        """The row's id."""
        if self._number is None:
            values = {**self._values, "created_at": time.time()}
            made = connection.execute(
                insert(deletions).values(**values, requests=0, attempts=0, feedback=0)
            )
            key = made.inserted_primary_key
            if key is None:
                raise AssertionError("an insert has a key")
            self._number = int(key[0])
        return self._number

    def add(self, connection: Connection, gone: Removed) -> None:
        """So many more rows went."""
        number = self.number(connection)
        self._done += gone
        connection.execute(
            update(deletions)
            .where(deletions.c.id == number)
            .values(
                requests=self._done.requests,
                attempts=self._done.attempts,
                feedback=self._done.feedback,
            )
        )


def _delete(connection: Connection, statement: Delete) -> int:
    result: CursorResult[Any] = connection.execute(statement)
    return result.rowcount
