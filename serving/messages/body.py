"""What a body of POST /v1/messages may look like, as far as it is translated.

Fields that are not named here are kept as they came.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from serving.schemas import Count, Open

Name = Annotated[str, Field(min_length=1)]


class Message(Open):
    """One turn; its blocks are looked at one by one."""

    role: Literal["user", "assistant", "system"]
    content: str | list[dict[str, Any]]


class ToolChoice(Open):
    """Whether and which tool is to be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: Name | None = None
    disable_parallel_tool_use: bool | None = None


class Metadata(Open):
    """About the request."""

    user_id: str | None = None


class OutputFormat(Open):
    """The form that an answer must have."""

    type: Literal["json_schema"]
    json_schema: dict[str, Any] = Field(alias="schema")


class OutputConfig(Open):
    """Form and effort of the answer."""

    format: OutputFormat | None = None


class Body(Open):
    """The whole."""

    model: Name
    max_tokens: Count
    messages: Annotated[list[Message], Field(min_length=1)]
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: ToolChoice | None = None
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    thinking: dict[str, Any] | None = None
    metadata: Metadata | None = None
    output_config: OutputConfig | None = None


class Tool(Open):
    """A tool that the client runs."""

    name: Name
    description: str | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None


class Block(Open):
    """Any piece of content."""

    type: str


class Text(Open):
    """A piece of text."""

    text: str


class Image(Open):
    """An image."""

    source: Block


class Base64Source(Open):
    """An image inside the request."""

    media_type: Name
    data: Name


class UrlSource(Open):
    """An image elsewhere."""

    url: Name


class ToolUse(Open):
    """A call that the model asked for."""

    id: Name
    name: Name
    input: dict[str, Any]


class ToolResult(Open):
    """What came of a call."""

    tool_use_id: Name
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = None


class Thinking(Open):
    """Reasoning of an earlier answer; signed where the provider checks it."""

    thinking: str
    signature: str | None = None


class RedactedThinking(Open):
    """Reasoning that only its provider can read."""

    data: str
