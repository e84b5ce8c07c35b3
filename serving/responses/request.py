"""Translates a body of the Responses API into one of a chat completion.

What has no counterpart, or needs what a server would have to store, is refused by the path of its
field, so that nothing is lost on the way. Fields that Cascade does not know go on as they came.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cascade.errors import RequestError
from cascade.types import Json
from serving.responses.asked import remembering
from serving.responses.body import Body, JsonSchema, Typed
from serving.responses.content import unknown
from serving.responses.conversation import messages
from serving.responses.tools import tool, tool_choice
from serving.schemas import Call, call_of, read, refuse_deep_nesting, validated

_LOGPROBS = "message.output_text.logprobs"
_INCLUDED = (_LOGPROBS, "reasoning.encrypted_content")

_TRANSLATED = frozenset(
    {
        "background",
        "background_options",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",  # counts only tools that the service would run
        "parallel_tool_calls",
        "reasoning",
        "store",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "truncation",
    }
)

_ELSEWHERE = {
    "background": "responses are not stored here, so none can be fetched later: leave it out",
    "context_management": "nothing is compacted here: leave it out",
    "conversation": "conversations are not stored here: send all of it as input",
    "functions": "here it is tools",
    "function_call": "here it is tool_choice",
    "logprobs": f"here it is include with {_LOGPROBS!r}",
    "max_completion_tokens": "here it is max_output_tokens",
    "max_tokens": "here it is max_output_tokens",
    "messages": "here it is input",
    "n": "this API gives one answer",
    "previous_response_id": "responses are not stored here: send the conversation so far as input, "
    "the items of each answer's output among it",
    "prompt": "prompts are not stored here: send the text as instructions and input",
    "reasoning_effort": "here it is reasoning.effort",
    "response_format": "here it is text.format",
    "verbosity": "here it is text.verbosity",
}
"""Fields that need a server's memory, or say what another field of this API says."""

_TEXT = ("format", "verbosity")
_REASONING = ("effort", "summary", "generate_summary")


def parse(body: bytes, headers: Mapping[str, str], request_id: str) -> Call:
    """Read a request.

    Raises:
        RequestError: naming the field at fault.
    """
    data = read(body)
    checked = validated(Body, data)
    _refuse(checked, data)
    chat = _chat(data)
    # A tool's schema is one level deeper there, and so is all that the answer repeats.
    refuse_deep_nesting(body, {"asked": data, "chat": chat})
    stream = bool(checked.stream)
    call = call_of(chat, headers, request_id, stream=stream, include_usage=True)
    return replace(call, request=remembering(call.request, data))


def _refuse(checked: Body, data: Json) -> None:
    for name, instead in _ELSEWHERE.items():
        if data.get(name) is not None and data[name] is not False:
            raise RequestError(f"{name}: {instead}", param=name)
    if checked.truncation == "auto":
        raise RequestError(
            "truncation: 'auto' drops the beginning of a conversation that is too long, which "
            "nothing does here: leave it out, and shorten what is refused as too long",
            param="truncation",
        )
    if checked.stream_options and checked.stream_options.include_obfuscation:
        field = "stream_options.include_obfuscation"
        raise RequestError(f"{field}: is not offered: leave it out", param=field)
    for index, wanted in enumerate(checked.include or ()):
        if wanted not in _INCLUDED:
            raise unknown(wanted, f"include[{index}]", _INCLUDED)


def _chat(data: Json) -> dict[str, Any]:
    """The body of a chat completion that asks the same."""
    chat = {
        name: value
        for name, value in data.items()
        if name not in _TRANSLATED and name not in _ELSEWHERE
    }
    chat["messages"] = _messages(data)
    if data.get("max_output_tokens") is not None:
        chat["max_completion_tokens"] = data["max_output_tokens"]
    text, reasoning = data.get("text") or {}, data.get("reasoning") or {}
    return chat | _tools(data) | _text(text) | _reasoning(reasoning) | _logprobs(data)


def _messages(data: Json) -> list[dict[str, Any]]:
    given, instructions = data["input"], data.get("instructions")
    system = [{"role": "system", "content": instructions}] if instructions else []
    said = [{"role": "user", "content": given}] if isinstance(given, str) else messages(given)
    if not said:
        raise RequestError("input: has nothing to answer", param="input")
    return [*system, *said]


def _tools(data: Json) -> dict[str, Any]:
    """Tools and how to use them; without tools, what says nothing is left out, as servers want."""
    tools = [tool(one, f"tools[{i}]") for i, one in enumerate(data.get("tools") or ())]
    fields: dict[str, Any] = {"tools": tools} if tools else {}
    if data.get("tool_choice") is not None:
        choice = tool_choice(data["tool_choice"])
        if tools or choice not in ("auto", "none"):
            fields["tool_choice"] = choice
    if tools and data.get("parallel_tool_calls") is not None:
        fields["parallel_tool_calls"] = data["parallel_tool_calls"]
    return fields


def _text(config: Json) -> dict[str, Any]:
    """Form and length of the answer."""
    _refuse_others(config, "text", _TEXT)
    verbosity = config.get("verbosity")
    fields = {} if verbosity is None else {"verbosity": verbosity}
    return fields | (_format(config["format"]) if config.get("format") is not None else {})


def _reasoning(config: Json) -> dict[str, Any]:
    """The effort. No summary is made: the answer has the reasoning itself, if the model tells."""
    _refuse_others(config, "reasoning", _REASONING)
    effort = config.get("effort")
    return {} if effort is None else {"reasoning_effort": effort}


def _refuse_others(config: Json, at: str, known: tuple[str, ...]) -> None:
    for name, value in config.items():
        if name not in known and value is not None:
            raise unknown(name, f"{at}.{name}", known)


def _format(given: Json) -> dict[str, Any]:
    at = "text.format"
    kind = validated(Typed, given, at).type
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"response_format": {"type": kind}}
    if kind != "json_schema":
        raise unknown(kind, f"{at}.type", ("text", "json_object", "json_schema"))
    validated(JsonSchema, given, at)
    schema = {name: value for name, value in given.items() if name != "type" and value is not None}
    return {"response_format": {"type": kind, kind: schema}}


def _logprobs(data: Json) -> dict[str, Any]:
    """The log probabilities, which are told only to who includes them."""
    if _LOGPROBS not in (data.get("include") or ()):
        return {}
    top = data.get("top_logprobs")
    return {"logprobs": True} | ({} if top is None else {"top_logprobs": top})
