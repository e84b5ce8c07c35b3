"""What a running service holds, in one frozen value that is handed to the application."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cascade.engine import CascadeEngine
from cascade.errors import ConfigError
from cascade.protocols import AuditSink
from serving.readiness import ServerState
from serving.recordings import Recordings
from serving.store.feedback import Feedback
from serving.store.sink import AuditState

if TYPE_CHECKING:  # its library takes a moment to load, and need not be asked for
    from serving.dashboard.page import Sources
    from serving.metrics.metrics import Metrics
    from serving.overrides.watcher import Watcher
    from serving.shadow.shadows import Shadows

DRAIN_SECONDS = 10.0


class AuditLog(AuditSink, Protocol):
    """An audit sink with a life of its own."""

    def start(self) -> None:
        """Begin to take results."""
        ...

    def close(self, timeout: float) -> None:
        """Bring everything to safety within so many seconds."""
        ...

    def state(self) -> AuditState:
        """How it is doing."""
        ...

    async def keep(self, feedback: Feedback) -> bool:
        """Bring feedback to safety; whether it is stored already."""
        ...

    async def owner(self, request_id: str) -> str | None:
        """The tenant of a request; None when there is no such request."""
        ...

    def answered_lately(self, tenant: str, key: str) -> str | None:
        """The id of the request that answered an idempotency key, as far as memory goes."""
        ...

    async def answered(self, tenant: str, key: str) -> str | None:
        """The same, as far as the log goes back."""
        ...


class ModelServers(Protocol):
    """The model servers that Cascade started itself, if any."""

    async def start(self) -> None:
        """Start them and wait until they can answer."""
        ...

    async def stop(self) -> None:
        """Stop them."""
        ...

    def states(self) -> Sequence[ServerState]:
        """How each is doing."""
        ...


class Background(Protocol):
    """Something that goes on beside the requests for as long as the service runs."""

    async def start(self) -> None:
        """Begin; must not wait for what may not be there, such as a database."""
        ...

    async def aclose(self) -> None:
        """End, and bring to safety what must not be lost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The engine, where its results go, the model servers it relies on, and what was recorded.

    Attributes:
        metrics: what Prometheus is told; None when it is to be told nothing.
        shadows: what answers a share of the requests once more; among `background` as well.
        overrides: what an operator changes while it runs; among `background` as well.
        page: what the page at /dashboard is made from; None for no page.
        background: what goes on beside the requests, in the order in which it is started.
    """

    engine: CascadeEngine
    sink: AuditLog
    servers: ModelServers
    max_body_bytes: int
    recordings: Recordings = field(default_factory=Recordings)
    metrics: "Metrics | None" = None
    background: Sequence[Background] = ()
    shadows: "Shadows | None" = None
    overrides: "Watcher | None" = None
    page: "Sources | None" = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start everything; at the end stop it in the opposite order, the audit log last."""
        async with AsyncExitStack() as stack:
            try:
                self.sink.start()
            except OSError as error:
                raise ConfigError(
                    f"the folder for audit rows cannot be used: {error}", param="audit.spill"
                ) from None
            stack.push_async_callback(asyncio.to_thread, self.sink.close, DRAIN_SECONDS)
            stack.push_async_callback(self.servers.stop)
            for tier in self.engine.snapshot.tiers.values():
                stack.push_async_callback(tier.backend.aclose)
            stack.push_async_callback(self.engine.forecast.aclose)
            stack.push_async_callback(self.recordings.drain, DRAIN_SECONDS)
            await self.servers.start()
            for each in self.background:
                stack.push_async_callback(each.aclose)
                await each.start()
            yield
