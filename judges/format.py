"""Checks that cost nothing and are never wrong about what they check.

An answer that was cut, is empty, or does not fit the JSON Schema that the request itself asks for
is not acceptable, whatever a model thinks of it: score 0, final. An answer that passes is only well
formed, so its score of 1 says nothing about being right, and is not final.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from jsonschema_rs import Draft202012Validator, FancyRegexOptions, ValidationError

from cascade.errors import JudgeError
from cascade.types import FREE, ChatRequest, Completion, Json, Verdict

SHORT_LIMIT_TOKENS = 16
BACKTRACK_LIMIT = 100_000


class FormatJudge:
    """Finished, not empty, JSON as the request asks for it, tool calls that fit its tools.

    Args:
        name: how verdicts call it.
        short_limit_tokens: an answer cut by the client's own limit is still whole when that limit
            is no larger than this: asking for one label with max_tokens 1 ends every answer so.
    """

    def __init__(
        self, *, name: str = "format", short_limit_tokens: int = SHORT_LIMIT_TOKENS
    ) -> None:
        self.name = name
        self.needs: Json = {}
        self._short_limit_tokens = short_limit_tokens

    async def judge(self, request: ChatRequest, completion: Completion) -> Verdict:
        """0 and final with the first fault found, otherwise 1.

        Raises:
            JudgeError: the request's own JSON Schema cannot be used.
        """
        fault = (
            self._unfinished(request, completion)
            or _misshapen(request, completion)
            or _miscalled(request, completion)
        )
        if fault:
            return Verdict(
                judge=self.name, score=0.0, final=True, reason=fault, features={"well_formed": 0.0}
            )
        return Verdict(
            judge=self.name, score=1.0, reason="well formed", features={"well_formed": 1.0}
        )

    def _unfinished(self, request: ChatRequest, completion: Completion) -> str | None:
        reason = completion.finish_reason
        if completion.partial or reason is None:
            return "the answer was cut"
        if reason == "content_filter":
            return "the answer was filtered"
        if reason == "length" and not self._meant_to_be_short(request):
            return "the answer was cut by a length limit"
        if not completion.text.strip() and not completion.tool_calls:
            return "the answer is empty"
        return None

    def _meant_to_be_short(self, request: ChatRequest) -> bool:
        limit = request.params.get("max_completion_tokens") or request.params.get("max_tokens")
        return limit is not None and limit <= self._short_limit_tokens


def _misshapen(request: ChatRequest, completion: Completion) -> str | None:
    """What is wrong with an answer that had to be JSON."""
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


def _miscalled(request: ChatRequest, completion: Completion) -> str | None:
    """What is wrong with an answer's tool calls, held against the request's tools."""
    tools = {}
    for tool in request.tools or ():
        function = tool.get("function") or {}
        tools[function.get("name")] = function.get("parameters")
    for call in completion.tool_calls:
        function = call.get("function") or {}
        name = function.get("name")
        if name not in tools:
            return f"the answer calls {name!r}, which is no tool of the request"
        try:
            arguments = orjson.loads(function.get("arguments") or "{}")
        except orjson.JSONDecodeError as error:
            return f"the arguments of {name} are not JSON: {error}"
        schema = tools[name]
        if isinstance(schema, Mapping) and (fault := _violation(schema, arguments)):
            return f"the call of {name}: {fault}"
    return None


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
