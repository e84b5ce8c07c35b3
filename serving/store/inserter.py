"""From the spool to the database: the thread that waits, tries again and catches up.

A batch leaves the spool after its transaction is committed. A request that the database refuses
because of a value is set aside, so that it holds up nothing else; every other failure is taken for
an outage, which is waited for.

A batch after a quiet time goes at once. In a stream of them each transaction waits for what comes
within half a second, as one of hundreds of requests costs little more than one of ten: the sums of
all are written once. Who waits for a row need not wait for that.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

from serving.store.adding import catch_up
from serving.store.breathing import breathing
from serving.store.chain import Chain
from serving.store.database import WRITES, brief, lacks_tables
from serving.store.rows import Entry, decode, insert, known
from serving.store.spool import Claim, Spool
from serving.store.tables import metadata

logger = logging.getLogger(__name__)

_MOST_ROWS = 2000  # requests in one transaction
_POSTPONE_SECONDS = 2.0  # calls whose request is not there yet
_LATEST_SECONDS = 3600.0  # after which it is taken to never come
_AGAIN_SECONDS = 60.0  # for which it is looked for all the same, after a long outage
_POLL_SECONDS = 1.0  # other processes' batches come without a signal
_PING_SECONDS = 5.0
_GATHER_SECONDS = 0.5
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that cannot become rows."""

    line: bytes
    why: str


class Inserter:
    """Moves batches from the spool into the tables, oldest first.

    Args:
        spool: where batches come from.
        engine: of the database.
        chain: what chains the requests; None leaves them unchained.
        again_seconds: for which the request of old calls is looked for.
        gather_seconds: from one transaction to the next, unless somebody waits or there is more
            than goes into one.
    """

    def __init__(
        self,
        spool: Spool,
        engine: Engine,
        chain: Chain | None = None,
        *,
        again_seconds: float = _AGAIN_SECONDS,
        gather_seconds: float = _GATHER_SECONDS,
    ) -> None:
        self.error: str | None = None
        self.refused = 0
        self._spool = spool
        self._engine = engine.execution_options(**WRITES)
        self._chain = chain
        self._again_seconds = again_seconds
        self._gather_seconds = gather_seconds
        self._missed = dict[bytes, float]()  # old calls without a request, since when
        self._behind = True  # there may be rows of an older version that are not added up
        self._wake = threading.Event()
        self._hurried = threading.Event()
        self._stopping = threading.Event()
        self._deadline = float("inf")
        self._reached = float("-inf")
        self._thread = threading.Thread(target=self._run, name="audit-inserter", daemon=True)

    def start(self) -> None:
        """Begin to insert, what an earlier process left first."""
        self._thread.start()

    def written(self) -> None:
        """There is a new batch."""
        self._wake.set()

    def hurry(self) -> None:
        """Somebody waits for what there is."""
        self._hurried.set()
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """Insert what is left and end; what a failing database does not take stays for later."""
        if self._stopping.is_set():
            return
        self._deadline = time.monotonic() + timeout
        self._stopping.set()
        self.hurry()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while time.monotonic() < self._deadline:
            stopping, began = self._stopping.is_set(), time.monotonic()
            try:
                found = self._insert_some()
            except Exception as error:  # noqa: BLE001 - _fail logs it; the rows wait in the spool
                self._fail(error)
                if stopping:
                    return
                self._stopping.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                continue
            pause = _FIRST_PAUSE_SECONDS
            self._recover()
            if not found.batches:
                if stopping:
                    return
                self._wake.wait(_POLL_SECONDS)
                self._wake.clear()
            elif not (found.more or stopping):
                self._hurried.wait(max(0.0, began + self._gather_seconds - time.monotonic()))
                self._hurried.clear()

    def _insert_some(self) -> Claim:
        """Insert the oldest batches, if there are any."""
        self._spool.resume(_POSTPONE_SECONDS)
        with self._spool.claim(_MOST_ROWS) as claim:
            if not claim.batches:
                self._ping()
                self._behind = self._behind and catch_up(self._engine) > 0
                return claim
            entries, refused = _read(claim.lines)
            refused += self._insert([each for each in entries if each.late_since is None])
            refused += self._join([each for each in entries if each.late_since is not None])
            self._reached = time.monotonic()
            self._set_aside(refused)
            self._spool.remove(claim)
        return claim

    def _insert(self, entries: Sequence[Entry]) -> list[Refused]:
        """Insert, by halves and halves of halves when the database refuses a value among them."""
        if not entries:
            return []
        try:
            self._commit(entries)
        except (StatementError, OverflowError, TypeError) as error:  # the last two by the driver
            if not _is_of_value(error):
                raise
            if len(entries) == 1:
                return [Refused(entries[0].line, _say(error))]
            half = len(entries) // 2
            return self._insert(entries[:half]) + self._insert(entries[half:])
        return []

    def _join(self, entries: Sequence[Entry]) -> list[Refused]:
        """Insert calls that came after their request; those that came before it wait for it.

        It may be in the hands of another process, or have been refused or deleted. After a long
        outage all are old, and another process may be about to write it.
        """
        if not entries:
            return []
        with self._engine.connect() as connection:
            there = known(connection, entries)
        joining = [each for each in entries if there.issuperset(each.request_ids)]
        refused, early = self._insert(joining), list[bytes]()
        for each in entries:
            if there.issuperset(each.request_ids):
                self._missed.pop(each.line, None)
            elif self._is_over(each):
                refused.append(Refused(each.line, "their request is not in the audit log"))
            else:
                early.append(each.line)
        if early:
            self._spool.postpone(early)
        return refused

    def _is_over(self, late: Entry) -> bool:
        """Whether the request of calls that are old has been looked for long enough."""
        now = time.monotonic()
        if (late.late_since or 0.0) > time.time() - _LATEST_SECONDS:
            return False
        if now - self._missed.setdefault(late.line, now) < self._again_seconds:
            return False
        del self._missed[late.line]
        return True

    def _commit(self, entries: Sequence[Entry]) -> None:
        head = None
        with self._engine.begin() as connection:
            new = insert(connection, entries)
            if self._chain is not None:
                head = self._chain.link(connection, new.requests, new.calls)
        if self._chain is not None and head is not None:
            self._chain.head = head

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
    for line in breathing(lines):
        try:
            entries.append(decode(line))
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
