"""Keeps a worker's configuration under the overrides in the database.

Every worker looks for itself, so they need not know of each other, and one that starts late or lost
the database for a while comes to the same. Time limits are held against the clock here: they end
also while the database is away.
"""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from cascade.engine import CascadeEngine
from cascade.errors import AuditError
from cascade.snapshot import Snapshot
from serving.overrides import store
from serving.overrides.apply import applied, drains_of, fitting, ground_of, pin_of
from serving.overrides.changes import Changes
from serving.overrides.store import Override, State
from serving.store.database import RETRY_SECONDS, brief, lacks_tables

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 5.0


class Watcher:
    """Looks for new overrides, and swaps the engine's snapshot when there are any.

    Args:
        engine: its snapshot is the file's when this is made.
        database: of the audit log; disposed of at the end.
        seconds: from one look to the next.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        engine: CascadeEngine,
        database: Engine,
        *,
        seconds: float = LOOK_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.file: Snapshot = engine.snapshot
        self.database = database
        self.changes = Changes(database, ground_of(self.file))
        self.reachable = True
        self.doubts: Sequence[str] = ()
        self._engine = engine
        self._seconds = seconds
        self._clock = clock
        # One thread, so that what is read after a change has the change in it.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="overrides")
        self._version: int | None = None
        self._heard = -math.inf
        self._standing: Sequence[Override] = ()
        self._state: State = {}
        self._look: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def current(self) -> Snapshot:
        """The configuration in force here."""
        return self._engine.snapshot

    @property
    def state(self) -> State:
        """What is in force here, left out or not."""
        return self._state

    def report(self) -> dict[str, Any]:
        """What is in force here, in short, and whether it is followed."""
        state = self.state
        experiments = [s for s in state if s.startswith(store.EXPERIMENT)]
        return {
            "status": "ok" if self.reachable else "stale",
            "pin": pin_of(state),
            "drained": sorted(drains_of(state)),
            "experiments": sorted(s.removeprefix(store.EXPERIMENT) for s in experiments),
            "left_out": list(self.doubts),
        }

    async def start(self) -> None:
        """Look once, so that nobody is answered as if there were no overrides; then go on."""
        await self.refresh()
        self._task = asyncio.create_task(self._watch())

    async def aclose(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._look is not None:  # its connection goes back before they are all closed
            await asyncio.wait([self._look], timeout=PATIENCE_SECONDS)
            self._look.add_done_callback(_heard)
        self._pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.database.dispose)

    async def refresh(self, patience: float = PATIENCE_SECONDS) -> None:
        """Follow the database now, as far as it answers; otherwise what is known stays.

        Args:
            patience: seconds to wait for it; what it says later is followed the next time.
        """
        if self._look is None or self._look.done():  # one that hangs is not joined by others
            self._look = asyncio.get_running_loop().run_in_executor(self._pool, self._read)
        # Not wait_for, which takes no notice of being cancelled while the look comes to its end.
        await asyncio.wait([self._look], timeout=patience)
        if not self._look.done():
            if time.monotonic() - self._heard >= PATIENCE_SECONDS:
                self._lost("it does not answer")
        elif (fault := self._look.exception()) is not None:
            self._lost(_brief(fault))
        else:
            self._heard = time.monotonic()
            self._found()
        self._follow()

    async def within(self, work: Callable[[], T]) -> T:
        """The result of work on the database, from a thread.

        Raises:
            AuditError: the database did not do it, or not in time.
        """
        loop = asyncio.get_running_loop()
        try:
            future = loop.run_in_executor(self._pool, work)
            return await asyncio.wait_for(future, PATIENCE_SECONDS)
        except TimeoutError:
            raise AuditError(
                "the audit database did not answer in time; a change may have been made all the "
                "same, so look before it is tried again",
                retry_after=RETRY_SECONDS,
            ) from None
        except SQLAlchemyError as error:
            raise AuditError(
                f"the audit database cannot be used: {_brief(error)}", retry_after=RETRY_SECONDS
            ) from error

    async def change(self, work: Callable[[Changes], int]) -> int:
        """A change's version, once this worker follows it.

        Raises:
            AuditError: the database did not do it, or not in time.
            RequestError: it cannot be.
            OverrideConflictError: somebody else was faster.
        """
        version = await self.within(lambda: self._changed(work))
        self._follow()
        return version

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            await self.refresh(LOOK_SECONDS)

    def _changed(self, work: Callable[[Changes], int]) -> int:
        version = work(self.changes)
        self._read()
        return version

    def _read(self) -> None:
        newest = store.latest(self.database)
        if newest != self._version:
            self._standing = store.standing(self.database, self._clock())
            self._version = newest

    def _follow(self) -> None:
        state = store.in_force(self._standing, self._clock())
        if state == self._state:
            return
        fit = fitting(ground_of(self.file), state)
        self._engine.snapshot = applied(self.file, fit)
        self._state = state
        for doubt in fit.doubts:
            if doubt not in self.doubts:
                logger.warning(doubt)
        self.doubts = fit.doubts
        said = ", ".join(f"{each.subject} (version {each.version})" for each in state.values())
        logger.info("overridden: %s", said or "nothing")

    def _lost(self, why: str) -> None:
        if self.reachable:
            logger.warning("overrides stay as they are, the database is away: %s", why)
        self.reachable = False

    def _found(self) -> None:
        if not self.reachable:
            logger.info("the database is back, and overrides are followed again")
        self.reachable = True


def _heard(look: "asyncio.Future[None]") -> None:
    """Nobody needs to know any more why a look failed."""
    if not look.cancelled():
        look.exception()


def _brief(error: BaseException) -> str:
    if isinstance(error, DBAPIError):
        return brief(error) + (": run `cascade db upgrade`" if lacks_tables(error) else "")
    kind = "" if isinstance(error, SQLAlchemyError) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())
