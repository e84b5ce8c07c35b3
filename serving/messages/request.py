"""Translates a body of the Messages API into one of a chat completion.

What has no counterpart is refused by the path of its field, so that nothing is lost on the way.
Fields that Cascade does not know, cache_control among them, stay where they were.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cascade.errors import RequestError
from cascade.types import Json
from serving.messages.body import Body
from serving.messages.content import turn
from serving.messages.tools import tool, tool_choice
from serving.schemas import Call, call_of, read, refuse_deep_nesting, validated

_TRANSLATED = frozenset(
    {
        "messages",
        "metadata",
        "output_config",
        "stop_sequences",
        "system",
        "tool_choice",
        "tools",
    }
)

_ELSEWHERE = {
    "container": "code that the service runs is not offered",
    "logprobs": "an answer of this API has no place for it",
    "max_completion_tokens": "here it is max_tokens",
    "mcp_servers": "tools that the service runs are not offered",
    "n": "this API gives one answer",
    "parallel_tool_calls": "here it is tool_choice.disable_parallel_tool_use",
    "response_format": "here it is output_config.format",
    "stop": "here it is stop_sequences",
    "stream_options": "here usage is always in the stream",
    "top_logprobs": "an answer of this API has no place for it",
    "user": "here it is metadata.user_id",
}
"""Fields that would be lost, or that say what another field of this API says."""


def parse(body: bytes, headers: Mapping[str, str], request_id: str) -> Call:
    """Read a request.

    Raises:
        RequestError: naming the field at fault.
    """
    data = read(body)
    checked = validated(Body, data)
    for name, instead in _ELSEWHERE.items():
        if data.get(name) is not None:
            raise RequestError(f"{name}: {instead}", param=name)
    chat = _chat(data)
    refuse_deep_nesting(body, chat)  # a tool's schema is one level deeper there
    stream = bool(checked.stream)
    return call_of(chat, headers, request_id, stream=stream, include_usage=True)


def _chat(data: Json) -> dict[str, Any]:
    """The body of a chat completion that asks the same."""
    chat = {name: value for name, value in data.items() if name not in _TRANSLATED}
    chat["messages"] = list(_messages(data))
    if data.get("tools") is not None:
        chat["tools"] = [tool(one, f"tools[{i}]") for i, one in enumerate(data["tools"])]
    if data.get("tool_choice") is not None:
        chat |= tool_choice(data["tool_choice"])
    if data.get("stop_sequences") is not None:
        chat["stop"] = data["stop_sequences"]
    return chat | _labels(data.get("metadata") or {}) | _output(data.get("output_config") or {})


def _messages(data: Json) -> Iterator[dict[str, Any]]:
    if data.get("system") is not None:
        yield from turn({"role": "system", "content": data["system"]}, "", field="system")
    for index, message in enumerate(data["messages"]):
        yield from turn(message, f"messages[{index}]")


def _labels(metadata: Json) -> dict[str, Any]:
    rest = {name: value for name, value in metadata.items() if name != "user_id"}
    user = metadata.get("user_id")
    return ({} if user is None else {"user": user}) | ({"metadata": rest} if rest else {})


def _output(config: Json) -> dict[str, Any]:
    """A form of the answer as OpenAI's response_format; effort and the like as they are."""
    rest = {name: value for name, value in config.items() if name != "format"}
    asked: dict[str, Any] = {"output_config": rest} if rest else {}
    if config.get("format") is not None:
        schema = {"name": "answer", "schema": config["format"]["schema"], "strict": True}
        asked["response_format"] = {"type": "json_schema", "json_schema": schema}
    return asked
