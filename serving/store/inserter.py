"""From the spool to the database: the thread that waits, tries again and catches up.

A batch leaves the spool after its transaction is committed. A request that the database refuses
because of a value is set aside, so that it holds up nothing else; every other failure is taken for
an outage, which is waited for.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

from serving.store.database import WRITES, brief, lacks_tables
from serving.store.rows import Entry, decode, insert
from serving.store.spool import Spool
from serving.store.tables import metadata

logger = logging.getLogger(__name__)

_MOST_ROWS = 2000  # requests in one transaction
_POLL_SECONDS = 1.0  # other processes' batches come without a signal
_PING_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that cannot become rows."""

    line: bytes
    why: str


class Inserter:
    """Moves batches from the spool into the tables, oldest first."""

    def __init__(self, spool: Spool, engine: Engine) -> None:
        self.error: str | None = None
        self.refused = 0
        self._spool = spool
        self._engine = engine.execution_options(**WRITES)
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._reached = float("-inf")
        self._thread = threading.Thread(target=self._run, name="audit-inserter", daemon=True)

    def start(self) -> None:
        """Begin to insert, what an earlier process left first."""
        self._thread.start()

    def hurry(self) -> None:
        """There is a new batch."""
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """Insert what is left and end; what a failing database does not take stays for later."""
        if self._stopping.is_set():
            return
        self._deadline = time.monotonic() + timeout
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while time.monotonic() < self._deadline:
            stopping = self._stopping.is_set()
            try:
                busy = self._insert_some()
            except Exception as error:  # noqa: BLE001 - _fail logs it; the rows wait in the spool
                self._fail(error)
                if stopping:
                    return
                self._stopping.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                continue
            pause = _FIRST_PAUSE_SECONDS
            self._recover()
            if not busy:
                if stopping:
                    return
                self._wake.wait(_POLL_SECONDS)
                self._wake.clear()

    def _insert_some(self) -> bool:
        """Insert the oldest batches; False when there are none."""
        with self._spool.claim(_MOST_ROWS) as claim:
            if not claim.batches:
                self._ping()
                return False
            entries, refused = _read(claim.lines)
            refused += self._insert(entries)
            self._reached = time.monotonic()
            self._set_aside(refused)
            self._spool.remove(claim)
        return True

    def _insert(self, entries: Sequence[Entry]) -> list[Refused]:
        """Insert, by halves and halves of halves when the database refuses a value among them."""
        try:
            self._commit(entries)
        except (StatementError, OverflowError) as error:
            if not _is_of_value(error):
                raise
            if len(entries) == 1:
                return [Refused(entries[0].line, _say(error))]
            half = len(entries) // 2
            return self._insert(entries[:half]) + self._insert(entries[half:])
        return []

    def _commit(self, entries: Sequence[Entry]) -> None:
        with self._engine.begin() as connection:
            insert(connection, entries)

    def _set_aside(self, refused: Sequence[Refused]) -> None:
        if not refused:
            return
        path = self._spool.set_aside([each.line for each in refused])
        self.refused += len(refused)
        logger.error("%d audit rows are in %s: %s", len(refused), path, refused[0].why)

    def _ping(self) -> None:
        """Notice an outage, or missing tables, before there is anything to insert."""
        if time.monotonic() - self._reached < _PING_SECONDS:
            return
        with self._engine.connect() as connection:
            for table in metadata.sorted_tables:
                connection.execute(select(table).limit(0))
        self._reached = time.monotonic()

    def _fail(self, error: Exception) -> None:
        said = _say(error)
        if self.error is None:
            logger.warning("audit rows wait in %s: %s", self._spool.folder, said)
        if not isinstance(error, DBAPIError):
            logger.error("unexpected while inserting audit rows", exc_info=error)
        self.error = said
        with contextlib.suppress(OSError):
            self._spool.merge()

    def _recover(self) -> None:
        if self.error is not None:
            logger.info("the audit database takes rows again")
        self.error = None


def _read(lines: Sequence[bytes]) -> tuple[list[Entry], list[Refused]]:
    entries, refused = list[Entry](), list[Refused]()
    for line in lines:
        try:
            entries.append(decode(line))
            time.sleep(0)  # lets the event loop in, which shares the interpreter
        except ValueError as error:
            refused.append(Refused(line, str(error)))
    return entries, refused


def _is_of_value(error: Exception) -> bool:
    """Whether the row is at fault and not the database, the connection or the schema."""
    return isinstance(error, DataError | IntegrityError) or not isinstance(error, DBAPIError)


def _say(error: Exception) -> str:
    if not isinstance(error, DBAPIError):
        return f"{type(error).__name__}: {error}"
    return brief(error) + (": run `cascade db upgrade`" if lacks_tables(error) else "")
