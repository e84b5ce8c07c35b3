"""Holds back the tool calls of an answer until each is whole and can be made.

Half a call is of no use to a client, and a call that cannot be made must not reach it: as long as
nothing went out another tier can still answer. Text is not held. Whether the arguments fit the
tool's schema is for a judge to say.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cascade.answers import has_content, merge
from cascade.errors import BackendToolCallError
from cascade.types import Json


class ToolCallGate:
    """Lets through one streamed answer.

    Args:
        tools: the request's; a call must be of one of them, or of any if there are none.
    """

    def __init__(self, tools: Sequence[Json] | None) -> None:
        self._names = {name for tool in tools or () if (name := _name(tool))}
        self._held: dict[int, dict[int, dict[str, Any]]] = {}

    def through(self, choices: Sequence[Json]) -> Sequence[Sequence[Json]]:
        """The chunks that may go out now.

        Raises:
            BackendToolCallError: a call that is whole cannot be made.
        """
        for piece in choices:
            if self._held or _calls(piece):
                return [[part] for whole in choices for part in self._split(whole)]
        return (choices,)

    def close(self) -> Sequence[Sequence[Json]]:
        """What is still held, once the answer has ended.

        Raises:
            BackendToolCallError: a call cannot be made.
        """
        return [[piece] for index in list(self._held) for piece in self._release(index)]

    def _split(self, piece: Json) -> Iterator[Json]:
        """A piece without its tool calls, those that it completes, and its end."""
        index = piece.get("index", 0)
        delta = {k: v for k, v in (piece.get("delta") or {}).items() if k != "tool_calls"}
        rest = {**piece, "delta": delta, "finish_reason": None}
        said = has_content([rest])
        if said:
            yield rest
        yield from self._take(index, _calls(piece))
        if piece.get("finish_reason"):
            yield from self._release(index)
            end = {**piece, "delta": {}}
            yield {**end, "logprobs": None} if said and "logprobs" in end else end

    def _take(self, index: int, calls: Sequence[Json]) -> Iterator[Json]:
        """Add pieces of calls; one ends where the next begins."""
        for call in calls:
            number = call.get("index", 0)
            if number not in self._held.get(index, {}):
                yield from self._release(index)
            merge(self._held.setdefault(index, {}).setdefault(number, {"index": number}), call)

    def _release(self, index: int) -> Iterator[Json]:
        for call in self._held.pop(index, {}).values():
            self._check(call)
            yield {"index": index, "delta": {"tool_calls": [call]}}

    def _check(self, call: Json) -> None:
        name = _name(call)
        if not name or (self._names and name not in self._names):
            known = f"; the request has {', '.join(sorted(self._names))}" if self._names else ""
            raise BackendToolCallError(f"the model calls a tool {name!r}{known}")
        function = call.get("function")
        if not isinstance(function, Mapping):
            return  # a custom tool takes any text
        try:
            arguments = json.loads(function.get("arguments") or "{}")
        except (ValueError, TypeError, RecursionError) as error:
            raise BackendToolCallError(
                f"the model calls {name!r} with arguments that are not JSON: {error}"
            ) from None
        if not isinstance(arguments, dict):
            raise BackendToolCallError(
                f"the model calls {name!r} with arguments that are no JSON object"
            )


def _calls(piece: Json) -> Sequence[Json]:
    return (piece.get("delta") or {}).get("tool_calls") or ()


def _name(tool: Json) -> str | None:
    """The name in a tool's definition or in a call of it, whose shapes are alike."""
    inner = tool.get("function") or tool.get("custom") or tool
    name = inner.get("name") if isinstance(inner, Mapping) else None
    return name if isinstance(name, str) else None
