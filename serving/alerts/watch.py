"""Looks at the audit log again and again, beside the requests, and tells what it finds."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from sqlalchemy import Engine

from serving.alerts import log
from serving.alerts.findings import of_experiments, of_traffic
from serving.alerts.jumps import Hour
from serving.alerts.log import Alert
from serving.alerts.traffic import HOUR, last_hour, week_before
from serving.alerts.turn import turn
from serving.alerts.webhook import RefusedError, Webhook, WebhookError
from serving.results import Trial
from serving.results.kept import SHARE_OF_TIME

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

GIVEN_UP_SECONDS = 86_400.0
"""An alert that could not be delivered for a day is of no use to anybody."""


@dataclass(slots=True)
class _Past:
    """The week before, which need not be added up again each time."""

    until: float = 0.0
    hours: dict[tuple[str, str], list[Hour]] | None = None


async def _whole(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """In a thread, to its end: also when this is called off, since a thread cannot be."""
    under_way = asyncio.ensure_future(asyncio.to_thread(work, *args, **options))
    try:
        return await asyncio.shield(under_way)
    except asyncio.CancelledError:
        await asyncio.wait([under_way])
        raise


class Watch:
    """Finds what somebody should look at, in one process at a time.

    Args:
        engine: of the audit database; closed at the end.
        trials: the experiments, as the file has them.
        webhook: where alerts go; without one they are kept and logged.
        every_seconds: between two looks.
        repeat_seconds: after which what goes on is told again.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        engine: Engine,
        trials: Sequence[Trial],
        *,
        webhook: Webhook | None = None,
        every_seconds: float = 60.0,
        repeat_seconds: float = log.REPEAT_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._trials = trials
        self._webhook = webhook
        self._every = every_seconds
        self._repeat = repeat_seconds
        self._clock = clock
        self._past = _Past()
        self._rested = 0.0
        self._trouble = ""
        self._undelivered = ""
        self._refused: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run(), name="watch")

    async def aclose(self) -> None:
        """Stop; what was kept is delivered by the next process."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await _whole(self._engine.dispose)

    async def look(self) -> None:
        """Look once, and deliver what there is."""
        held = contextlib.ExitStack()
        try:
            if await _whole(held.enter_context, turn(self._engine)):
                await _whole(self._find)
                await self._deliver()
        finally:
            await _whole(held.close)

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
                self._trouble = ""
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look may succeed
                first, *_ = str(error).splitlines() or [""]
                said = f"{type(error).__name__}: {first}"
                if said != self._trouble:
                    logger.warning("the audit log cannot be watched: %s", said)
                self._trouble = said
            await asyncio.sleep(self._every)

    def _find(self) -> None:
        now = self._clock()
        if self._past.hours is None or now - self._past.until >= HOUR:
            self._past = _Past(until=now, hours=week_before(self._engine, now))
        for finding in of_traffic(last_hour(self._engine, now), self._past.hours or {}):
            self._keep(finding)
        if now < self._rested:
            return
        for finding in of_experiments(self._engine, self._trials):
            self._keep(finding)
        took = self._clock() - now
        self._rested = now + took / SHARE_OF_TIME

    def _keep(self, finding: log.Finding) -> None:
        if log.keep(self._engine, finding, repeat_seconds=self._repeat) is not None:
            logger.warning("alert: %s", finding.message)

    async def _deliver(self) -> None:
        if self._webhook is None:
            return
        since = time.time() - GIVEN_UP_SECONDS
        for alert in await _whole(log.waiting, self._engine, since=since):
            if alert.id not in self._refused and not await self._sent(self._webhook, alert):
                return

    async def _sent(self, webhook: Webhook, alert: Alert) -> bool:
        """Whether the webhook works, so that the next alert may be sent."""
        try:
            await webhook.send(alert)
        except RefusedError as error:
            logger.warning("alert %d is not sent: the webhook refuses it: %s", alert.id, error)
            self._refused.add(alert.id)
            return True
        except WebhookError as error:
            if not self._undelivered:
                logger.warning("alerts wait: the webhook fails: %s", error)
            self._undelivered = str(error)
            return False
        self._undelivered = ""
        await _whole(log.delivered, self._engine, alert)
        return True
