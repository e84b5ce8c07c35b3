"""Holds an answer against the shape that its request asks for: JSON, a JSON Schema, tool calls.

Each function says what is wrong in the rest of a sentence, or None.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson
from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError

from cascade.errors import JudgeError
from cascade.types import FREE, ChatRequest, Completion, Json

BACKTRACK_LIMIT = 100_000


def misshapen(request: ChatRequest, completion: Completion) -> str | None:
    """What is wrong with an answer that had to be JSON.

    Raises:
        JudgeError: the request's own JSON Schema cannot be used.
    """
    asked = request.params.get("response_format") or {}
    kind = asked.get("type")
    if kind not in {"json_object", "json_schema"} or completion.tool_calls:
        return None
    try:
        answer = orjson.loads(completion.text)
    except orjson.JSONDecodeError as error:
        return f"the answer is not JSON: {error}"
    if kind == "json_object":
        return None if isinstance(answer, dict) else "the answer is not a JSON object"
    schema = (asked.get("json_schema") or {}).get("schema")
    return _violation(schema, answer) if isinstance(schema, Mapping) else None


def miscalled(request: ChatRequest, completion: Completion) -> str | None:
    """What is wrong with an answer's tool calls, held against the request's tools and tool_choice.

    Raises:
        JudgeError: a tool's own JSON Schema cannot be used.
    """
    tools = {_name(tool): tool for tool in request.tools or ()}
    calls = completion.tool_calls
    return _miscounted(request, calls) or next(
        (fault for call in calls if (fault := _misfit(call, tools))), None
    )


def _miscounted(request: ChatRequest, calls: Sequence[Json]) -> str | None:
    """Calls where none may be, none where one must be, of a tool that is not meant, too many."""
    wanted, allowed = _wanted(request.params.get("tool_choice"))
    if wanted == "none" and calls:
        return "the answer calls a tool, which the request forbids"
    if wanted == "required" and not calls:
        return "the answer calls no tool, which the request requires"
    if allowed is not None:
        for call in calls:
            if _name(call) not in allowed:
                return f"the answer calls {_name(call)!r}, not {' or '.join(sorted(allowed))}"
    if request.params.get("parallel_tool_calls") is False and len(calls) > 1:
        return f"the answer calls {len(calls)} tools at once, which the request forbids"
    ids = [call.get("id") for call in calls]
    if len(calls) > 1 and (not all(ids) or len(set(ids)) < len(ids)):
        return "the answer's tool calls cannot be told apart by their ids"
    return None


def _wanted(choice: Any) -> tuple[str, frozenset[str] | None]:
    """Whether tools must be called, and which may be; None for all of them."""
    if not isinstance(choice, Mapping):
        return (choice if isinstance(choice, str) else "auto"), None
    listed = choice.get("allowed_tools")
    if isinstance(listed, Mapping):
        names = frozenset(filter(None, map(_name, listed.get("tools") or ())))
        return str(listed.get("mode") or "auto"), names
    name = _name(choice)
    return ("required", frozenset({name})) if name else ("auto", None)


def _misfit(call: Json, tools: Mapping[str | None, Json]) -> str | None:
    name = _name(call)
    if name is None or name not in tools:
        return f"the answer calls {name!r}, which is no tool of the request"
    if "custom" in tools[name]:
        return None  # it takes any text
    try:
        arguments = orjson.loads((call.get("function") or {}).get("arguments") or "{}")
    except orjson.JSONDecodeError as error:
        return f"the arguments of {name} are not JSON: {error}"
    if not isinstance(arguments, dict):
        return f"the arguments of {name} are no JSON object"
    schema = (tools[name].get("function") or {}).get("parameters")
    if isinstance(schema, Mapping) and (fault := _violation(schema, arguments)):
        return f"the call of {name}: {fault}"
    return None


def _name(tool: Json) -> str | None:
    """The name in a tool's definition or in a call of it, whose shapes are alike."""
    inner = tool.get("function") or tool.get("custom") or {}
    name = inner.get("name") if isinstance(inner, Mapping) else None
    return name if isinstance(name, str) else None


def _violation(schema: Mapping[str, Any], answer: Any) -> str | None:
    try:
        validator = _validator(orjson.dumps(schema))
    except (ValueError, ValidationError) as error:
        first_line = str(error).partition("\n")[0]
        raise JudgeError(
            f"the request's JSON Schema cannot be used: {first_line}", cost=FREE
        ) from None
    try:
        validator.validate(answer)
    except ValidationError as error:
        path = "/".join(str(step) for step in error.instance_path)
        return f"it breaks the JSON Schema at /{path}: {error.message}"
    return None


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Draft202012Validator:
    # The schema is the client's: it may fetch nothing (offline), and its patterns may backtrack
    # only so far, so that none can stall the service.
    return Draft202012Validator(
        orjson.loads(schema),
        offline=True,
        pattern_options=FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT),
    )
