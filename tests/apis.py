"""The APIs that Cascade speaks, for tests that hold for all of them, and a way to ask without a
socket.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import orjson

from cascade.engine import CascadeEngine
from serving.app import create_app
from serving.service import Service
from tests.services import MemoryLog, NoServers


@dataclass(frozen=True)
class Api:
    """One of them: where it is and what the least request looks like."""

    path: str
    least: dict[str, Any]
    turns: str = "messages"
    error_is_openais: bool = True

    def body(self, **change: Any) -> dict[str, Any]:
        return {"model": "cascade", **self.least, **change}

    def asking(self, text: str, turns: int = 1) -> dict[str, Any]:
        return {self.turns: [{"role": "user", "content": text} for _ in range(turns)]}


SAID = [{"role": "user", "content": "what is 2+2?"}]
CHAT = Api("/v1/chat/completions", {"messages": SAID})
MESSAGES = Api("/v1/messages", {"messages": SAID, "max_tokens": 50}, error_is_openais=False)
RESPONSES = Api("/v1/responses", {"input": SAID}, turns="input")
APIS = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}


@dataclass
class Answer:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def field(self) -> str | None:
        """The field at fault; Anthropic's errors have it only in their text."""
        error = self.json["error"]
        return error["param"] if "param" in error else error["message"].partition(": ")[0]


def baseline(result):
    """The baseline header that a result stands for."""
    return "unknown" if result.baseline is None else f"{result.baseline.total:f}"


def app_of(snapshot, max_body_bytes=32 << 20):
    """The application over scripted tiers, and its log."""
    log = MemoryLog()
    engine = CascadeEngine(snapshot, log)
    service = Service(engine=engine, sink=log, servers=NoServers(), max_body_bytes=max_body_bytes)
    return create_app(service), log


async def ask(
    app, path, body, headers=(), *, method="POST", json_type=b"application/json"
) -> Answer:
    """One request, straight into the application; an exception in it is raised here."""
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    answer, brought = Answer(), False
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"content-type", json_type), *headers],
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }

    async def receive():
        nonlocal brought
        if brought:
            await asyncio.Event().wait()
        brought = True
        return {"type": "http.request", "body": raw, "more_body": False}

    async def send(message):
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            answer.body += message.get("body", b"")

    await app(scope, receive, send)
    return answer
