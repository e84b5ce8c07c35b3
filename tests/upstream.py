"""A model server on loopback that answers with the bytes it is told to."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web


@dataclass
class Upstream:
    """What it answers and what it was asked.

    `pieces` are sent in order; a number is a wait in seconds, None breaks the connection.
    With `drops_reused` a connection breaks when a second request comes over it.
    """

    pieces: Sequence[bytes | float | None] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    sent: list[dict[str, str]] = field(default_factory=list)
    drops_reused: bool = False
    left: asyncio.Event = field(default_factory=asyncio.Event)
    connections: set[tuple[str, int]] = field(default_factory=set)
    authorization: str | None = None
    url: str = ""

    async def handle(self, http: web.Request) -> web.StreamResponse:
        if self.drops_reused and http.transport.get_extra_info("peername") in self.connections:
            http.transport.abort()
        self.bodies.append(orjson.loads(await http.read()))
        self.paths.append(http.path)
        self.sent.append(dict(http.headers))
        self.authorization = http.headers.get("Authorization")
        self.connections.add(http.transport.get_extra_info("peername"))
        response = web.StreamResponse(status=self.status, headers=self.headers)
        await response.prepare(http)
        try:
            for piece in self.pieces:
                if piece is None:
                    http.transport.abort()
                    return response
                if isinstance(piece, bytes):
                    await response.write(piece)
                else:
                    await asyncio.sleep(piece)
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
            raise
        return response


@asynccontextmanager
async def serving(upstream: Upstream) -> AsyncIterator[Upstream]:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/{path:.*}", upstream.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    upstream.url = f"http://127.0.0.1:{port}/v1"
    try:
        yield upstream
    finally:
        await runner.cleanup()


def event(data: Any) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else orjson.dumps(data)) + b"\n\n"


def words(
    *texts: str, finish: str | None = "stop", usage: Any = None, **fields: Any
) -> list[bytes]:
    """The events of an answer in these pieces."""
    chunks = [
        {"model": "m-1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]}
    ]
    chunks.extend(
        {"model": "m-1", "choices": [{"index": 0, "delta": {"content": text, **fields}}]}
        for text in texts
    )
    if finish:
        chunks.append(
            {"model": "m-1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        )
    if usage is not None:
        chunks.append({"model": "m-1", "choices": [], "usage": usage})
    return [event(chunk) for chunk in chunks]


DONE = event(b"[DONE]")
