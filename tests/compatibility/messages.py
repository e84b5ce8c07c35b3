"""POST /v1/messages: every field of Anthropic's API, and what open servers add."""

from typing import get_type_hints

from anthropic.types.message_create_params import MessageCreateParamsStreaming

from tests.compatibility.case import (
    EPHEMERAL,
    OBJECT,
    PICTURE,
    Case,
    Endpoint,
    one_each,
    server_cases,
)

USER = {"role": "user", "content": "hi"}
TOOL = {"name": "f", "description": "mark", "input_schema": OBJECT}
TOOLS = {"tools": [TOOL]}
USE = {"type": "tool_use", "id": "mark1", "name": "f", "input": {"a": "mark3"}}
RESULT = {"type": "tool_result", "tool_use_id": "mark1", "content": "mark2"}
SOURCE = {"type": "base64", "media_type": "image/png", "data": PICTURE}
IMAGE = {"type": "image", "source": SOURCE}

FIELDS = {
    "cache_control": {"type": "ephemeral"},
    "container": "mark",
    "context_management": {"edits": [{"type": "mark"}]},
    "diagnostics": {"previous_message_id": "mark"},
    "inference_geo": "mark",
    "max_tokens": 7,
    "mcp_servers": [{"type": "url", "name": "mark", "url": "https://mark"}],
    "metadata": {"user_id": "mark"},
    "output_config": {"format": {"type": "json_schema", "schema": OBJECT}},
    "service_tier": "auto",
    "speed": "fast",
    "stop_sequences": ["mark"],
    "stream": True,
    "system": "mark",
    "temperature": 0.5,
    "tools": [TOOL],
    "top_k": 5,
    "top_p": 0.5,
    "user_profile_id": "mark",
    "workspace_id": "mark",
    "n": 2,
    "logprobs": True,
    "response_format": {"type": "json_object"},
    "seed": 7,
    "stop": ["mark"],
}
BOUND = frozenset({"cache_control"})


TEXT = {"type": "text", "text": "hi"}


def shows(name: str, block: dict[str, object]) -> Case:
    return Case(
        name=name,
        adds={"messages": [{"role": "user", "content": [TEXT, block]}]},
        beside={"messages": [{"role": "user", "content": [TEXT]}]},
    )


def returns(name: str, *, bound: bool = False, **result: object) -> Case:
    """A tool's result that has something more."""

    def turns(block: dict[str, object]) -> list[dict[str, object]]:
        return [USER, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [block]}]

    return Case(
        name=name,
        adds={"messages": turns({**RESULT, **result}), **TOOLS},
        beside={"messages": turns(RESULT), **TOOLS},
        bound=bound,
    )


def thinks(name: str, block: dict[str, object]) -> Case:
    def turns(*blocks: dict[str, object]) -> list[dict[str, object]]:
        said = [*blocks, {"type": "text", "text": "ok"}]
        return [USER, {"role": "assistant", "content": said}, USER]

    thinking = {"max_tokens": 2000, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    return Case(
        name=name,
        adds={"messages": turns(block), **thinking},
        beside={"messages": turns(), **thinking},
        bound=True,
    )


MORE = [
    Case(
        name="thinking",
        adds={"thinking": {"type": "enabled", "budget_tokens": 1024}},
        beside={"max_tokens": 2000},
    ),
    Case(name="output_config.effort", adds={"output_config": {"effort": "low"}}),
    Case(name="tool_choice", adds={"tool_choice": {"type": "any"}}, beside=TOOLS),
    Case(
        name="tool_choice, a named tool",
        adds={"tool_choice": {"type": "tool", "name": "f"}},
        beside=TOOLS,
    ),
    Case(
        name="tool_choice.disable_parallel_tool_use",
        adds={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        beside={**TOOLS, "tool_choice": {"type": "auto"}},
    ),
    Case(name="tools, strict", adds={"tools": [{**TOOL, "strict": True}]}, beside=TOOLS),
    Case(
        name="tools, cache_control",
        adds={"tools": [{**TOOL, **EPHEMERAL}]},
        beside=TOOLS,
        bound=True,
    ),
    Case(
        name="tools that the service runs",
        adds={"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    ),
    Case(name="cascade", adds={"cascade": {"session": "mark"}}),
]

CONTENT = [
    Case(name="system in blocks", adds={"system": [{"type": "text", "text": "mark"}]}),
    Case(
        name="cache_control of a system block",
        adds={"system": [{"type": "text", "text": "x", **EPHEMERAL}]},
        beside={"system": [{"type": "text", "text": "x"}]},
        bound=True,
    ),
    Case(name="unknown field of a message", adds={"messages": [{**USER, "unheard_of": "mark"}]}),
    shows("image, inline", IMAGE),
    shows(
        "image, by address",
        {"type": "image", "source": {"type": "url", "url": "https://mark/a.png"}},
    ),
    shows(
        "document",
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
    ),
    Case(
        name="cache_control of a block",
        adds={"messages": [{"role": "user", "content": [{**TEXT, **EPHEMERAL}]}]},
        beside={"messages": [{"role": "user", "content": [TEXT]}]},
        bound=True,
    ),
    Case(
        name="tool calls and their results",
        adds={
            "messages": [
                USER,
                {"role": "assistant", "content": [{"type": "text", "text": "mark0"}, USE]},
                {"role": "user", "content": [RESULT]},
            ],
            **TOOLS,
        },
        beside=TOOLS,
    ),
    returns("tool result, is_error", is_error=True),
    returns("tool result with an image", content=[{"type": "text", "text": "mark2"}, IMAGE]),
    returns("cache_control of a tool result", bound=True, **EPHEMERAL),
    thinks("thinking, signed", {"type": "thinking", "thinking": "mark3", "signature": "mark4"}),
    thinks("thinking, redacted", {"type": "redacted_thinking", "data": "mark5"}),
]

MESSAGES = Endpoint(
    path="/v1/messages",
    title="Messages",
    body={"messages": [USER], "max_tokens": 5},
    cases=(
        *one_each(FIELDS, bound=BOUND),
        *MORE,
        *CONTENT,
        *server_cases(FIELDS),
    ),
    client_fields=frozenset(get_type_hints(MessageCreateParamsStreaming)),
    own=frozenset({"model", "messages", "stream", "cascade"}),
)
