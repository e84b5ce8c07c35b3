"""What a body of POST /v1/responses may look like, as far as it is translated.

Fields that are not named here are kept as they came.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from serving.schemas import Count, Open

Name = Annotated[str, Field(min_length=1)]


class Reasoning(Open):
    """How much the model is to think."""

    effort: str | None = None


class TextConfig(Open):
    """Form and length of the answer."""

    format: dict[str, Any] | None = None
    verbosity: str | None = None


class StreamOptions(Open):
    """How to stream."""

    include_obfuscation: bool | None = None


class Body(Open):
    """The whole."""

    model: Name
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: Reasoning | None = None
    include: list[str] | None = None
    max_output_tokens: Count | None = None
    max_tool_calls: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    store: bool | None = None
    background: bool | None = None
    truncation: Literal["auto", "disabled"] | None = None
    metadata: dict[str, Any] | None = None
    user: str | None = None


class Typed(Open):
    """Anything that says what it is."""

    type: Name


class Function(Open):
    """A tool that the client runs."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class AllowedTools(Open):
    """A choice among some of the tools."""

    mode: Literal["auto", "required"]
    tools: list[dict[str, Any]]


class JsonSchema(Open):
    """The form that an answer must have."""

    name: Name
    json_schema: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class Message(Open):
    """Something that was said; its parts are looked at one by one."""

    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[dict[str, Any]]


class FunctionCall(Open):
    """A call that the model asked for."""

    call_id: Name
    name: Name
    arguments: str


class FunctionCallOutput(Open):
    """What came of a call."""

    call_id: Name
    output: str | list[dict[str, Any]]


class ReasoningItem(Open):
    """What a model thought before an earlier answer."""

    content: list[dict[str, Any]] | None = None
    encrypted_content: str | None = None


class Text(Open):
    """A piece of text."""

    text: str


class Refusal(Open):
    """A model's words when it would not answer."""

    refusal: str


class Image(Open):
    """An image."""

    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class File(Open):
    """A file."""

    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None
