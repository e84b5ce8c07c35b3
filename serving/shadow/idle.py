"""Keeps shadow calls out of the way of clients where both would share a machine or its queue."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from cascade.forecast import Forecast
from cascade.sight import Load

_STEP_SECONDS = 0.05


class BusyError(Exception):
    """There was no moment in which no client waited for an answer."""


class Idle:
    """Lets a call to some tiers begin only while no client waits, and only one at a time.

    A client that comes while such a call is under way shares the machine with it. A tier that takes
    a limited number of calls is asked while nobody waits for one and a client would still find one.

    Args:
        tiers: that are asked so; the others are asked at once where they take any number of calls.
        forecast: knows how many requests are being answered.
        seconds: how long a call waits for its moment.
    """

    def __init__(self, tiers: Collection[str], forecast: Forecast, seconds: float) -> None:
        self._tiers = frozenset(tiers)
        self._forecast = forecast
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._calls = 0

    @asynccontextmanager
    async def judging(self, tiers: Collection[str]) -> AsyncIterator[None]:
        """Wait for the moment in which a judge may ask these tiers.

        Raises:
            BusyError: there was none.
        """
        if self._tiers.isdisjoint(tiers):
            await self._until(lambda: self._have_room(tiers))
            yield
            return
        async with self._turn:
            await self._until(
                lambda: self._forecast.under_way <= self._calls and self._have_room(tiers)
            )
            yield

    @asynccontextmanager
    async def asking(self, tier: str) -> AsyncIterator[None]:
        """Wait for the moment to put a request to a tier, which then is under way as well.

        Raises:
            BusyError: there was none.
        """
        async with self.judging([tier]):
            self._calls += 1
            try:
                yield
            finally:
                self._calls -= 1

    async def _until(self, is_time: Callable[[], bool]) -> None:
        last = time.monotonic() + self._seconds
        while not is_time():
            if time.monotonic() > last:
                raise BusyError
            await asyncio.sleep(_STEP_SECONDS)

    def _have_room(self, tiers: Collection[str]) -> bool:
        known = self._forecast.tiers
        loads = [known[name].loads() for name in tiers if name in known]
        return all(not each or any(map(_has_room, each)) for each in loads)


def _has_room(load: Load) -> bool:
    """Whether a call is taken at once, and one of a client's after it, where two are taken."""
    if load.most is None:
        return True
    return not load.waiting and (load.in_flight or 0) < max(1, load.most - 1)
