"""Takes out of a request what only its provider understands, where the tier is another's.

A conversation moves between tiers, and clients mark it for the provider they were written for: a
cache breakpoint or a foreign thinking signature is a 400 elsewhere. None of it is the client's
words, so a model that does not know it loses nothing. Everything else goes on as it came.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from cascade.types import ChatRequest, Json

CACHE_CONTROL: Final = "cache_control"
PROMPT_CACHE: Final = "prompt_cache"
THINKING: Final = "thinking"

_PROMPT_CACHE_FIELDS: Final = frozenset(
    {"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"}
)
_SIGNATURES: Final = frozenset({"extra_content", "provider_specific_fields"})
"""Where Gemini's thought signatures are: Google's name for the place, and litellm's."""

_THOUGHT_FIELDS: Final = _SIGNATURES | {
    "encrypted_content",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "thinking_blocks",
}
_THOUGHT_PARTS: Final = frozenset({"reasoning", "redacted_thinking", "thinking"})
_IN_ID: Final = "__thought__"
"""After it in a tool call's id litellm keeps the signature, for clients that lose other fields."""

_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Foreign:
    """What a tier does not know, by where it is found."""

    params: frozenset[str]
    marks: frozenset[str]
    thoughts: frozenset[str]
    parts: frozenset[str]

    def message(self, message: Json) -> Json:
        said = message.get("role") == "assistant"
        kept = _without(message, self.marks | self.thoughts if said else self.marks)
        if self.thoughts and "tool_call_id" in kept:
            kept = _unsigned(kept, "tool_call_id")
        if said and kept.get("tool_calls"):
            kept = self._calling(kept)
        content = self._content(message.get("content"), self.parts if said else _NOTHING)
        if content is message.get("content"):
            return kept
        # An empty list is refused; an empty text is not, nor is none beside tool calls.
        return {**kept, "content": content or (None if message.get("tool_calls") else "")}

    def tool(self, tool: Json) -> Json:
        return _with_function(tool, self.marks)

    def _calling(self, message: Json) -> Json:
        calls = message["tool_calls"]
        if not isinstance(calls, list | tuple):
            return message
        kept = _unless_same(calls, map(self._call, calls))
        return message if kept is calls else {**message, "tool_calls": kept}

    def _call(self, call: Any) -> Any:
        if not isinstance(call, Mapping):
            return call
        if not self.thoughts:
            return _with_function(call, self.marks)
        return _unsigned(_with_function(call, self.marks | _SIGNATURES), "id")

    def _content(self, content: Any, parts: frozenset[str]) -> Any:
        if not isinstance(content, list | tuple):
            return content
        kept = [part for part in content if not _is_one_of(part, parts)]
        return _unless_same(content, map(self._part, kept))

    def _part(self, part: Any) -> Any:
        if not isinstance(part, Mapping):
            return part
        kept = _without(part, self.marks)
        content = self._content(part.get("content"), _NOTHING)
        return kept if content is part.get("content") else {**kept, "content": content}


def stripped(request: ChatRequest, accepts: frozenset[str]) -> ChatRequest:
    """The request without what the tier does not accept; the same object when there is none of it.

    Args:
        request: as the client sent it; it is not changed.
        accepts: of "cache_control" (on messages, their parts, tools, tool calls and the request),
            "prompt_cache" (prompt_cache_key, _options and _retention) and "thinking" (what an
            assistant thought earlier: parts with their signatures, reasoning fields, signatures of
            tool calls).
    """
    foreign = _foreign(accepts)
    params = _without(request.params, foreign.params)
    messages = _each(request.messages, foreign.message)
    tools = request.tools and _each(request.tools, foreign.tool)
    if params is request.params and messages is request.messages and tools is request.tools:
        return request
    return replace(request, params=params, messages=messages, tools=tools)


@lru_cache
def _foreign(accepts: frozenset[str]) -> _Foreign:
    marks = _NOTHING if CACHE_CONTROL in accepts else frozenset({CACHE_CONTROL})
    thinks = THINKING in accepts
    return _Foreign(
        params=marks | (_NOTHING if PROMPT_CACHE in accepts else _PROMPT_CACHE_FIELDS),
        marks=marks,
        thoughts=_NOTHING if thinks else _THOUGHT_FIELDS,
        parts=_NOTHING if thinks else _THOUGHT_PARTS,
    )


def _without(value: Json, names: frozenset[str]) -> Json:
    if names.isdisjoint(value):
        return value
    return {name: item for name, item in value.items() if name not in names}


def _with_function(value: Json, names: frozenset[str]) -> Json:
    """A tool or a call without those names, neither on itself nor on its function."""
    kept, function = _without(value, names), value.get("function")
    if not isinstance(function, Mapping):
        return kept
    inner = _without(function, names)
    return kept if inner is function else {**kept, "function": inner}


def _unsigned(value: Json, name: str) -> Json:
    """The same with an id that carries no signature; a call and its result lose it alike."""
    given = value.get(name)
    if not isinstance(given, str) or _IN_ID not in given:
        return value
    return {**value, name: given.partition(_IN_ID)[0]}


def _each(items: Sequence[Json], change: Callable[[Json], Json]) -> Sequence[Json]:
    return _unless_same(items, map(change, items))


def _unless_same(items: Sequence[Any], changed: Iterable[Any]) -> Sequence[Any]:
    new = list(changed)
    if len(new) == len(items) and all(a is b for a, b in zip(new, items, strict=True)):
        return items
    return new


def _is_one_of(part: Any, kinds: frozenset[str]) -> bool:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and kind in kinds
