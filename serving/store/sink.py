"""The audit log of the service: takes results at once, has them in a database soon after.

    event loop ──▶ queue ──▶ journal thread ──▶ spool folder ──▶ inserter thread ──▶ database

Each step lets go of a row only when the next one has it. A database that is down fills the spool, a
full spool fills the queue, and `state` tells /readyz in time. Feedback goes the same way.

The few questions that are asked while a client waits take into account what is still on its way.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy import Engine

from cascade.audit import HASHED, Prompts, key_hash
from cascade.errors import AuditError
from cascade.result import CascadeResult
from serving.store.answered import Answered
from serving.store.chain import Chain
from serving.store.feedback import Feedback
from serving.store.inserter import Inserter
from serving.store.journal import Journal, Limits
from serving.store.late import Late
from serving.store.lookup import Lookup
from serving.store.spool import Backlog, Spool

_STEP_SECONDS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditState:
    """How the audit log is doing.

    Attributes:
        status: ok; degraded: rows wait for the database, and there is room for more; full: there is
            none, and what is answered from here on may go unrecorded.
        reason: one sentence; empty when ok.
        backlog: what waits in the spool, all processes that share it together.
        queued: results still in memory.
        dropped: results that were not recorded, since the start.
        refused: rows set aside because the database took no such value, since the start.
    """

    status: Literal["ok", "degraded", "full"]
    reason: str
    backlog: Backlog
    queued: int
    dropped: int
    refused: int

    @property
    def room(self) -> bool:
        """Whether another request can be recorded."""
        return self.status != "full"


class SqlAuditSink:
    """Writes results to SQLite or PostgreSQL, off the request path; an AuditSink.

    Args:
        engine: from `engine_for`; whoever made it disposes of it, after `close`.
        spool: folder for rows on their way; several processes may share it.
        limits: see Limits.
        degraded_after: seconds that a row may wait before the state says so.
        embeddings: keep the embeddings of what was classified, to train on later.
        prompts: what to keep of the texts.
        chain: what chains the rows; None leaves them unchained.
    """

    def __init__(
        self,
        engine: Engine,
        spool: Path,
        *,
        limits: Limits | None = None,
        degraded_after: float = 10.0,
        embeddings: bool = False,
        prompts: Prompts = HASHED,
        chain: Chain | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._degraded_after = degraded_after
        self._spool = Spool(spool)
        self._answered = Answered()
        self._lookup = Lookup(engine)
        self._inserter = Inserter(self._spool, engine, chain)
        self._journal = Journal(
            self._spool,
            self._limits,
            self._inserter.written,
            self._inserter.hurry,
            embeddings=embeddings,
            prompts=prompts,
        )

    def start(self) -> None:
        """Start the two threads; the database need not be there yet.

        Raises:
            OSError: the spool folder cannot be made or written.
        """
        self._spool.open()
        self._answered.read(self._spool.lines())
        self._journal.start()
        self._inserter.start()

    def write(self, result: CascadeResult) -> None:
        """Take a result without waiting and without raising."""
        self._answered.note(result)
        # A key's row is what keeps a repetition from being paid that reaches another process, or
        # this one's successor.
        self._journal.append(result, urgent=bool(result.request.idempotency_key))

    def add(self, late: Late) -> None:
        """Take calls that were made after their request was written, as `write` takes that."""
        self._journal.append(late)

    async def keep(self, feedback: Feedback) -> bool:
        """Bring feedback to safety.

        Returns:
            Whether the database has it already; if not, it is in the spool, or soon will be.

        Raises:
            AuditError: there is no room for it.
        """
        if not self._journal.append(feedback):
            raise AuditError("feedback cannot be kept now; send it again later")
        patience = self._lookup.seconds
        try:
            return await self._lookup.within(lambda: self._stored(patience), 3 * patience)
        except AuditError:
            return False

    async def owner(self, request_id: str) -> str | None:
        """The tenant of a request; None when there is no such request.

        Raises:
            AuditError: it cannot be told now: the database cannot be asked, or has not caught up.
        """
        patience = self._lookup.seconds
        return await self._lookup.within(lambda: self._owner(request_id, patience), 3 * patience)

    def answered_lately(self, tenant: str, key: str) -> str | None:
        """The id of the request that answered an idempotency key, as far as memory goes."""
        hashed = key_hash(key)
        return None if hashed is None else self._answered.find(tenant, hashed)

    async def answered(self, tenant: str, key: str) -> str | None:
        """The same, as far as the database goes.

        Raises:
            AuditError: it cannot be asked.
        """
        hashed = key_hash(key)
        if hashed is None:
            return None
        if lately := self._answered.find(tenant, hashed):
            return lately
        self._refuse_when_down()
        return await self._lookup.within(lambda: self._lookup.answered(tenant, hashed))

    def state(self) -> AuditState:
        """How it is doing; looks into the spool folder, so ask once a second rather than always."""
        backlog = self._spool.backlog()
        full = self._full(backlog)
        reason = full or self._trouble(backlog)
        return AuditState(
            status="full" if full else "degraded" if reason else "ok",
            reason=reason,
            backlog=backlog,
            queued=self._journal.queued,
            dropped=self._journal.dropped,
            refused=self._inserter.refused,
        )

    def flush(self, timeout: float) -> bool:
        """Wait until everything written before is in the database (or set aside by it).

        Returns:
            False when that takes longer than `timeout` seconds; nothing is lost then.
        """
        deadline = time.monotonic() + timeout
        if not self._journal.settle(timeout):
            return False
        mark = self._spool.last_ns
        self._inserter.hurry()
        while (oldest := self._spool.backlog().oldest_ns) is not None and oldest <= mark:
            if time.monotonic() > deadline:
                return False
            time.sleep(_STEP_SECONDS)
        return True

    def close(self, timeout: float) -> None:
        """Bring everything into the spool, as much as possible into the database, and stop.

        Blocks up to `timeout` seconds. What the database did not take stays in the spool for the
        next start.
        """
        deadline = time.monotonic() + timeout
        self._lookup.close()
        self._journal.stop(timeout)
        self._inserter.stop(max(0.0, deadline - time.monotonic()))

    def _stored(self, patience: float) -> bool:
        settled = self._journal.settle(patience)
        return settled and self._inserter.error is None and self.flush(patience)

    def _owner(self, request_id: str, patience: float) -> str | None:
        # Looked at first: what leaves the queue or the spool meanwhile is in the database then.
        waiting = self._journal.queued or self._spool.batches()
        self._refuse_when_down()
        tenant = self._lookup.tenant(request_id)
        if tenant is None and waiting:
            if not self.flush(patience):
                raise AuditError("rows are still on their way to the audit database")
            tenant = self._lookup.tenant(request_id)
        return tenant

    def _refuse_when_down(self) -> None:
        if error := self._inserter.error:
            raise AuditError(f"the audit database cannot be asked: {error}")

    def _full(self, backlog: Backlog) -> str:
        if backlog.bytes >= self._limits.spool_bytes:
            return f"the audit spool holds its limit of {self._limits.spool_bytes} bytes"
        if self._journal.queued >= self._limits.queue_rows:
            return f"the audit queue holds its limit of {self._limits.queue_rows} results"
        return ""

    def _trouble(self, backlog: Backlog) -> str:
        if error := self._journal.error or self._inserter.error:
            return error
        if backlog.age > self._degraded_after:
            return f"audit rows have waited for the database for {backlog.age:.0f} s"
        return ""
