"""A webhook that remembers what came."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass
class Hook:
    url: str = ""
    came: list[dict[str, Any]] = field(default_factory=list)


@asynccontextmanager
async def listening(statuses: Iterable[int] = ()) -> AsyncIterator[Hook]:
    """Answers with these statuses, one after the other, then always with 204."""
    hook, left = Hook(), list(statuses)

    async def take(request: web.Request) -> web.Response:
        hook.came.append(await request.json())
        return web.Response(status=left.pop(0) if left else 204)

    app = web.Application()
    app.router.add_post("/{any}", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    hook.url = f"http://127.0.0.1:{runner.addresses[0][1]}/secret-token"
    try:
        yield hook
    finally:
        await runner.cleanup()
