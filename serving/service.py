"""What a running service holds, in one frozen value that is handed to the application."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from cascade.engine import CascadeEngine
from cascade.errors import ConfigError
from cascade.protocols import AuditSink
from serving.readiness import ServerState
from serving.store.sink import AuditState

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The engine, where its results go, and the model servers it relies on."""

    engine: CascadeEngine
    sink: AuditLog
    servers: ModelServers
    max_body_bytes: int

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
            await self.servers.start()
            yield
