"""The items that an output is made of."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from cascade.types import Choice, Json
from serving.messages.response import tool_uses

Kind = Literal["output_text", "refusal", "reasoning_text"]
"""What an item says; an item has one part."""

TEXT: Final = "output_text"
REFUSAL: Final = "refusal"
REASONING: Final = "reasoning_text"

_PREFIXES = {TEXT: "msg", REFUSAL: "msg", REASONING: "rs"}


def identity(request_id: str, kind: Kind, index: int) -> str:
    """The id of the item at that place in the output."""
    return f"{_PREFIXES[kind]}_{request_id}_{index}"


def part(kind: Kind, text: str = "", logprobs: Sequence[Json] = ()) -> dict[str, Any]:
    """A part of an item."""
    if kind == REFUSAL:
        return {"type": kind, "refusal": text}
    if kind == REASONING:
        return {"type": kind, "text": text}
    return {"type": kind, "text": text, "annotations": [], "logprobs": list(logprobs)}


def item(
    kind: Kind,
    name: str,
    status: str,
    content: Sequence[Json],
    sealed: str | None = None,
) -> dict[str, Any]:
    """A message, or reasoning."""
    told = {"id": name, "status": status, "content": list(content)}
    if kind == REASONING:
        return {**told, "type": "reasoning", "summary": [], "encrypted_content": sealed}
    return {**told, "type": "message", "role": "assistant"}


def function_calls(request_id: str, choice: Choice, first: int) -> list[dict[str, Any]]:
    """The tool calls of an answer, of which the first has that place in the output.

    Raises:
        BackendProtocolError: a call's arguments are no JSON object; no judge has looked.
    """
    calls = zip(choice.tool_calls, tool_uses(choice), strict=True)
    return [
        {
            "id": f"fc_{request_id}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": use["id"],
            "name": use["name"],
            "arguments": (call.get("function") or {}).get("arguments") or "{}",
        }
        for index, (call, use) in enumerate(calls, first)
    ]
