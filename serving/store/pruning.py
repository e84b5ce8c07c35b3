"""Removes what is older than it may be, a little at a time, while the service runs."""

import asyncio
import logging
import threading
import time

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from serving.store.keys import AuditKeys
from serving.store.removal import Removal, remove

logger = logging.getLogger(__name__)

EVERY_SECONDS = 3600.0
_FIRST_SECONDS = 60.0
DAY_SECONDS = 86_400.0
_BATCH = 200


class Pruner:
    """Prunes once a minute after the start and then every hour.

    Args:
        engine: of the audit log.
        days: how long a row is kept.
        keys: what seals the gaps that it leaves in chains.
        first: seconds until the first time.
    """

    def __init__(
        self,
        engine: Engine,
        days: float,
        keys: AuditKeys | None = None,
        first: float = _FIRST_SECONDS,
    ) -> None:
        self._engine = engine
        self._days = days
        self._keys = keys
        self._first = first
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="audit-pruner", daemon=True)

    async def start(self) -> None:
        """Begin; the first rows go after a while."""
        self._thread.start()

    async def aclose(self) -> None:
        """End after the batch under way."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)
        self._engine.dispose()

    def _run(self) -> None:
        pause = self._first
        while not self._stopping.wait(pause):
            pause = EVERY_SECONDS
            try:
                self._prune()
            except (SQLAlchemyError, PermissionError) as error:
                logger.warning("old audit rows stay for now: %s", type(error).__name__)
                logger.debug("old audit rows stay", exc_info=error)

    def _prune(self) -> None:
        gone = remove(
            self._engine,
            Removal.before(time.time() - self._days * DAY_SECONDS),
            who="the service",
            keys=self._keys,
            batch=_BATCH,
            going_on=lambda _: not self._stopping.is_set(),
        )
        if gone.requests:
            logger.info("%d requests were older than %g days", gone.requests, self._days)
