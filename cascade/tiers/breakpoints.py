"""Places Anthropic's cache marks: without a mark its models keep nothing of a prompt.

A mark (`cache_control`) says that the prompt up to there is to be kept. The rules of the API: a
prompt is read in the order tools, system, messages; it has at most four marks; one that is kept for
an hour must not come after one that is kept for five minutes; a prefix below the model's minimum is
not kept, and a mark there costs nothing. Empty text and thoughts cannot be marked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Final, Literal

from cascade.tiers.stable import BYTES_PER_TOKEN, is_system, leading, size
from cascade.types import ChatRequest, Json

Ttl = Literal["5m", "1h"]

MOST_MARKS: Final = 4
_MARK: Final = "cache_control"
_MARKED_PARTS: Final = frozenset({"text", "image_url", "document", "file"})
_RESULTS: Final = frozenset({"tool", "function"})
_SERVER_TOOL: Final = "srvtoolu_"
"""Begins the id of a call that the provider itself carried out; it is sent back as it came."""

_Place = tuple[int, int]
"""Where a mark is, in the order in which a prompt is read: section (see below), index in it."""

_TOOLS, _SYSTEM, _MESSAGES, _WHOLE = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoints:
    """How one model's prompts are marked.

    Attributes:
        minimum_tokens: a shorter prefix is not marked, since the model would not keep it.
        ttl: how long what is marked is kept after its last use. There is one for all marks, since
            a price card quotes all that is written at one rate.
        bytes_per_token: what lengths are estimated with. Where it is too low for a text, a prefix
            just below the minimum is marked, which costs nothing.
    """

    minimum_tokens: int = 0
    ttl: Ttl = "5m"
    bytes_per_token: float = BYTES_PER_TOKEN


def marked(request: ChatRequest, rule: Breakpoints) -> ChatRequest:
    """The request with marks; the same object when there is no place or no room for any.

    Marks go, as far as there is room, to the end of the system prompt, the last message, the end
    of the history, the last tool, and where the request before this one ended: the provider looks
    back twenty blocks from a mark, and a turn can be longer. What is not marked now is paid for in
    full now, and written a turn later, so the new ask is marked as well. The history ends before
    it; with tool results there is no new ask. What the client marked stays and counts, and its
    lifetimes are what ours are fitted to.

    Args:
        request: as it goes to the model; it is not changed.
        rule: see Breakpoints.
    """
    theirs = list(_theirs(request))
    places = _chosen(request, rule, theirs)
    if not places:
        return request
    messages, tools = list(request.messages), list(request.tools or ())
    for place in places:
        index, mark = place[1], _mark(_ttl(place, rule, theirs))
        if place[0] == _TOOLS:
            tools[index] = {**tools[index], _MARK: mark}
        else:
            messages[index] = _message(messages[index], mark) or messages[index]
    return replace(request, messages=messages, tools=tools or request.tools)


def up_to_last_mark(request: ChatRequest) -> ChatRequest | None:
    """The request up to the message or tool of the client's last mark; None without a mark.

    What is behind it is neither written to the provider's cache nor read from there.
    """
    marks = [place for place, _ in _theirs(request)]
    if not marks:
        return None
    section, index = max(marks)
    if section == _WHOLE:
        return request
    if section == _TOOLS:
        return replace(request, messages=[], tools=(request.tools or ())[: index + 1])
    return replace(request, messages=request.messages[: index + 1])


def _chosen(
    request: ChatRequest, rule: Breakpoints, theirs: Sequence[tuple[_Place, str]]
) -> list[_Place]:
    """As many places as there is room for, none of them the client's."""
    messages, tools = request.messages, request.tools or ()
    taken = {place for place, _ in theirs}
    if any(section == _WHOLE for section, _ in taken):
        # The provider puts that mark on what comes last, which can have one only.
        taken.add((_MESSAGES, len(messages) - 1))
    lengths = _lengths(tools, messages)
    least = rule.minimum_tokens * rule.bytes_per_token
    wanted = dict.fromkeys(_wanted(tools, messages))
    free = [place for place in wanted if place not in taken and lengths[place] >= least]
    return free[: max(0, MOST_MARKS - len(theirs))]


def _wanted(tools: Sequence[Json], messages: Sequence[Json]) -> Iterator[_Place]:
    """Where marks are wanted and possible, the most useful first."""
    begin = leading(messages)
    yield from _last(_SYSTEM, messages[:begin])
    yield from _last(_MESSAGES, messages)
    yield from _last(_MESSAGES, messages[: _history(messages)])
    for index in [i for i, tool in enumerate(tools) if _takes(tool)][-1:]:
        yield _TOOLS, index
    answers = (i for i in reversed(range(len(messages))) if messages[i].get("role") == "assistant")
    yield from _last(_MESSAGES, messages[: next(answers, 0)])


def _history(messages: Sequence[Json]) -> int:
    """How many messages there are before the new ask; all of them when there is none."""
    asks = bool(messages) and messages[-1].get("role") not in _RESULTS
    return len(messages) - asks


def _last(section: int, messages: Sequence[Json]) -> Iterator[_Place]:
    """The last message of a section that can be marked, if there is one."""
    for index in reversed(range(len(messages))):
        message = messages[index]
        if _section(message) == section and _message(message, _mark("5m")) is not None:
            yield section, index
            return


def _lengths(tools: Sequence[Json], messages: Sequence[Json]) -> dict[_Place, int]:
    """Bytes of the prompt up to and with each place."""
    tooled = list(accumulate(map(size, tools)))
    asked = accumulate(map(size, messages), initial=tooled[-1] if tooled else 0)
    lengths = {(_TOOLS, i): length for i, length in enumerate(tooled)}
    for index, length in enumerate([*asked][1:]):
        lengths[_section(messages[index]), index] = length
    return lengths


def _section(message: Json) -> int:
    return _SYSTEM if is_system(message) else _MESSAGES


def _ttl(place: _Place, rule: Breakpoints, theirs: Iterable[tuple[_Place, str]]) -> Ttl:
    """How long a mark of ours keeps, so that none of an hour comes after one of five minutes."""
    if any(ttl == "1h" for where, ttl in theirs if where > place):
        return "1h"
    if any(ttl != "1h" for where, ttl in theirs if where < place):
        return "5m"
    return rule.ttl


def _mark(ttl: Ttl) -> Json:
    return {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}


def _theirs(request: ChatRequest) -> Iterator[tuple[_Place, str]]:
    """The client's marks: where each is and how long it keeps."""
    for index, tool in enumerate(request.tools or ()):
        for ttl in _ttls([tool]) or _ttls([tool.get("function")]):
            yield (_TOOLS, index), ttl
    for index, message in enumerate(request.messages):
        for ttl in _ttls(_marked_things(message)):
            yield (_section(message), index), ttl
    for ttl in _ttls([request.params]):
        yield (_WHOLE, 0), ttl


def _ttls(things: Iterable[Any]) -> list[str]:
    marks = [thing.get(_MARK) for thing in things if isinstance(thing, Mapping)]
    return [mark.get("ttl") or "5m" for mark in marks if isinstance(mark, Mapping)]


def _marked_things(message: Any) -> Iterator[Any]:
    """Everything in a message that can carry a mark, itself included."""
    if not isinstance(message, Mapping):
        return
    yield message
    for name in ("content", "tool_calls"):
        inner = message.get(name)
        for part in inner if isinstance(inner, list | tuple) else ():
            yield from _marked_things(part)


def _takes(tool: Json) -> bool:
    """Whether a tool can be marked: not one that is only searched for, or loaded later."""
    function = tool.get("function")
    inner = function.get("defer_loading") if isinstance(function, Mapping) else None
    searched = str(tool.get("type")).startswith("tool_search_tool")
    return not (searched or tool.get("defer_loading") or inner)


def _message(message: Json, mark: Json) -> Json | None:
    """The message with a mark at its end; None when it cannot have one."""
    if message.get("role") in _RESULTS:
        return {**message, _MARK: mark}
    if calls := message.get("tool_calls"):
        return _calling(message, calls, mark)
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": [_text(content, mark)]} if content.strip() else None
    if not isinstance(content, list | tuple):
        return None
    index = next((i for i in reversed(range(len(content))) if _can(content[i])), None)
    if index is None:
        return None
    part = {**content[index], _MARK: mark}
    return {**message, "content": [*content[:index], part, *content[index + 1 :]]}


def _calling(message: Json, calls: Any, mark: Json) -> Json | None:
    last = calls[-1] if isinstance(calls, list | tuple) else None
    if not isinstance(last, Mapping) or str(last.get("id")).startswith(_SERVER_TOOL):
        return None
    return {**message, "tool_calls": [*calls[:-1], {**last, _MARK: mark}]}


def _text(text: str, mark: Json) -> Json:
    return {"type": "text", "text": text, _MARK: mark}


def _can(part: Any) -> bool:
    if not isinstance(part, Mapping) or str(part.get("type")) not in _MARKED_PARTS:
        return False
    return part["type"] != "text" or bool(str(part.get("text") or "").strip())
