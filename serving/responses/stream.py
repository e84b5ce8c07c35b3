"""Sends an answer as the Responses API's events.

Text, refusals and reasoning go out as they come. A tool call goes out when it is complete and its
arguments are JSON, in one piece; heartbeats go on meanwhile.
"""

import itertools
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from cascade.result import CascadeResult, Delta, Event
from cascade.types import Failure, Json
from serving import present
from serving.messages.response import reasoning, thoughts
from serving.responses import response
from serving.responses.items import (
    REASONING,
    REFUSAL,
    TEXT,
    Kind,
    function_calls,
    identity,
    item,
    part,
)
from serving.responses.sealed import seal
from serving.schemas import Call
from serving.stream import HEARTBEAT_SECONDS, AnswerStream


@dataclass(slots=True, kw_only=True)
class _Growing:
    """The item that is being said."""

    kind: Kind
    name: str
    texts: list[str] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)
    thoughts: list[Json] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def part(self) -> dict[str, Any]:
        return part(self.kind, self.text, self.logprobs)

    def item(self, status: str) -> dict[str, Any]:
        sealed = seal(thoughts({"thinking_blocks": self.thoughts}))
        return item(self.kind, self.name, status, [self.part()], sealed)


class ResponseStream(AnswerStream):
    """A response as server-sent events."""

    heartbeat = b": waiting\n\n"

    def __init__(
        self,
        events: AsyncGenerator[Event],
        call: Call,
        headers: Mapping[str, str],
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(events, call, headers, heartbeat_seconds)
        self._numbers = itertools.count()
        self._created_at = time.time()
        self._model = call.request.model
        self._begun = False
        self._done: list[dict[str, Any]] = []
        self._open: _Growing | None = None
        self._waiting: list[Json] = []  # log probabilities of tokens that brought no text yet

    def delta(self, delta: Delta) -> bytes:
        """Text and reasoning; a piece of a tool call waits for the rest of it."""
        self._model = delta.model
        return b"".join(event for piece in delta.choices for event in self._said(piece))

    def end(self, result: CascadeResult) -> bytes:
        """The tool calls, and the whole response once more.

        Raises:
            BackendProtocolError: a tool call's arguments are not JSON.
        """
        answer = result.completion
        if answer is None:
            raise AssertionError("an answer without an error has a completion")
        choice = answer.choices[0]
        first = len(self._done) + (self._open is not None)
        calls = function_calls(self.call.request.id, choice, first)
        status = response.status_of(choice)
        self._model = answer.model
        events = [*self._begin(), *self._close(response.COMPLETED if calls else status)]
        for call in calls:
            events.extend(self._function_call(call))
        told = response.finished(result, answer, self._done, self._created_at) | self.told
        return b"".join([*events, self._event(f"response.{status}", response=told)])

    def error(self, fault: Failure) -> dict[str, Any]:
        """OpenAI's error object."""
        return present.error(fault)

    def error_event(self, fault: Failure) -> bytes:
        """The response as it failed, and the error, as some clients look for one or the other."""
        begun = list(self._begin())
        items = [*self._done, *([self._open.item(response.INCOMPLETE)] if self._open else [])]
        told = response.failed(self._response(), fault, items) | self.told
        failed = self._event("response.failed", response=told)
        body = present.error(fault)
        flat = {name: body["error"][name] for name in ("code", "message", "param")}
        return b"".join([*begun, failed, self._event("error", **flat, **body)])

    def _begin(self) -> Iterator[bytes]:
        if not self._begun:
            self._begun = True
            yield self._event("response.created", response=self._response())
            yield self._event("response.in_progress", response=self._response())

    def _response(self) -> dict[str, Any]:
        return response.unfinished(self.call.request, self._model, self._created_at)

    def _said(self, piece: Json) -> Iterator[bytes]:
        said = piece.get("delta") or {}
        self._waiting.extend(_entries(piece, said))
        thought = list(reasoning(said))
        if thought:
            text = "".join(text for kind, text in thought if kind == "thinking")
            blocks = said.get("thinking_blocks")
            yield from self._grow(REASONING, text, blocks if isinstance(blocks, list) else ())
        if said.get("content"):
            yield from self._grow(TEXT, said["content"])
        if said.get("refusal"):
            yield from self._grow(REFUSAL, said["refusal"])

    def _grow(self, kind: Kind, text: str, blocks: Sequence[Json] = ()) -> Iterator[bytes]:
        growing = self._open
        if growing is None or growing.kind != kind:
            yield from self._close(response.COMPLETED)
            yield from self._begin()
            name = identity(self.call.request.id, kind, len(self._done))
            growing = self._open = _Growing(kind=kind, name=name)
            yield self._added(item(kind, name, "in_progress", []))
            yield self._part_event("response.content_part.added", name, part=part(kind))
        growing.texts.append(text)
        growing.thoughts.extend(blocks)
        if not text:
            return
        entries: dict[str, Any] = {}
        if kind == TEXT:
            entries["logprobs"], self._waiting = self._waiting, []
            growing.logprobs.extend(entries["logprobs"])
        yield self._part_event(f"response.{kind}.delta", growing.name, delta=text, **entries)

    def _close(self, status: str) -> Iterator[bytes]:
        growing, self._open = self._open, None
        if growing is None:
            return
        told: dict[str, Any] = {"refusal" if growing.kind == REFUSAL else "text": growing.text}
        if growing.kind == TEXT:
            growing.logprobs.extend(self._waiting)
            self._waiting = []
            told["logprobs"] = growing.logprobs
        yield self._part_event(f"response.{growing.kind}.done", growing.name, **told)
        yield self._part_event("response.content_part.done", growing.name, part=growing.part())
        yield self._finished(growing.item(status))

    def _function_call(self, call: dict[str, Any]) -> Iterator[bytes]:
        at = {"item_id": call["id"], "output_index": len(self._done)}
        arguments, kind = call["arguments"], "response.function_call_arguments"
        yield self._added({**call, "status": "in_progress", "arguments": ""})
        yield self._event(f"{kind}.delta", **at, delta=arguments)
        yield self._event(f"{kind}.done", **at, name=call["name"], arguments=arguments)
        yield self._finished(call)

    def _added(self, given: Json) -> bytes:
        return self._event("response.output_item.added", output_index=len(self._done), item=given)

    def _finished(self, given: dict[str, Any]) -> bytes:
        event = self._event("response.output_item.done", output_index=len(self._done), item=given)
        self._done.append(given)
        return event

    def _part_event(self, kind: str, name: str, **fields: Any) -> bytes:
        at = {"item_id": name, "output_index": len(self._done), "content_index": 0}
        return self._event(kind, **at, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        data = {"type": kind, "sequence_number": next(self._numbers), **fields}
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(data))


def _entries(piece: Json, said: Json) -> Sequence[Json]:
    """The log probabilities of text; those of thoughts and tool calls have no place here."""
    if any(value for name, value in said.items() if name not in {"role", "content"}):
        return ()
    entries: Sequence[Json] = (piece.get("logprobs") or {}).get("content") or ()
    return entries
