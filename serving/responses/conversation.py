"""Translates the items of an input into messages.

An assistant's turn is several items in this API (what it thought, said and called) and one message
in a chat completion. Items of the same turn follow each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cascade.errors import RequestError
from cascade.types import Json
from serving.messages.tools import rest
from serving.responses.body import FunctionCallOutput, Message, ReasoningItem
from serving.responses.content import plain, said, shown, unknown
from serving.responses.sealed import unseal
from serving.responses.tools import tool_call
from serving.schemas import validated

_TAKEN = ("message", "function_call", "function_call_output", "reasoning")
_BOOKKEEPING = ("id", "status", "phase")
"""Fields by which this API keeps its items apart, and which say nothing to a model."""


@dataclass(slots=True)
class _Turn:
    """An assistant's turn while its items come in."""

    kept: dict[str, Any] = field(default_factory=dict)
    parts: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    signed: list[dict[str, Any]] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)

    def takes(self, kind: str) -> bool:
        """Whether an item belongs here; what is said after a call must, or it parts the results."""
        return kind == "function_call" or not self.parts or bool(self.calls)

    def add(self, kind: str, item: Json, at: str) -> None:
        if kind == "function_call":
            self.calls.append(tool_call(item, at))
        elif kind == "reasoning":
            self._think(item, at)
        else:
            self.kept |= rest(item, "role", "content", *_BOOKKEEPING)
            self.parts.extend(said(item["content"], f"{at}.content"))

    def messages(self) -> list[dict[str, Any]]:
        """None for thoughts alone: they led to nothing that was said."""
        if not self.parts and not self.calls:
            return []
        content = plain(self.parts) if self.parts else None
        message = {**self.kept, "role": "assistant", "content": content}
        if self.calls:
            message["tool_calls"] = self.calls
        if self.signed:
            message["thinking_blocks"] = self.signed
        if self.thoughts:
            message["reasoning_content"] = "\n\n".join(self.thoughts)
        return [message]

    def _think(self, item: Json, at: str) -> None:
        """What its provider signed goes back as it was; the rest is text, as open models give it.

        A summary is no thought, and what another service encrypted nobody here can read.
        """
        checked = validated(ReasoningItem, item, at)
        signed = unseal(checked.encrypted_content)
        self.signed.extend(signed)
        if not signed:
            texts = [part.get("text") for part in checked.content or ()]
            self.thoughts.extend(text for text in texts if isinstance(text, str) and text)


def messages(items: Sequence[Json]) -> list[dict[str, Any]]:
    """The messages that items stand for.

    Raises:
        RequestError: an item cannot be translated; names its path.
    """
    turns: list[_Turn | Mapping[str, Any]] = []
    for index, item in enumerate(items):
        at = f"input[{index}]"
        kind = _kind(item, at)
        if kind == "function_call_output":
            turns.append(_output(item, at))
        elif kind == "message" and item["role"] != "assistant":
            turns.append(_message(item, at))
        else:
            last = turns[-1] if turns else None
            if not isinstance(last, _Turn) or not last.takes(kind):
                last = _Turn()
                turns.append(last)
            last.add(kind, item, at)
    return [
        message
        for turn in turns
        for message in (turn.messages() if isinstance(turn, _Turn) else [dict(turn)])
    ]


def _kind(item: Json, at: str) -> str:
    """What an item is; a message may leave it out.

    Raises:
        RequestError: it is of no kind that is taken, or refers to something stored.
    """
    kind = item.get("type")
    if kind is None and "role" not in item and "id" in item:
        kind = "item_reference"
    if kind is None or kind == "message":
        validated(Message, item, at)
        return "message"
    field = f"{at}.type"
    if kind == "item_reference":
        raise RequestError(f"{field}: items are not stored here: send the item itself", param=field)
    if kind not in _TAKEN:
        raise unknown(kind, field, _TAKEN)
    return str(kind)


def _message(item: Json, at: str) -> dict[str, Any]:
    content = shown(item["content"], f"{at}.content")
    kept = rest(item, "role", "content", *_BOOKKEEPING)
    return {**kept, "role": item["role"], "content": content}


def _output(item: Json, at: str) -> dict[str, Any]:
    result = validated(FunctionCallOutput, item, at)
    return {
        **rest(item, "call_id", "output", *_BOOKKEEPING),
        "role": "tool",
        "tool_call_id": result.call_id,
        "content": shown(result.output, f"{at}.output") if result.output else "",
    }
