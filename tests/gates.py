"""A scripted model that stops half-way until a test lets it go on."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

from cascade.backends.scripted import ScriptedBackend
from cascade.snapshot import Snapshot
from cascade.types import ChatRequest, Chunk


class GatedBackend(ScriptedBackend):
    """Says its first word, then waits for `opened`."""

    def __init__(self, **options) -> None:
        super().__init__(**options)
        self.opened = asyncio.Event()
        self.stopped = asyncio.Event()
        self.cancelled = False

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk]:
        try:
            async for chunk in super().stream(request):
                yield chunk
                self.stopped.set()
                await self.opened.wait()
        except BaseException:
            self.cancelled = True
            raise


def gated(shot: Snapshot, *answers: str) -> tuple[Snapshot, GatedBackend]:
    """The snapshot with a small tier that stops after its first word."""
    backend = GatedBackend(answers=answers or ("one two three",), model="small-model")
    small = replace(shot.tiers["small"], backend=backend)
    return replace(shot, tiers={**shot.tiers, "small": small}), backend
