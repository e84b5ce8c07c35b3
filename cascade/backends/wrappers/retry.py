"""Asks again when that can help: the client is spared a fault that is over in a moment.

Only until the answer has begun: a second answer cannot be joined to the text of the first.
"""

import asyncio
import itertools
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from cascade.answers import is_answer
from cascade.errors import BackendError
from cascade.protocols import Backend
from cascade.types import ChatRequest, Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and how soon is asked again.

    Attributes:
        times: tries after the first.
        base_seconds: longest wait before the first of them; it doubles each time.
        cap_seconds: longest wait before any of them.
        retry_after_seconds: an upstream that wants more time than this is not waited for.
        within_seconds: no try begins later than this after the first.
    """

    times: int
    base_seconds: float
    cap_seconds: float
    retry_after_seconds: float
    within_seconds: float

    def wait(self, error: BackendError, tries: int, chance: float) -> float | None:
        """Seconds until the next try after so many; None when there is to be none.

        The wait is chosen evenly below the cap (full jitter), on top of what the upstream asked
        for, so that those who failed together do not come back together.

        Args:
            error: how the last try failed.
            tries: tries so far.
            chance: evenly distributed in [0, 1).
        """
        asked = error.retry_after or 0.0
        if not error.retryable or tries > self.times or asked > self.retry_after_seconds:
            return None
        return asked + chance * min(self.cap_seconds, self.base_seconds * 2.0 ** (tries - 1))


class RetryingBackend(Backend):
    """Another backend, asked again when it fails in a way that may pass.

    Args:
        inner: the backend that is asked.
        retries: how often and how soon.
        sleep: waits so many seconds.
        chance: evenly distributed in [0, 1).
        clock: seconds that only go up.
    """

    def __init__(
        self,
        inner: Backend,
        retries: Retries,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,  # noqa: S311 - it spreads load, it keeps no secret
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._retries = retries
        self._sleep = sleep
        self._chance = chance
        self._clock = clock

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask until an answer begins; the error of the last try says how many there were."""
        latest, unreported = self._clock() + self._retries.within_seconds, 0
        for tries in itertools.count(1):
            begun = False
            try:
                async with aclosing(self._inner.stream(request)) as chunks:
                    async for chunk in chunks:
                        begun = begun or is_answer(chunk.choices)
                        yield chunk if tries == 1 else _noting(chunk, tries, unreported)
            except BackendError as error:
                wait = None if begun else self._retries.wait(error, tries, self._chance())
                if wait is None or self._clock() + wait > latest:
                    _tell(error, tries, unreported)
                    raise
                unreported += error.may_have_cost
            else:
                return
            await self._sleep(wait)

    async def aclose(self) -> None:
        """Release the inner backend's connections."""
        await self._inner.aclose()


def _noting(chunk: Chunk, tries: int, unreported: int) -> Chunk:
    if chunk.completion is None:
        return chunk
    noted = replace(chunk.completion, tries=tries, unreported_tries=unreported)
    return replace(chunk, completion=noted)


def _tell(error: BackendError, tries: int, unreported: int) -> None:
    """Say on the error what the tries before it were; their cost is part of the call's."""
    error.tries, error.unreported_tries = tries, unreported
    if tries > 1:
        error.message = f"{error.message} (after {tries} tries)"
        error.args = (error.message,)
