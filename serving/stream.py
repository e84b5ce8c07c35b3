"""Sends an answer as server-sent events, or as JSON, and stops the work when the client leaves.

A judged answer is held until it is accepted, which can take a while: after a few seconds the
headers go out with a comment, and a comment every few seconds keeps proxies from closing the
connection. A failure before that still has its own status; afterwards it is an error event.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cascade.result import CascadeResult, Delta, Event, Finished
from cascade.types import Completion, Failure
from serving import present
from serving.schemas import Call

HEARTBEAT_SECONDS = 5.0

T = TypeVar("T")


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """The work's result; None when the client left first, in which case the work is cancelled."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for each in (task, leaving):
            if not each.done():
                each.cancel()
                with suppress(asyncio.CancelledError):
                    await each


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class ChatStream(Response):
    """A chat answer as server-sent events."""

    def __init__(
        self,
        events: AsyncGenerator[Event],
        call: Call,
        headers: Mapping[str, str],
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        # The status and the headers are sent when they are known, so Response's own are not made.
        self.background = None
        self._events = events
        self._call = call
        self._known = dict(headers)
        self._heartbeat_seconds = heartbeat_seconds
        self._started = False
        self._roles: set[int] = set()
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and stop when the client leaves."""
        del scope
        await unless_gone(receive, self._answer(send))

    async def _answer(self, send: Send) -> None:
        beat = asyncio.create_task(self._beat(send))
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    if isinstance(event, Delta | Finished):
                        async with self._lock:  # never while a comment is on its way
                            beat.cancel()
                    if isinstance(event, Delta):
                        await self._delta(send, event)
                    elif isinstance(event, Finished):
                        await self._finish(send, event.result)
        except Exception as error:
            if self._started:  # too late for a status, so the client is told in the stream
                await self._send(send, _event(present.error(present.bug(error))), more=False)
            raise
        finally:
            beat.cancel()

    async def _beat(self, send: Send) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            await self._send(send, b": waiting\n\n")

    async def _delta(self, send: Send, delta: Delta) -> None:
        choices = []
        for choice in delta.choices:
            index = choice.get("index", 0)
            role = {} if index in self._roles else {"role": "assistant"}
            self._roles.add(index)
            choices.append({**choice, "index": index, "delta": role | (choice.get("delta") or {})})
        self._known |= present.who(delta.tier, delta.model)
        request = self._call.request
        await self._send(send, _event(present.chunk(request, delta.model, choices)))

    async def _finish(self, send: Send, result: CascadeResult) -> None:
        late = present.late_headers(result)
        if result.error is not None and not self._started:
            await self._refuse(send, result.error, late)
            return
        told = ", ".join(f"{name}={value}" for name, value in late.items())
        tail = [f": {told}\n\n".encode()]
        if result.error is not None:
            tail.append(_event(present.error(result.error)))
        else:
            if self._call.include_usage and result.completion is not None:
                tail.append(_usage(result, result.completion))
            tail.append(b"data: [DONE]\n\n")
        await self._send(send, b"".join(tail), more=False)

    async def _refuse(self, send: Send, error: Failure, late: Mapping[str, str]) -> None:
        """Nothing was sent yet, so the failure has its own status."""
        self._started = True
        body = orjson.dumps(present.error(error))
        headers = self._known | dict(late) | {"content-length": str(len(body))}
        await send(_start(error.status, "application/json", headers))
        await send({"type": "http.response.body", "body": body})

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        async with self._lock:
            if not self._started:
                self._started = True
                headers = self._known | {"cache-control": "no-cache", "x-accel-buffering": "no"}
                await send(_start(200, "text/event-stream; charset=utf-8", headers))
            await send({"type": "http.response.body", "body": body, "more_body": more})


def _usage(result: CascadeResult, answer: Completion) -> bytes:
    last = present.chunk(result.request, answer.model, [])
    return _event({**last, "usage": present.usage(answer.usage)})


def _event(data: Any) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def _start(status: int, media_type: str, headers: Mapping[str, str]) -> dict[str, Any]:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", media_type.encode()), *raw],
    }
