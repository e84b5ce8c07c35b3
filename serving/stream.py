"""Sends an answer as server-sent events, or as JSON, and stops the work when the client leaves.

A judged answer is held until it is accepted, which can take a while: after a few seconds the
headers go out with a heartbeat, and one every few seconds keeps proxies from closing the
connection. A failure before that still has its own status; afterwards it is an error event.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, TypeVar

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cascade.errors import CascadeError
from cascade.failures import failure
from cascade.result import AttemptFinished, CascadeResult, Delta, Event, Finished
from cascade.types import Attempt, Failure, Outcome, Usage
from serving import present
from serving.explain import explained
from serving.schemas import Call

HEARTBEAT_SECONDS = 5.0

T = TypeVar("T")


async def unless_gone(receive: Receive, work: Awaitable[T]) -> T | None:
    """The work's result; None when the client left first, in which case the work is cancelled."""
    working = asyncio.current_task()
    if working is None:
        raise AssertionError("who waits for a client is a task")
    others = working.cancelling()
    leaving = asyncio.create_task(_gone(receive, working))
    try:
        return await work
    except asyncio.CancelledError:
        if leaving.done() and working.uncancel() <= others:
            return None
        raise
    finally:
        leaving.cancel()


async def _gone(receive: Receive, working: asyncio.Task[Any]) -> None:
    """Cancel a task once the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
    working.cancel()


class AnswerStream(Response, ABC):
    """An answer as server-sent events; how the events look is up to the class for each API.

    Attributes:
        heartbeat: what is sent while there is nothing to say.
        call: what is answered.
        usage: of the answer, as far as it is known: before its first piece if it was held.
        told: what the last events say beside the answer or the error, if the client asked how it
            came about; known once everything is.
    """

    heartbeat: ClassVar[bytes]

    def __init__(
        self,
        events: AsyncGenerator[Event],
        call: Call,
        headers: Mapping[str, str],
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        # The status and the headers are sent when they are known, so Response's own are not made.
        self.background = None
        self.call = call
        self.usage = Usage()
        self.told: dict[str, Any] = {}
        self._events = events
        self._known = dict(headers)
        self._heartbeat_seconds = heartbeat_seconds
        self._started = False
        self._sent_at = 0.0
        self._lock = asyncio.Lock()

    @abstractmethod
    def delta(self, delta: Delta) -> bytes:
        """The events for a piece of the answer; none when it waits for what follows."""

    @abstractmethod
    def end(self, result: CascadeResult) -> bytes:
        """The events that close an answer.

        Raises:
            CascadeError: the answer cannot be closed well.
        """

    @abstractmethod
    def error(self, fault: Failure) -> dict[str, Any]:
        """The body that tells a client why there is no answer."""

    @abstractmethod
    def error_event(self, fault: Failure) -> bytes:
        """The same inside a stream that has begun."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, and stop when the client leaves."""
        del scope
        await unless_gone(receive, self._answer(send))

    async def _answer(self, send: Send) -> None:
        beat = asyncio.create_task(self._beat(send))
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    if isinstance(event, AttemptFinished):
                        self._learn(event.attempt)
                    elif isinstance(event, Delta):
                        self._known |= present.who(event.tier, event.model)
                        if body := self.delta(event):
                            await self._send(send, body)
                    elif isinstance(event, Finished):
                        async with self._lock:  # never while a heartbeat is on its way
                            beat.cancel()
                        await self._finish(send, event.result)
        except Exception as error:
            if self._started:  # too late for a status, so the client is told in the stream
                await self._send(send, self.error_event(present.bug(error)), more=False)
            raise
        finally:
            beat.cancel()

    def _learn(self, attempt: Attempt) -> None:
        if attempt.outcome is Outcome.ACCEPTED and attempt.completion is not None:
            self.usage = attempt.completion.usage

    async def _beat(self, send: Send) -> None:
        """A heartbeat whenever nothing was sent for a while."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            idle = clock() - max(began, self._sent_at)
            if idle >= self._heartbeat_seconds:
                await self._send(send, self.heartbeat)
            else:
                await asyncio.sleep(self._heartbeat_seconds - idle)

    async def _finish(self, send: Send, result: CascadeResult) -> None:
        late = present.late_headers(result)
        self.told = explained(result, asked=self.call.explain)
        fault, end = result.error, b""
        if fault is None:
            try:
                end = self.end(result)
            except CascadeError as error:
                fault = failure(error)
        if fault is not None and not self._started:
            await self._refuse(send, fault, late)
            return
        told = ", ".join(f"{name}={value}" for name, value in late.items())
        last = end if fault is None else self.error_event(fault)
        await self._send(send, f": {told}\n\n".encode() + last, more=False)

    async def _refuse(self, send: Send, fault: Failure, late: Mapping[str, str]) -> None:
        """Nothing was sent yet, so the failure has its own status."""
        self._started = True
        body = orjson.dumps(self.error(fault) | self.told)
        headers = self._known | dict(late) | {"content-length": str(len(body))}
        await send(_start(fault.status, "application/json", headers))
        await send({"type": "http.response.body", "body": body})

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        async with self._lock:
            if not self._started:
                self._started = True
                headers = self._known | {"cache-control": "no-cache", "x-accel-buffering": "no"}
                await send(_start(200, "text/event-stream; charset=utf-8", headers))
            await send({"type": "http.response.body", "body": body, "more_body": more})
            self._sent_at = asyncio.get_running_loop().time()


class ChatStream(AnswerStream):
    """A chat answer as OpenAI's chunks."""

    heartbeat = b": waiting\n\n"

    def __init__(
        self,
        events: AsyncGenerator[Event],
        call: Call,
        headers: Mapping[str, str],
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(events, call, headers, heartbeat_seconds)
        self._roles: set[int] = set()

    def delta(self, delta: Delta) -> bytes:
        """One chunk."""
        choices = []
        for choice in delta.choices:
            index = choice.get("index", 0)
            role = {} if index in self._roles else {"role": "assistant"}
            self._roles.add(index)
            choices.append({**choice, "index": index, "delta": role | (choice.get("delta") or {})})
        return _event(present.chunk(self.call.request, delta.model, choices))

    def end(self, result: CascadeResult) -> bytes:
        """Usage and explanation, in one chunk, as far as they were asked for; and [DONE]."""
        last = b""
        answer = result.completion
        if answer is not None and (self.call.include_usage or self.told):
            usage = {"usage": present.usage(answer.usage)} if self.call.include_usage else {}
            empty = present.chunk(result.request, answer.model, [])
            last = _event({**empty, **usage, **self.told})
        return last + b"data: [DONE]\n\n"

    def error(self, fault: Failure) -> dict[str, Any]:
        """OpenAI's error object."""
        return present.error(fault)

    def error_event(self, fault: Failure) -> bytes:
        """The same, as data."""
        return _event(present.error(fault) | self.told)


def _event(data: Any) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def _start(status: int, media_type: str, headers: Mapping[str, str]) -> dict[str, Any]:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", media_type.encode()), *raw],
    }
