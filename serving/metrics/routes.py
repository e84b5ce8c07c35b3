"""Where Prometheus asks, and what counts the requests that are under way.

There is no key to /metrics, as there is none to /readyz: neither tells what a client wrote or who
it was. Who must not see dollars and load must not reach the port.
"""

import asyncio
from collections.abc import Collection

from fastapi import APIRouter, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from serving.metrics.metrics import Metrics
from serving.service import Service

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def route(service: Service, metrics: Metrics) -> APIRouter:
    """GET /metrics of a service."""
    router = APIRouter()

    @router.get("/metrics")
    async def told() -> Response:
        """How the service is doing, for Prometheus."""
        audit = await asyncio.to_thread(service.sink.state)  # it looks into a folder
        return Response(metrics.told(service.servers.states(), audit), media_type=CONTENT_TYPE)

    return router


class InFlight:
    """ASGI middleware: counts the requests for answers that are not over.

    Args:
        app: what answers them.
        metrics: where they are counted.
        paths: where answers are asked for.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: Collection[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        self._metrics.began()
        try:
            await self._app(scope, receive, send)
        finally:
            self._metrics.ended()
