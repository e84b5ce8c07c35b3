"""Answers, usage and failures in the Responses API's shape."""

from collections.abc import Iterator, Sequence
from typing import Any

from cascade.answers import presented_logprobs
from cascade.errors import CascadeError
from cascade.result import CascadeResult
from cascade.types import ChatRequest, Choice, Completion, Failure, Json, Usage
from serving import present
from serving.messages.response import reasoning, thoughts
from serving.responses.asked import repeated
from serving.responses.items import (
    REASONING,
    REFUSAL,
    TEXT,
    Kind,
    function_calls,
    identity,
    item,
    part,
)
from serving.responses.sealed import seal

COMPLETED = "completed"
INCOMPLETE = "incomplete"

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}

_TOO_MANY = 429
_SERVER_ERRORS = 500


def whole(result: CascadeResult, answer: Completion) -> dict[str, Any]:
    """A whole answer.

    Raises:
        BackendProtocolError: a tool call's arguments are not JSON.
    """
    return finished(result, answer, output(result.request, answer.choices[0]), result.started_at)


def finished(
    result: CascadeResult, answer: Completion, items: Sequence[Json], created_at: float
) -> dict[str, Any]:
    """An answer that came to its end, also to one before its time."""
    status = status_of(answer.choices[0])
    reason = _INCOMPLETE.get(answer.choices[0].finish_reason or "")
    return {
        **unfinished(result.request, answer.model, created_at),
        "status": status,
        "completed_at": int(result.started_at + result.seconds) if status == COMPLETED else None,
        "incomplete_details": {"reason": reason} if reason else None,
        "output": list(items),
        "usage": usage(answer.usage),
    }


def unfinished(request: ChatRequest, model: str, created_at: float) -> dict[str, Any]:
    """A response without output, as it is when it begins.

    `store` is false whatever was asked: nothing is kept that could be referred to later.
    """
    return {
        "id": f"resp_{request.id}",
        "object": "response",
        "created_at": int(created_at),
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "previous_response_id": None,
        "service_tier": None,
        "store": False,
        "truncation": "disabled",
        "usage": None,
        **repeated(request),
    }


def failed(response: Json, fault: Failure, items: Sequence[Json]) -> dict[str, Any]:
    """A response that broke off, with what there was of it."""
    told = {"code": _code(fault.status), "message": fault.message}
    return {**response, "status": "failed", "error": told, "output": list(items)}


def output(request: ChatRequest, choice: Choice) -> list[dict[str, Any]]:
    """The items of a whole answer: what was thought, said, and called.

    Raises:
        BackendProtocolError: a tool call's arguments are not JSON.
    """
    said = list(_said(choice))
    calls = function_calls(request.id, choice, len(said))
    last = len(said) - 1
    items = []
    for index, (kind, text) in enumerate(said):
        state = status_of(choice) if index == last and not calls else COMPLETED
        logprobs = _logprobs(request, choice) if kind == TEXT else ()
        sealed = seal(thoughts(choice.extra)) if kind == REASONING else None
        name = identity(request.id, kind, index)
        items.append(item(kind, name, state, [part(kind, text, logprobs)], sealed))
    return [*items, *calls]


def status_of(choice: Choice) -> str:
    """Whether an answer came to its own end."""
    return INCOMPLETE if choice.finish_reason in _INCOMPLETE else COMPLETED


def usage(tokens: Usage) -> dict[str, Any] | None:
    """Usage with inclusive counts; None when the upstream reported none.

    Clients need the details as numbers, so what was not reported of them is 0 here, in this shape
    only: the audit row still says that it is unknown.
    """
    if tokens.prompt is None or tokens.output is None:
        return None
    answered = tokens.output + (tokens.reasoning or 0)
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {
            "cached_tokens": tokens.cache_read or 0,
            "cache_write_tokens": sum((tokens.cache_write or {}).values()),
        },
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning or 0},
        "total_tokens": tokens.prompt + answered,
    }


def error(fault: CascadeError | Failure, _: str) -> dict[str, Any]:
    """OpenAI's error object."""
    return present.error(fault)


def _said(choice: Choice) -> Iterator[tuple[Kind, str]]:
    pieces = list(reasoning(choice.extra))
    if pieces:
        yield REASONING, "".join(text for kind, text in pieces if kind == "thinking")
    if choice.text:
        yield TEXT, choice.text
    if refusal := choice.extra.get("refusal"):
        yield REFUSAL, refusal


def _logprobs(request: ChatRequest, choice: Choice) -> Sequence[Json]:
    if not request.params.get("logprobs") or choice.logprobs is None:
        return ()
    shown: Sequence[Json] = presented_logprobs(request, {"content": choice.logprobs})["content"]
    return shown


def _code(status: int) -> str:
    """One of the few codes that a response's error may have."""
    if status == _TOO_MANY:
        return "rate_limit_exceeded"
    return "server_error" if status >= _SERVER_ERRORS else "invalid_prompt"
