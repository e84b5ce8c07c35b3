"""What shadow calls may cost from one midnight (UTC) to the next, whoever makes them.

Every process counts what it spends itself and looks now and then into the audit log, where it finds
what the others spent, and what was spent before it started. Between two looks several processes
together may go over by what each of them spends in that time.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from decimal import Decimal

from sqlalchemy import Engine, func, literal, select
from sqlalchemy.exc import SQLAlchemyError

from cascade.audit import PICO
from cascade.types import Kind
from serving.store.tables import attempts, requests

logger = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
_DAY_SECONDS = 86_400


class DayBudget:
    """Dollars for one day.

    Args:
        dollars: that may be spent. A call is begun while any are left, so each that is under way
            may go over by its own price.
        spent_since: what the audit log knows of, from a time in seconds since the epoch on; asked
            in a thread. None: only this process is counted.
        clock: seconds since the epoch.
    """

    def __init__(
        self,
        dollars: Decimal,
        spent_since: Callable[[float], Decimal] | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._dollars = dollars
        self._spent_since = spent_since
        self._clock = clock
        self._day = -1
        self._spent = Decimal(0)
        self._looked = float("-inf")

    async def left(self) -> bool:
        """Whether anything of today's is left."""
        self._turn()
        if self._spent_since is not None and self._clock() - self._looked >= LOOK_SECONDS:
            self._looked = self._clock()
            await self._look(self._spent_since)
        return self._spent < self._dollars

    def spend(self, dollars: Decimal) -> None:
        """So much was spent."""
        self._turn()
        self._spent += dollars

    def _turn(self) -> None:
        today = int(self._clock() // _DAY_SECONDS)
        if today != self._day:
            self._day, self._spent = today, Decimal(0)

    async def _look(self, spent_since: Callable[[float], Decimal]) -> None:
        day = self._day
        try:
            known = await asyncio.to_thread(spent_since, float(day * _DAY_SECONDS))
        except SQLAlchemyError as error:
            logger.warning("what shadow calls cost today is only known of this process: %s", error)
            return
        if day == self._day:
            # The log may lag behind this process, so the larger number is nearer to the truth.
            self._spent = max(self._spent, known)


def spent_on_shadows(engine: Engine) -> Callable[[float], Decimal]:
    """Asks the audit log what shadow calls of requests since a time cost, in dollars."""
    # Written out, so that an index of nothing but shadow calls can be used.
    shadow = attempts.c.kind == literal(Kind.SHADOW.value, literal_execute=True)

    def spent_since(since: float) -> Decimal:
        pico = select(func.coalesce(func.sum(attempts.c.cost_pico), 0))
        pico = pico.join_from(attempts, requests, attempts.c.request_id == requests.c.id)
        with engine.connect() as connection:
            found = connection.scalar(pico.where(shadow, requests.c.created_at >= since))
        return Decimal(found or 0) / PICO

    return spent_since
