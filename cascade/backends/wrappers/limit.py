"""Keeps a model's server from being asked more at once than it can take.

What comes on top waits in a queue, first come first served. The queue is short in length and in
time: who would wait too long is told so at once, while there is still another tier to ask.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from statistics import fmean

from cascade.backends.wrappers.queued import queued
from cascade.errors import BackendBusyError
from cascade.protocols import Backend
from cascade.sight import Load
from cascade.types import ChatRequest, Chunk

_RECENT_CALLS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many calls there may be.

    Attributes:
        concurrent: calls in flight.
        waiting: calls that wait for one of those to end.
        wait_seconds: how long each of them waits at most.
    """

    concurrent: int
    waiting: int
    wait_seconds: float


class LimitedBackend(Backend):
    """Another backend, asked by a limited number of calls at once.

    Args:
        inner: the backend that is asked.
        limits: how many.
        clock: seconds that only go up.
    """

    def __init__(
        self, inner: Backend, limits: Limits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._limits = limits
        self._clock = clock
        self._slots = asyncio.Semaphore(limits.concurrent)  # it serves in order of arrival
        self._in_flight = 0
        self._waiting = 0
        self._recent: deque[float] = deque(maxlen=_RECENT_CALLS)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask once there is a free slot.

        Raises:
            BackendBusyError: the queue is full, or no slot came free in time.
            BackendError: whatever went wrong in the inner backend.
        """
        waited = await self._enter()
        self._in_flight += 1
        began = self._clock()
        try:
            stream = self._inner.stream(request)
            async with aclosing(queued(stream, waited) if waited else stream) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._recent.append(self._clock() - began)
            self._in_flight -= 1
            self._slots.release()

    def load(self) -> Load:
        """How many calls there are now."""
        return Load(in_flight=self._in_flight, waiting=self._waiting, most=self._limits.concurrent)

    async def aclose(self) -> None:
        """Release the inner backend's connections."""
        await self._inner.aclose()

    async def _enter(self) -> float:
        """Take a slot, or wait for one; how long it took."""
        if self._slots.locked():
            return await self._queue()
        await self._slots.acquire()
        return 0.0

    async def _queue(self) -> float:
        limits = self._limits
        if self._waiting >= limits.waiting:
            raise self._busy(f"{limits.concurrent} in flight, {self._waiting} waiting")
        self._waiting += 1
        arrived = self._clock()
        try:
            async with asyncio.timeout(limits.wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            busy = self._busy(f"no call ended within {limits.wait_seconds:g} s")
            busy.queued_seconds = self._clock() - arrived
            raise busy from None
        finally:
            self._waiting -= 1
        return self._clock() - arrived

    def _busy(self, why: str) -> BackendBusyError:
        """When to come back: once those who wait, and the one who asks, have had their turn."""
        turns = (self._waiting + 1) / self._limits.concurrent
        seconds = fmean(self._recent) * turns if self._recent else self._limits.wait_seconds
        return BackendBusyError(f"as many calls as are allowed: {why}", retry_after=seconds)
