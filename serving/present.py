"""OpenAI's shapes for what Cascade has to say: completions, chunks, usage, errors, headers."""

import math
import time
from collections.abc import Sequence
from typing import Any

from cascade.answers import presented_logprobs
from cascade.errors import CascadeError
from cascade.experiments import Arm
from cascade.result import CascadeResult
from cascade.types import ChatRequest, Choice, Completion, Cost, Failure, Json, Usage
from serving.explain import dollars, estimated

_INVALID = range(400, 500)


def completion(result: CascadeResult, answer: Completion) -> dict[str, Any]:
    """A whole answer."""
    return {
        "id": f"chatcmpl-{result.request.id}",
        "object": "chat.completion",
        "created": int(result.started_at),
        "model": answer.model,
        "choices": [
            _choice(result.request, index, choice) for index, choice in enumerate(answer.choices)
        ],
        "usage": usage(answer.usage),
    }


def chunk(request: ChatRequest, model: str, choices: Sequence[Json]) -> dict[str, Any]:
    """A piece of a streamed answer."""
    return {
        "id": f"chatcmpl-{request.id}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
        "choices": [{"finish_reason": None, **choice} for choice in choices],
    }


def usage(tokens: Usage) -> dict[str, Any] | None:
    """Usage with OpenAI's inclusive counts; None when the upstream reported none."""
    if tokens.prompt is None or tokens.output is None:
        return None
    output = tokens.output + (tokens.reasoning or 0)
    report: dict[str, Any] = {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": output,
        "total_tokens": tokens.prompt + output,
    }
    if tokens.cache_read is not None:
        report["prompt_tokens_details"] = {"cached_tokens": tokens.cache_read}
    if tokens.reasoning is not None:
        report["completion_tokens_details"] = {"reasoning_tokens": tokens.reasoning}
    return report


def error(fault: CascadeError | Failure) -> dict[str, Any]:
    """OpenAI's error object."""
    kind = "invalid_request_error" if fault.status in _INVALID else "server_error"
    if fault.status == 429:  # noqa: PLR2004
        kind = "rate_limit_error"
    return {
        "error": {
            "message": fault.message,
            "type": kind,
            "param": getattr(fault, "param", None),
            "code": fault.code,
        }
    }


def bug(error: Exception) -> Failure:
    """What a client may know of an error that should not happen."""
    return Failure(
        type=type(error).__name__,
        message="an error inside Cascade; its log has the request id and the cause",
        status=500,
    )


def early_headers(request: ChatRequest, arm: Arm) -> dict[str, str]:
    """What is known before any model was asked."""
    known = {
        **identity(request.id),
        "x-cascade-policy": arm.policy.name,
        "x-cascade-experiment": arm.experiment,
        "x-cascade-arm": arm.name,
    }
    return {name: value for name, value in known.items() if value is not None}


def identity(request_id: str) -> dict[str, str]:
    """The request's id, also under the names that OpenAI's and Anthropic's clients look for."""
    return {
        "x-cascade-request-id": request_id,
        "x-request-id": request_id,
        "request-id": request_id,
    }


def late_headers(result: CascadeResult) -> dict[str, str]:
    """What is known once the request is done."""
    answer = result.completion
    headers = {
        "x-cascade-attempts": str(result.answers),
        "x-cascade-degraded": str(result.degraded).lower(),
        "x-cascade-cost-usd": _usd(result.cost),
        "x-cascade-baseline-usd": _usd(result.baseline),
        "x-cascade-overhead-ms": f"{result.overhead_seconds * 1e3:.3f}",
    }
    if estimated(result):
        headers["x-cascade-cost-estimated"] = "true"
    if answer is not None:
        headers |= who(answer.tier, answer.model)
    if result.error is not None:
        headers |= retry(result.error)
    return headers


def retry(fault: CascadeError | Failure) -> dict[str, str]:
    """When the client may try again, where that is known."""
    after = fault.retry_after
    return {} if after is None else {"retry-after": str(max(1, math.ceil(after)))}


def who(tier: str, model: str) -> dict[str, str]:
    """Who answered; a model may be called anything upstream, and a header holds plain ASCII."""
    safe = "".join(c if c.isascii() and c.isprintable() else "?" for c in model)
    return {"x-cascade-tier": tier, "x-cascade-model": safe}


def _usd(cost: Cost | None) -> str:
    return (dollars(cost.total) if cost else None) or "unknown"


def _choice(request: ChatRequest, index: int, choice: Choice) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": choice.text, **choice.extra}
    if choice.tool_calls:
        message |= {"content": choice.text or None, "tool_calls": list(choice.tool_calls)}
    shown: dict[str, Any] = {
        "index": index,
        "message": message,
        "finish_reason": choice.finish_reason,
        "logprobs": None,
    }
    if request.params.get("logprobs") and choice.logprobs is not None:
        shown["logprobs"] = presented_logprobs(request, {"content": choice.logprobs})
    return shown
