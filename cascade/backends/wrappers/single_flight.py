"""Lets one request fill a cache that many would fill at once.

An entry exists only once an answer has begun. Ten requests that arrive together with the same cold
prefix all compute it, and all pay for writing it. Sent one ahead of nine, nine read what the first
has written; they wait for about as long as it takes to compute the prefix, which they would have
waited anyway.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from cascade.answers import is_answer
from cascade.backends.wrappers.queued import queued
from cascade.protocols import Backend
from cascade.tiers.stable import stable_key, stable_tokens
from cascade.types import ChatRequest, Chunk

SharedPrefix = Callable[[ChatRequest], tuple[str, int] | None]
"""The name of the prefix that a request shares with others, and how many tokens of it are cold.

None when it is warm, or nothing is known of it. Requests of the same name share the same prefix.
"""

_MAX_PREFIXES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOut:
    """When requests wait for one another.

    Attributes:
        wait_seconds: how long each waits at most.
        min_tokens: a prefix of which fewer tokens are cold is not waited for.
    """

    wait_seconds: float
    min_tokens: int


def nobody_told(key: str) -> None:
    """Of a prefix whose first answer began."""
    del key


@dataclass(slots=True)
class _Flight:
    """The requests of a cold prefix: one is under way, the others wait.

    A waiter's future brings True when it is to go ahead of the others, False when it may follow.
    """

    waiting: deque[asyncio.Future[bool]] = field(default_factory=deque)


class SingleFlightBackend(Backend):
    """Another backend, asked by one request first where several share a prefix that is cold.

    The others go when its answer begins, or when they have waited long enough. When it fails or its
    client leaves before that, the next of them goes ahead.

    Args:
        inner: the backend that is asked.
        fan_out: when requests wait.
        shared_prefix: says of a request what it shares with others and how much of that is cold.
        began: told the name of a prefix when an answer to a request for it begins.
        clock: seconds that only go up.
    """

    def __init__(
        self,
        inner: Backend,
        fan_out: FanOut,
        *,
        shared_prefix: SharedPrefix,
        began: Callable[[str], None] = nobody_told,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._fan_out = fan_out
        self._shared_prefix = shared_prefix
        self._began = began
        self._clock = clock
        self._flights: dict[str, _Flight] = {}

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask, when it is this request's turn."""
        shared = self._shared_prefix(request)
        if shared is None or shared[1] < self._fan_out.min_tokens:
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        key, begun = shared[0], False
        arrived = self._clock()
        flight = await self._turn(key)
        waited = self._clock() - arrived
        try:
            async with aclosing(queued(self._inner.stream(request), waited)) as chunks:
                async for chunk in chunks:
                    if not begun and is_answer(chunk.choices):
                        begun = True
                        self._begin(key)
                    yield chunk
        finally:
            if flight is not None and not begun:
                self._hand_on(key, flight)

    async def aclose(self) -> None:
        """Release the inner backend's connections."""
        await self._inner.aclose()

    @property
    def waiting(self) -> int:
        """How many requests wait for another one now."""
        return sum(len(flight.waiting) for flight in self._flights.values())

    async def _turn(self, key: str) -> _Flight | None:
        """Wait until this request may go; its flight when it goes ahead of others."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            return flight
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        flight.waiting.append(turn)
        try:
            await asyncio.wait([turn], timeout=self._fan_out.wait_seconds)
        except asyncio.CancelledError:
            if _leads(turn):
                self._hand_on(key, flight)
            raise
        finally:
            if not turn.done():
                flight.waiting.remove(turn)
        return flight if _leads(turn) else None

    def _begin(self, key: str) -> None:
        """An answer has begun: the prefix is in the cache, and who waits for it goes."""
        self._began(key)
        flight = self._flights.pop(key, None)
        while flight is not None and flight.waiting:
            flight.waiting.popleft().set_result(False)

    def _hand_on(self, key: str, flight: _Flight) -> None:
        """The request that went ahead ended without an answer: the next one goes ahead."""
        if flight.waiting:
            flight.waiting.popleft().set_result(True)
        elif self._flights.get(key) is flight:
            del self._flights[key]


class RecentPrefixes:
    """Which tools and system prompts a cache has, by when they were used last: a SharedPrefix.

    Args:
        ttl_seconds: how long a prefix is kept after its last use.
        max_prefixes: how many are remembered, those last used.
        clock: seconds that only go up.
    """

    def __init__(
        self,
        *,
        ttl_seconds: float,
        max_prefixes: int = _MAX_PREFIXES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl_seconds = ttl_seconds
        self._max_prefixes = max_prefixes
        self._clock = clock
        self._used: OrderedDict[str, float] = OrderedDict()

    def __call__(self, request: ChatRequest) -> tuple[str, int] | None:
        """Name and length of what is cold of a request; a use renews what is warm."""
        key = stable_key(request)
        used = self._used.get(key)
        if used is not None and self._clock() - used < self._ttl_seconds:
            self.began(key)
            return None
        return key, stable_tokens(request)

    def began(self, key: str) -> None:
        """An answer to a request for that prefix began."""
        self._used[key] = self._clock()
        self._used.move_to_end(key)
        if len(self._used) > self._max_prefixes:
            self._used.popitem(last=False)


def _leads(turn: asyncio.Future[bool]) -> bool:
    return turn.done() and not turn.cancelled() and turn.result()
