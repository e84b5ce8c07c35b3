"""What a response repeats of its request: OpenAI's shape has most of the request in the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from cascade.types import ChatRequest, Json

_PLAIN_TEXT: Mapping[str, Any] = {"format": {"type": "text"}}

_DEFAULTS: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "temperature": None,
    "text": _PLAIN_TEXT,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "user": None,
}
"""The fields, and what they are when the client did not say: null where the model decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRequest(ChatRequest):
    """A chat request with the fields of the body it was translated from that its answer repeats."""

    asked: Json = field(default_factory=dict)


def remembering(request: ChatRequest, data: Json) -> AskedRequest:
    """The request with what its answer repeats of the body."""
    asked = {name: data[name] for name in _DEFAULTS if data.get(name) is not None}
    return AskedRequest(
        **{each.name: getattr(request, each.name) for each in fields(request)}, asked=asked
    )


def repeated(request: ChatRequest) -> dict[str, Any]:
    """The fields of a response that say what it was asked."""
    asked = request.asked if isinstance(request, AskedRequest) else {}
    return {**_DEFAULTS, **asked, "text": {**_PLAIN_TEXT, **asked.get("text", {})}}
