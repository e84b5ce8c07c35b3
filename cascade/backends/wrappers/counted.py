"""Counts the calls that a model's server has now, where nothing else does."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from cascade.protocols import Backend
from cascade.sight import Load
from cascade.types import ChatRequest, Chunk


class CountedBackend(Backend):
    """Another backend, whose calls are counted.

    Args:
        inner: the backend that is asked.
    """

    def __init__(self, inner: Backend) -> None:
        self._inner = inner
        self._in_flight = 0

    def load(self) -> Load:
        """How many calls there are now."""
        return Load(in_flight=self._in_flight)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        """Ask.

        Raises:
            BackendError: whatever went wrong in the inner backend.
        """
        self._in_flight += 1
        try:
            async with aclosing(self._inner.stream(request)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            self._in_flight -= 1

    async def aclose(self) -> None:
        """Release the inner backend's connections."""
        await self._inner.aclose()
