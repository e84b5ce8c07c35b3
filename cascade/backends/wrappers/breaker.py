"""Leaves a model's server alone that fails too often, so that its requests lose no time on it.

A circuit is closed (calls go through and are counted), or open (calls fail at once). Once it has
cooled down a single call is let through as a probe: a whole answer closes the circuit, a fault
opens it for twice as long. It is this process's own and costs no I/O.

What speaks against a server is that it cannot be reached, does not answer in time, fails, or
answers with what is no answer. A refused request and wrong credentials do not: one client's bad
requests must not cool the model for all others, and an operator must go on reading what is wrong
with the key. Nor does a 429: it says when to come back, and a server that is as busy as it can be
is not one that is down. A call that was cancelled says nothing.
"""

import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from cascade.errors import (
    BackendBusyError,
    BackendConnectionError,
    BackendCoolingDownError,
    BackendError,
    BackendProtocolError,
    BackendServerError,
    BackendTimeoutError,
)
from cascade.protocols import Backend
from cascade.sight import Load
from cascade.types import ChatRequest, Chunk

_FAULTS = (
    BackendConnectionError,
    BackendTimeoutError,
    BackendServerError,
    BackendProtocolError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoolDown:
    """When a server is left alone, and for how long.

    Attributes:
        rate: share of faults in the window that opens the circuit.
        calls: the window: the last so many calls,
        window_seconds: but none older than this.
        min_calls: calls in the window before its rate means anything.
        seconds: the first cool-down; it doubles each time a probe fails.
        max_seconds: the longest.
    """

    rate: float
    calls: int
    window_seconds: float
    min_calls: int
    seconds: float
    max_seconds: float


class Circuit:
    """Decides whether a call may go through, from how the calls before it ended.

    Every call gets a ticket. Opening makes the tickets before it void, so that a call from before
    an outage, ending late, is not taken for a probe after it.
    """

    def __init__(self, cooldown: CoolDown, clock: Callable[[], float]) -> None:
        self._cooldown = cooldown
        self._clock = clock
        self._window: deque[tuple[float, bool]] = deque(maxlen=cooldown.calls)
        self._seconds = cooldown.seconds
        self._open_until: float | None = None
        self._ticket = 0
        self._cause = ""

    def enter(self) -> int:
        """A ticket for a call.

        Raises:
            BackendCoolingDownError: the circuit is open.
        """
        if self._open_until is None:
            return self._ticket
        left = self._open_until - self._clock()
        if left > 0:
            raise BackendCoolingDownError(
                f"cooling down for {left:.1f} s more; the last fault: {self._cause}",
                retry_after=left,
            )
        # The next probe is due in a cool-down from now even if this one never reports back. Both
        # tickets stay valid: an answer that takes longer than the cool-down must be able to end it.
        self._open_until = self._clock() + self._seconds
        return self._ticket

    @property
    def cooling(self) -> bool:
        """Whether a call would be turned away now."""
        return self._open_until is not None and self._clock() < self._open_until

    def answered(self, ticket: int) -> None:
        """The server answered the call."""
        if ticket != self._ticket:
            return
        if self._open_until is None:
            self._window.append((self._clock(), False))
        else:
            self._close()

    def failed(self, ticket: int, error: BackendError) -> None:
        """The call ended in an error."""
        if ticket != self._ticket:
            return
        if isinstance(error, _FAULTS):
            self._fault(error)
        elif self._open_until is not None:
            # No fault, so the probe did reach the server, unless our own limit held it back.
            self.unknown(ticket) if isinstance(error, BackendBusyError) else self._close()

    def unknown(self, ticket: int) -> None:
        """The call ended in a way that says nothing; if it was the probe, the next call is."""
        if ticket == self._ticket and self._open_until is not None:
            self._open_until = self._clock()

    def recovered(self) -> None:
        """Whoever watches the server says that it is a new one, and well.

        How the old one failed says nothing of it, also where a call is only now found out to have.
        """
        self._ticket += 1
        self._window.clear()
        self._close()

    def _fault(self, error: BackendError) -> None:
        self._cause = error.message
        if self._open_until is not None:
            self._seconds = min(2 * self._seconds, self._cooldown.max_seconds)
            self._open()
            return
        now = self._clock()
        self._window.append((now, True))
        while now - self._window[0][0] > self._cooldown.window_seconds:
            self._window.popleft()
        faults = sum(fault for _, fault in self._window)
        enough = len(self._window) >= self._cooldown.min_calls
        if enough and faults >= self._cooldown.rate * len(self._window):
            self._open()

    def _open(self) -> None:
        self._open_until = self._clock() + self._seconds
        self._ticket += 1
        self._window.clear()

    def _close(self) -> None:
        self._open_until = None
        self._seconds = self._cooldown.seconds


class CoolingBackend(Backend):
    """Another backend, left alone for a while when it fails too often. It counts its calls.

    Args:
        inner: the backend that is asked.
        cooldown: when it is left alone, and for how long.
        clock: seconds that only go up.
    """

    def __init__(
        self, inner: Backend, cooldown: CoolDown, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._inner = inner
        self._circuit = Circuit(cooldown, clock)
        self._in_flight = 0

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask, unless the backend is cooling down.

        Raises:
            BackendCoolingDownError: it was not asked.
            BackendError: whatever went wrong in the inner backend.
        """
        ticket = self._circuit.enter()
        self._in_flight += 1
        try:
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except BackendError as error:
            self._circuit.failed(ticket, error)
            raise
        except BaseException:
            self._circuit.unknown(ticket)
            raise
        else:
            self._circuit.answered(ticket)
        finally:
            self._in_flight -= 1

    def load(self) -> Load:
        """How many calls there are now."""
        return Load(in_flight=self._in_flight)

    def recovered(self) -> None:
        """End a cool-down: the server is known to be well again."""
        self._circuit.recovered()

    def cooling(self) -> bool:
        """Whether the backend is being left alone; asking this starts nothing."""
        return self._circuit.cooling

    async def aclose(self) -> None:
        """Release the inner backend's connections."""
        await self._inner.aclose()
