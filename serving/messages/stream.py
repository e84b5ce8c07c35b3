"""Sends an answer as the Messages API's events.

Text and thinking go out as they come. A tool call goes out when it is complete and its arguments
are JSON, in one piece; heartbeats go on meanwhile.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any

import orjson

from cascade.result import CascadeResult, Delta, Event
from cascade.types import Completion, Failure, Json
from serving.messages import response
from serving.schemas import Call
from serving.stream import HEARTBEAT_SECONDS, AnswerStream

_EMPTY: Mapping[str, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


def _event(kind: str, **fields: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps({"type": kind, **fields}))


class MessageStream(AnswerStream):
    """A message as server-sent events."""

    heartbeat = _event("ping")

    def __init__(
        self,
        events: AsyncGenerator[Event],
        call: Call,
        headers: Mapping[str, str],
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(events, call, headers, heartbeat_seconds)
        self._begun = False
        self._blocks = 0
        self._open: str | None = None

    def delta(self, delta: Delta) -> bytes:
        """Text and thinking; a piece of a tool call waits for the rest of it."""
        body = b"".join(
            event for piece in delta.choices for event in self._said(piece.get("delta") or {})
        )
        return self._begin(delta.model) + body if body else b""

    def end(self, result: CascadeResult) -> bytes:
        """The tool calls, why it ended, and its usage.

        Raises:
            BackendProtocolError: a tool call's arguments are not JSON.
        """
        answer = result.completion
        if answer is None:
            raise AssertionError("an answer without an error has a completion")
        calls = response.tool_uses(answer.choices[0])
        events = [self._begin(answer.model), *self._close()]
        for call in calls:
            events.extend(self._tool_use(call))
        return b"".join([*events, *self._last(answer)])

    def error(self, fault: Failure) -> dict[str, Any]:
        """Anthropic's error object."""
        return response.error(fault, self.call.request.id)

    def error_event(self, fault: Failure) -> bytes:
        """The same, as an event."""
        return b"event: error\ndata: " + orjson.dumps(self.error(fault) | self.told) + b"\n\n"

    def _begin(self, model: str) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return _event(
            "message_start", message=response.head(self.call.request.id, model, self.usage)
        )

    def _said(self, said: Json) -> Iterator[bytes]:
        for kind, text in response.reasoning(said):
            if kind == "redacted_thinking":
                yield from self._whole({"type": kind, "data": text})
            else:
                yield from self._grow("thinking", kind, text)
            if kind == "signature":
                yield from self._close()
        if said.get("content") or said.get("refusal"):
            yield from self._grow("text", "text", said.get("content") or said["refusal"])

    def _grow(self, block: str, kind: str, text: str) -> Iterator[bytes]:
        if self._open != block:
            yield from self._close()
            yield self._start(_EMPTY[block])
            self._open = block
        yield self._piece(f"{kind}_delta", kind, text)

    def _tool_use(self, call: Json) -> Iterator[bytes]:
        yield from self._close()
        yield self._start({**call, "input": {}})
        self._open = "tool_use"
        arguments = orjson.dumps(call["input"]).decode()
        yield self._piece("input_json_delta", "partial_json", arguments)
        yield from self._close()

    def _whole(self, block: Json) -> Iterator[bytes]:
        yield from self._close()
        yield self._start(block)
        self._open = block["type"]
        yield from self._close()

    def _start(self, block: Json) -> bytes:
        return _event("content_block_start", index=self._blocks, content_block=block)

    def _piece(self, kind: str, field: str, text: str) -> bytes:
        delta = {"type": kind, field: text}
        return _event("content_block_delta", index=self._blocks, delta=delta)

    def _close(self) -> Iterator[bytes]:
        if self._open is not None:
            self._open = None
            self._blocks += 1
            yield _event("content_block_stop", index=self._blocks - 1)

    def _last(self, answer: Completion) -> Iterator[bytes]:
        why = {"stop_reason": response.stop_reason(answer.choices[0]), "stop_sequence": None}
        usage = response.usage(answer.usage)
        yield _event("message_delta", delta=why, usage=usage, **self.told)
        yield _event("message_stop")
