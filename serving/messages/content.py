"""Translates one turn of a Messages conversation, block by block.

One turn may become several messages: OpenAI's shape has each tool result in a message of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cascade.errors import RequestError
from cascade.types import Json
from serving.messages.body import (
    Base64Source,
    Block,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    UrlSource,
)
from serving.messages.tools import rest, tool_call
from serving.schemas import validated

_TEXT = ("text",)
_SHOWN = ("text", "image")
_USER = (*_SHOWN, "tool_result")
_ASSISTANT = ("text", "tool_use", "thinking", "redacted_thinking")

_FAILED = "The tool failed."
"""Says for OpenAI's shape, which has no field for it, what is_error says."""


def turn(message: Json, at: str, *, field: str = "content") -> list[dict[str, Any]]:
    """The messages that a turn stands for.

    Args:
        message: the turn, with a valid role and content.
        at: where it is in the body.
        field: what the body calls its content there.

    Raises:
        RequestError: a block cannot be translated; names its path.
    """
    role, content = message["role"], message["content"]
    kept = rest(message, "role", "content")
    if isinstance(content, str):
        return [{**kept, "role": role, "content": content}]
    where = f"{at}.{field}" if at else field
    if role == "assistant":
        return [{**kept, "role": role, **_assistant(content, where)}]
    if not content:
        raise RequestError(f"{where}: is empty", param=where)
    if role == "system":
        return [{**kept, "role": role, "content": _parts(content, where, _TEXT)}]
    return _user(content, where, kept)


def _user(content: Sequence[Json], where: str, kept: Json) -> list[dict[str, Any]]:
    """Tool results first, in their order, each a message; then what the user said."""
    results, parts = [], []
    for block, at in _each(content, where, _USER):
        if block["type"] == "tool_result":
            results.append(_result(block, at))
        else:
            parts.append(_part(block, at))
    said = [{**kept, "role": "user", "content": _plain(parts)}] if parts else []
    return [*results, *said]


def _assistant(content: Sequence[Json], where: str) -> dict[str, Any]:
    parts, calls, thoughts = [], [], []
    for block, at in _each(content, where, _ASSISTANT):
        if block["type"] == "text":
            parts.append(_part(block, at))
        elif block["type"] == "tool_use":
            calls.append(tool_call(block, at))
        else:
            kind = Thinking if block["type"] == "thinking" else RedactedThinking
            validated(kind, block, at)
            thoughts.append(block)
    nothing = None if calls else ""
    said: dict[str, Any] = {"content": _plain(parts) if parts else nothing}
    return said | ({"tool_calls": calls} if calls else {}) | _reasoning(thoughts)


def _reasoning(thoughts: Sequence[Json]) -> dict[str, Any]:
    """What its provider signed goes back as it was; the rest is text, as open models give it."""
    signed = [t for t in thoughts if t.get("signature") or t["type"] == "redacted_thinking"]
    text = [t["thinking"] for t in thoughts if t not in signed]
    fields: dict[str, Any] = {"thinking_blocks": signed} if signed else {}
    return fields | ({"reasoning_content": "\n\n".join(text)} if text else {})


def _result(block: Json, at: str) -> dict[str, Any]:
    validated(ToolResult, block, at)
    content = block.get("content")
    if isinstance(content, list):
        content = _parts(content, f"{at}.content", _SHOWN)
    if block.get("is_error"):
        content = _failed(content)
    return {
        **rest(block, "tool_use_id", "content", "is_error"),
        "role": "tool",
        "tool_call_id": block["tool_use_id"],
        "content": content or "",
    }


def _failed(content: Any) -> Any:
    if isinstance(content, list):
        return [{"type": "text", "text": _FAILED}, *content]
    return f"{_FAILED}\n{content}" if content else _FAILED


def _parts(content: Sequence[Json], where: str, kinds: Sequence[str]) -> Any:
    return _plain([_part(block, at) for block, at in _each(content, where, kinds)])


def _plain(parts: Sequence[Json]) -> Any:
    """A single text is a string, which every server takes, also those that take no parts."""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        return parts[0]["text"]
    return list(parts)


def _part(block: Json, at: str) -> dict[str, Any]:
    if block["type"] == "text":
        validated(Text, block, at)
        return {"type": "text", **rest(block)}
    validated(Image, block, at)
    url = _url(block["source"], f"{at}.source")
    return {"type": "image_url", "image_url": {"url": url}, **rest(block, "source")}


def _url(source: Mapping[str, Any], at: str) -> str:
    if source["type"] == "base64":
        image = validated(Base64Source, source, at)
        return f"data:{image.media_type};base64,{image.data}"
    if source["type"] == "url":
        return validated(UrlSource, source, at).url
    raise _unknown(source["type"], f"{at}.type", ("base64", "url"))


def _each(content: Sequence[Json], where: str, kinds: Sequence[str]) -> Iterator[tuple[Json, str]]:
    """Each block with its path.

    Raises:
        RequestError: it is of none of these kinds.
    """
    for index, block in enumerate(content):
        at = f"{where}[{index}]"
        kind = validated(Block, block, at).type
        if kind not in kinds:
            raise _unknown(kind, f"{at}.type", kinds)
        yield block, at


def _unknown(kind: str, field: str, kinds: Sequence[str]) -> RequestError:
    return RequestError(
        f"{field}: {kind!r} is not taken here; what is taken: {', '.join(kinds)}",
        param=field,
    )
