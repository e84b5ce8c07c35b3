"""Quick questions to the audit database while a client waits.

They are asked in threads of their own and given up after a second, so that a database that hangs
holds up neither the event loop nor what else needs a thread.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Engine, Select, select
from sqlalchemy.exc import SQLAlchemyError

from cascade.errors import AuditError
from serving.store.answered import DONE
from serving.store.tables import requests

T = TypeVar("T")

_THREADS = 4


class Lookup:
    """Asks for single values, each within `seconds`."""

    def __init__(self, engine: Engine, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self._engine = engine
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="audit-lookup")

    def tenant(self, request_id: str) -> str | None:
        """Whose request that is; None when there is none of that id."""
        return self._first(select(requests.c.tenant).where(requests.c.id == request_id))

    def answered(self, tenant: str, hashed: str) -> str | None:
        """The id of the request that answered this idempotency key; None when none did."""
        return self._first(
            select(requests.c.id).where(
                requests.c.idempotency_hash == hashed,
                requests.c.tenant == tenant,
                requests.c.status.in_(DONE),
            )
        )

    async def within(self, work: Callable[[], T], seconds: float | None = None) -> T:
        """The work's result, from a thread.

        Raises:
            AuditError: it took longer than that, or the thread is no more.
        """
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, work)
        except RuntimeError as error:  # it was closed
            raise AuditError("the audit log is closed") from error
        try:
            return await asyncio.wait_for(future, seconds or self.seconds)
        except TimeoutError:
            raise AuditError("the audit database did not answer in time") from None

    def close(self) -> None:
        """Take no more questions; one under way ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _first(self, wanted: Select[str]) -> str | None:
        try:
            with self._engine.connect() as connection:
                return connection.scalars(wanted.limit(1)).first()
        except SQLAlchemyError as error:
            raise AuditError(f"the audit database cannot be asked: {error}") from error
