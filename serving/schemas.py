"""What a chat request may look like, and how it becomes a ChatRequest.

Validation looks at the fields that Cascade itself relies on and never changes what the client sent:
unknown fields, null contents and provider options go on to the model as they came.
"""

import hashlib
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cascade.conversation import text_of
from cascade.errors import RequestError
from cascade.types import ChatRequest, Json
from serving.control import FIELD, Control, control

B = TypeVar("B", bound=BaseModel)
Count = Annotated[int, Field(ge=1)]

NAME_CHARACTERS = 200
SAFE_NESTING = 200
"""Fewer brackets than this cannot nest deeper than a JSON writer goes."""
OURS = frozenset({FIELD, "model", "messages", "tools", "stream", "stream_options"})
"""Body fields that do not go into a ChatRequest's params."""


class Open(BaseModel):
    """An object of which only some fields are ours to check."""

    model_config = ConfigDict(extra="allow", strict=True)


class Message(Open):
    """One message; what else it carries is the model's business."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None


class StreamOptions(Open):
    """How to stream."""

    include_usage: bool | None = None


class ResponseFormat(Open):
    """The form an answer must have."""

    type: str
    json_schema: dict[str, Any] | None = None


class ChatBody(Open):
    """The body of POST /v1/chat/completions, as far as Cascade relies on it."""

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    functions: list[dict[str, Any]] | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    seed: int | None = None
    logit_bias: dict[str, Any] | None = None
    reasoning_effort: str | dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    stop: str | list[str] | None = None
    response_format: ResponseFormat | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A chat request and how its answer is wanted.

    Attributes:
        pin: the tier that is to answer it; None leaves that to the model field.
        explain: the answer says how it came about.
    """

    request: ChatRequest
    stream: bool
    include_usage: bool
    pin: str | None = None
    explain: bool = False


def parse(body: bytes, headers: Mapping[str, str], request_id: str) -> Call:
    """Read a request.

    Raises:
        RequestError: naming the field at fault.
    """
    data = read(body)
    checked = validated(ChatBody, data)
    options = checked.stream_options
    return call_of(
        data,
        headers,
        request_id,
        stream=bool(checked.stream),
        include_usage=bool(options and options.include_usage),
    )


def read(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is.

    Raises:
        RequestError: it is none, or could not be written again for the model.
    """
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(f"the body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise RequestError("the body must be a JSON object")
    refuse_deep_nesting(body, data)
    return data


def validated(shape: type[B], data: Json, at: str = "") -> B:
    """An object held against its shape; `at` is where in the body it is.

    Raises:
        RequestError: naming the first field at fault.
    """
    try:
        return shape.model_validate(data)
    except ValidationError as error:
        raise _first(error, data, at) from None


def new_id() -> str:
    """A request id that sorts by time, which keeps the audit log's index compact.

    An id is a name and no secret, so it need not come from the system's slow source of randomness.
    """
    return f"{time.time_ns() // 1_000_000:011x}{random.getrandbits(48):012x}"


def call_of(
    data: dict[str, Any],
    headers: Mapping[str, str],
    request_id: str,
    *,
    stream: bool,
    include_usage: bool,
) -> Call:
    """The call that a valid body of a chat completion stands for.

    Raises:
        RequestError: naming what is wrong of its `cascade` object or of the headers.
    """
    said = control(data, headers)
    if said.prewarm and said.pin is None:
        field = f"{FIELD}.prewarm"
        raise RequestError(f"{field}: needs a pin, the tier whose cache is filled", param=field)
    return Call(
        request=_request(data, headers, request_id, said),
        stream=stream,
        include_usage=include_usage,
        pin=said.pin,
        explain=said.explain,
    )


def _request(
    data: dict[str, Any], headers: Mapping[str, str], request_id: str, said: Control
) -> ChatRequest:
    tenant = tenant_of(headers)
    session = said.session or data.get("user") or _session(tenant, data)
    tags = data.get("metadata") or {}
    return ChatRequest(
        id=request_id,
        model=data["model"],
        messages=data["messages"],
        params={name: value for name, value in data.items() if name not in OURS},
        tools=data.get("tools"),
        tenant=tenant,
        user=bounded(data.get("user") or ""),
        session=bounded(session),
        budget=said.budget,
        idempotency_key=headers.get("idempotency-key", ""),
        trace=headers.get("traceparent", ""),
        trace_state=headers.get("tracestate", ""),
        tags={name: value for name, value in tags.items() if isinstance(value, str)},
        prewarm=said.prewarm,
    )


def tenant_of(headers: Mapping[str, str]) -> str:
    """Whose request it is, as the headers, by their lower-case names, say."""
    return bounded(headers.get("x-cascade-tenant") or "default")


def _session(tenant: str, data: Json) -> str:
    """A conversation's name when the client gives none: tenant, system prompt and first ask.

    A conversation grows at its end, so these stay the same from its first request to its last.
    """
    messages = data["messages"]
    system = [m for m in messages if m["role"] in {"system", "developer"}][:1]
    first = [m for m in messages if m["role"] == "user"][:1]
    text = "\x1f".join([tenant, *(text_of(m.get("content")) for m in (*system, *first))])
    return _hashed(text)


def bounded(name: str) -> str:
    """A name a client chose, short enough for an index; a longer one is kept as its hash."""
    return name if len(name) <= NAME_CHARACTERS else _hashed(name)


def _hashed(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()


def _first(error: ValidationError, data: Json, at: str) -> RequestError:
    """The first fault, by the name of its field."""
    fault = error.errors(include_url=False, include_input=False)[0]
    field = at
    here: Any = data
    for step in fault["loc"]:
        # pydantic goes on with the member of a union that it tried, which is no field
        if isinstance(here, dict) and isinstance(step, str):
            field += f".{step}" if field else step
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int):
            field += f"[{step}]"
            here = here[step]
        else:
            break
    return RequestError(f"{field}: {fault['msg']}", param=field)


def refuse_deep_nesting(body: bytes, data: Json) -> None:
    """Refuse what can be read but not be written again for the model.

    Raises:
        RequestError: the body is nested too deeply.
    """
    if body.count(b"{") + body.count(b"[") <= SAFE_NESTING:
        return
    try:
        orjson.dumps(data)
    except orjson.JSONEncodeError:
        raise RequestError("the body is nested too deeply") from None
