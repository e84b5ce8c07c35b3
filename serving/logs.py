"""JSON logs with the request's id on every line that is written while it is answered."""

import logging
import sys
import time
from contextvars import ContextVar

from pythonjsonlogger.orjson import OrjsonFormatter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.schemas import new_id

request_id: ContextVar[str] = ContextVar("request_id", default="")

FIELDS = "%(asctime)s %(levelname)s %(name)s %(message)s %(request_id)s"


class _RequestId(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get() or None
        record.__dict__.pop("color_message", None)  # uvicorn's, for terminals
        return True


def configure(level: str = "INFO") -> None:
    """Send all logs to standard error, one JSON object a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        OrjsonFormatter(FIELDS, rename_fields={"asctime": "time", "levelname": "level"})
    )
    handler.addFilter(_RequestId())
    logging.basicConfig(level=level, handlers=[handler], force=True)


class RequestLog:
    """ASGI middleware: gives a request its id, and writes one line when it is done."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._log = logging.getLogger("cascade.access")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["request_id"] = identity = new_id()
        request_id.set(identity)
        began, status = time.perf_counter(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            status = status or 500  # what the handler outside of this will answer
            raise
        finally:
            line = {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round((time.perf_counter() - began) * 1e3, 3),
            }
            self._log.info("answered" if status else "left", extra=line)
