"""What conditions may ask of a request and of an answer."""

from collections.abc import Mapping
from typing import Any

from cascade.conversation import last_ask, text_of
from cascade.types import ChatRequest, Completion


def request_facts(request: ChatRequest) -> Mapping[str, Any]:
    """The request by the name `request`. Lengths are in characters.

    tenant, model, tags, tools (names), params (the numbers, texts and truths among them), ask (the
    last user message), ask_length, length (of all messages), messages (their number), json (the
    answer must be JSON).
    """
    tools = [tool.get("function") or tool.get("custom") or {} for tool in request.tools or ()]
    ask = last_ask(request.messages)
    form = request.params.get("response_format") or {}
    return {
        "request": {
            "tenant": request.tenant,
            "model": request.model,
            "tags": dict(request.tags),
            "tools": [str(tool.get("name") or "") for tool in tools],
            "params": {
                name: value
                for name, value in request.params.items()
                if isinstance(value, str | int | float | bool)
            },
            "ask": ask,
            "ask_length": len(ask),
            "length": sum(len(text_of(message.get("content"))) for message in request.messages),
            "messages": len(request.messages),
            "json": form.get("type") in {"json_object", "json_schema"},
        }
    }


def answer_facts(completion: Completion) -> Mapping[str, Any]:
    """The answer by the name `answer`: text, length, tier, model, finish_reason, tools (called)."""
    calls = [call.get("function") or call.get("custom") or {} for call in completion.tool_calls]
    return {
        "answer": {
            "text": completion.text,
            "length": len(completion.text),
            "tier": completion.tier,
            "model": completion.model,
            "finish_reason": completion.finish_reason or "",
            "tools": [str(call.get("name") or "") for call in calls],
        }
    }
