"""Answers, usage and errors in the Messages API's shape."""

from collections.abc import Iterator
from typing import Any

import orjson

from cascade.errors import BackendProtocolError, CascadeError
from cascade.result import CascadeResult
from cascade.types import Choice, Completion, Failure, Json, Usage

_STOP_REASONS = {
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}

_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}

_SERVER_ERRORS = 500


def message(result: CascadeResult, answer: Completion) -> dict[str, Any]:
    """A whole answer.

    Raises:
        BackendProtocolError: a tool call's arguments are not JSON.
    """
    choice = answer.choices[0]
    text = choice.text or choice.extra.get("refusal")
    said = [{"type": "text", "text": text}] if text else []
    return {
        **head(result.request.id, answer.model, answer.usage),
        "content": [*thoughts(choice.extra), *said, *tool_uses(choice)],
        "stop_reason": stop_reason(choice),
    }


def head(request_id: str, model: str, tokens: Usage) -> dict[str, Any]:
    """A message without content, as it is when it begins."""
    return {
        "id": f"msg_{request_id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage(tokens),
    }


def usage(tokens: Usage) -> dict[str, int]:
    """Usage with Anthropic's exclusive counts.

    Its clients need every number, so what an upstream did not report is 0 here, in this shape only:
    the audit row and the cost header still say that it is unknown.
    """
    return {
        "input_tokens": tokens.input or 0,
        "cache_read_input_tokens": tokens.cache_read or 0,
        "cache_creation_input_tokens": sum((tokens.cache_write or {}).values()),
        "output_tokens": (tokens.output or 0) + (tokens.reasoning or 0),
    }


def stop_reason(choice: Choice) -> str:
    """Why an answer ended.

    A stop sequence looks like any other end in OpenAI's shape, so it is end_turn.
    """
    if choice.extra.get("refusal"):
        return "refusal"
    reason = _STOP_REASONS.get(choice.finish_reason or "", "end_turn")
    return "tool_use" if reason == "end_turn" and choice.tool_calls else reason


def thoughts(extra: Json) -> Iterator[dict[str, Any]]:
    """Thinking blocks, from the pieces that a stream brought or from plain reasoning text."""
    text = ""
    for kind, piece in reasoning(extra):
        if kind == "thinking":
            text += piece
            continue
        if kind == "signature" or text:
            yield _thinking(text, piece if kind == "signature" else "")
            text = ""
        if kind == "redacted_thinking":
            yield {"type": kind, "data": piece}
    if text:
        yield _thinking(text, "")


def reasoning(extra: Json) -> Iterator[tuple[str, str]]:
    """Pieces of reasoning: thinking, signature (ends a block) or redacted_thinking, and its text.

    Servers of open models give text as reasoning_content or reasoning; litellm gives providers'
    thinking_blocks beside that text.
    """
    blocks = extra.get("thinking_blocks")
    if not isinstance(blocks, list) or not blocks:
        text = extra.get("reasoning_content") or extra.get("reasoning")
        if isinstance(text, str):
            yield "thinking", text
        return
    for block in blocks:
        if block.get("type") == "redacted_thinking":
            yield "redacted_thinking", block.get("data") or ""
        if block.get("thinking"):
            yield "thinking", block["thinking"]
        if block.get("signature"):
            yield "signature", block["signature"]


def tool_uses(choice: Choice) -> list[dict[str, Any]]:
    """The tool calls of an answer, as blocks.

    Raises:
        BackendProtocolError: a call's arguments are no JSON object; no judge has looked.
    """
    return [_tool_use(call, index) for index, call in enumerate(choice.tool_calls)]


def error(fault: CascadeError | Failure, request_id: str) -> dict[str, Any]:
    """Anthropic's error object."""
    other = "api_error" if fault.status >= _SERVER_ERRORS else "invalid_request_error"
    told = {"type": _ERRORS.get(fault.status, other), "message": fault.message}
    return {"type": "error", "error": told, "request_id": request_id}


def _thinking(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def _tool_use(call: Json, index: int) -> dict[str, Any]:
    function = call.get("function") or {}
    name = function.get("name") or ""
    try:
        arguments = orjson.loads(function.get("arguments") or "{}")
    except orjson.JSONDecodeError as fault:
        raise BackendProtocolError(
            f"the model calls {name!r} with arguments that are not JSON: {fault}"
        ) from None
    if not isinstance(arguments, dict):
        raise BackendProtocolError(
            f"the model calls {name!r} with arguments that are no JSON object"
        )
    identity = call.get("id") or f"call_{index}"
    return {"type": "tool_use", "id": identity, "name": name, "input": arguments}
