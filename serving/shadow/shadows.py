"""Takes every result on its way to the audit log, and has a share of them answered once more.

The request is not touched: its result goes on to the log at once, what is drawn waits until the
answer has been sent, and a bounded number of tasks works through a bounded queue. What finds the
queue full, or nothing left of the day's dollars, is dropped and counted.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from cascade.forecast import Forecast
from cascade.protocols import AuditSink, Traces, Untraced
from cascade.result import CascadeResult
from cascade.snapshot import Snapshot
from cascade.types import Attempt, ChatRequest
from serving.config import Shadow
from serving.shadow.asking import Asking
from serving.shadow.budget import DayBudget
from serving.shadow.draw import answered, drawn, unasked
from serving.shadow.idle import BusyError, Idle
from serving.store.late import Late

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0
FULL, BUDGET, BUSY, STOPPED = "full", "budget", "busy", "stopped"
"""Why a request that was drawn was dropped."""


class LateSink(Protocol):
    """Takes calls that were made after their request had been written."""

    def add(self, late: Late) -> None:
        """Take them without waiting."""
        ...


class Told(Protocol):
    """Is told how it goes."""

    def note_shadows(self, calls: Sequence[Attempt]) -> None:
        """These calls were made."""
        ...

    def dropped_shadow(self, reason: str) -> None:
        """A request that was drawn is left out."""
        ...


class Tracer(Protocol):
    """Keeps traces of what is done for a request after its answer."""

    def aside(self, request: ChatRequest) -> Traces:
        """Says where each of the calls is in a trace."""
        ...

    def note_aside(self, result: CascadeResult, calls: Sequence[Attempt]) -> None:
        """These calls were made for the request of a result."""
        ...


class _NoTracer:
    def aside(self, request: ChatRequest) -> Traces:  # noqa: ARG002 - a seam's
        """Nowhere."""
        return Untraced()

    def note_aside(self, result: CascadeResult, calls: Sequence[Attempt]) -> None:
        """Nobody keeps any."""


class _Nobody:
    def note_shadows(self, calls: Sequence[Attempt]) -> None:
        """Nobody is told."""

    def dropped_shadow(self, reason: str) -> None:
        """Nobody is told."""


class Shadows(AuditSink):
    """Answers a share of the traffic once more, when nobody waits; an AuditSink before another.

    All of it belongs to the event loop's thread.

    Args:
        settings: the configuration's.
        tiers: that may be asked.
        snapshot: tells the configuration at a moment.
        forecast: the engine's.
        budget: of the day.
        asks: by judge, the tiers that it asks.
        idle: lets calls begin when they are in nobody's way.
        inner: takes every result.
        log: takes the shadow calls.
        told: is told how it goes.
        tracer: keeps traces of the calls.
        drain_seconds: for which it goes on when the service stops.

    Attributes:
        dropped: requests that were drawn and not answered once more, by why.
    """

    def __init__(
        self,
        settings: Shadow,
        tiers: Sequence[str],
        *,
        snapshot: Callable[[], Snapshot],
        forecast: Forecast,
        budget: DayBudget,
        idle: Idle,
        asks: Mapping[str, Collection[str]],
        inner: AuditSink,
        log: LateSink,
        told: Told | None = None,
        tracer: Tracer | None = None,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self._settings = settings
        self._tiers = tiers
        self._snapshot = snapshot
        self._forecast = forecast.aside()
        self._budget = budget
        self._idle = idle
        self._asks = asks
        self._inner = inner
        self._log = log
        self._told = told or _Nobody()
        self._tracer = tracer or _NoTracer()
        self._drain_seconds = drain_seconds
        self._unsent: dict[str, CascadeResult] = {}
        self._queue: asyncio.Queue[CascadeResult] = asyncio.Queue(settings.waiting)
        self._workers: list[asyncio.Task[None]] = []

    def write(self, result: CascadeResult) -> None:
        """Take a result."""
        self._inner.write(result)
        identity = result.request.id
        if answered(result) and drawn(identity, self._settings.share, self._settings.salt):
            self._unsent[identity] = result

    def sent(self, request_id: str) -> None:
        """The answer has been sent, or there is nobody left to send it to."""
        result = self._unsent.pop(request_id, None)
        if result is None:
            return
        if not self._workers:
            self._drop(STOPPED)
        elif self._queue.full():
            self._drop(FULL)
        else:
            self._queue.put_nowait(result)

    async def start(self) -> None:
        """Begin to work."""
        self._workers = [
            asyncio.create_task(self._work(), name=f"shadow-{n}")
            for n in range(self._settings.concurrency)
        ]

    async def aclose(self) -> None:
        """Go on for a while with what waits, then cut off what is under way, and book it."""
        workers, self._workers = self._workers, []
        if not workers:
            return
        try:
            async with asyncio.timeout(self._drain_seconds):
                await self._queue.join()
        except TimeoutError:
            self._drop(STOPPED, self._queue.qsize())
            logger.warning("%d requests were not shadowed any more", self._queue.qsize())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            result = await self._queue.get()
            try:
                await self._shadow(result)
            except Exception:
                # A fault in one of them must not end the task that all others depend on.
                logger.exception("request %s cannot be shadowed", result.request.id)
            finally:
                self._queue.task_done()

    async def _shadow(self, result: CascadeResult) -> None:
        # Looked at once: a request is answered by every tier or by none.
        if not await self._budget.left():
            self._drop(BUDGET)
            return
        snapshot = self._snapshot()

        def ruled_out() -> Collection[str]:
            return self._snapshot().ruled_out(result.request)

        asking = Asking(
            result=result,
            propensity=self._settings.share,
            snapshot=snapshot,
            forecast=self._forecast,
            traces=self._tracer.aside(result.request),
            judges={name: snapshot.judges[name] for name in self._settings.judges},
            ruled_out=ruled_out,
            idle=self._idle,
            asks=self._asks,
        )
        try:
            await asking.judge([each for each in result.attempts if each.answered])
            for tier in unasked(result, self._tiers, ruled_out()):
                if not snapshot.tiers[tier].cooling():
                    await asking.ask(tier)
        except BusyError:
            self._drop(BUSY)
        finally:
            self._book(result, asking.calls)

    def _drop(self, reason: str, count: int = 1) -> None:
        for _ in range(count):
            self.dropped[reason] += 1
            self._told.dropped_shadow(reason)

    def _book(self, result: CascadeResult, calls: Sequence[Attempt]) -> None:
        if not calls:
            return
        for call in calls:
            if call.cost is not None:
                self._budget.spend(call.cost.total)
            elif call.quote is not None and call.quote.dollars is not None:
                self._budget.spend(call.quote.dollars)
        self._log.add(Late(request_id=result.request.id, attempts=calls, at=time.time()))
        self._told.note_shadows(calls)
        self._tracer.note_aside(result, calls)
