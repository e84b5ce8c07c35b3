"""Clocks that stand still, and wrapped backends with small numbers, for tests of the wrappers."""

from dataclasses import replace
from typing import Any

from cascade.backends.wrappers.breaker import CoolDown, CoolingBackend
from cascade.backends.wrappers.limit import LimitedBackend, Limits
from cascade.backends.wrappers.retry import Retries, RetryingBackend
from cascade.protocols import Backend

RETRIES = Retries(
    times=2, base_seconds=1.0, cap_seconds=3.0, retry_after_seconds=10.0, within_seconds=60.0
)
LIMITS = Limits(concurrent=2, waiting=3, wait_seconds=5.0)
COOLDOWN = CoolDown(
    rate=0.5, calls=10, window_seconds=60.0, min_calls=4, seconds=8.0, max_seconds=20.0
)


class Clock:
    """Time that passes only when told to; sleeping on it passes it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def retrying(
    inner: Backend, clock: Clock | None = None, *, chance: float = 1.0, **changes: Any
) -> RetryingBackend:
    """By default it waits as long as it may, 1, 2, 3, 3... seconds."""
    clock = clock or Clock()
    return RetryingBackend(
        inner,
        replace(RETRIES, **changes),
        sleep=clock.sleep,
        chance=lambda: chance,
        clock=clock,
    )


def limited(inner: Backend, clock: Clock | None = None, **changes: Any) -> LimitedBackend:
    return LimitedBackend(inner, replace(LIMITS, **changes), clock=clock or Clock())


def cooling(inner: Backend, clock: Clock | None = None, **changes: Any) -> CoolingBackend:
    return CoolingBackend(inner, replace(COOLDOWN, **changes), clock=clock or Clock())


def guarded(inner: Backend, clock: Clock | None = None) -> Backend:
    """All three, in the order in which the service puts them."""
    return retrying(cooling(limited(inner, clock), clock), clock)
