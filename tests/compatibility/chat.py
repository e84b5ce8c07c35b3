"""POST /v1/chat/completions: every field of OpenAI's API, and what open servers add."""

from typing import get_type_hints

from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

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
FUNCTION = {"name": "f", "description": "mark", "parameters": OBJECT}
TOOL = {"type": "function", "function": FUNCTION}
TOOLS = {"tools": [TOOL]}
CALL = {"id": "mark1", "type": "function", "function": {"name": "f", "arguments": '{"a":"mark3"}'}}
SCHEMA = {"name": "s", "schema": OBJECT, "strict": True}
BOUND = frozenset({"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"})

FIELDS = {
    "audio": {"voice": "mark", "format": "wav"},
    "frequency_penalty": 0.5,
    "functions": [FUNCTION],
    "logit_bias": {"5": 1},
    "logprobs": True,
    "max_completion_tokens": 7,
    "max_tokens": 7,
    "metadata": {"mark": "mark"},
    "modalities": ["text"],
    "moderation": {"model": "mark"},
    "n": 2,
    "prediction": {"type": "content", "content": "mark"},
    "presence_penalty": 0.5,
    "prompt_cache_key": "mark",
    "prompt_cache_options": {"mode": "mark"},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "response_format": {"type": "json_schema", "json_schema": SCHEMA},
    "safety_identifier": "mark",
    "seed": 7,
    "service_tier": "flex",
    "stop": ["mark"],
    "store": True,
    "stream": True,
    "temperature": 0.5,
    "tools": [TOOL],
    "top_p": 0.5,
    "user": "mark",
    "verbosity": "low",
    "web_search_options": {"search_context_size": "low"},
}

MORE = [
    Case(name="function_call", adds={"function_call": "auto"}, beside={"functions": [FUNCTION]}),
    Case(name="parallel_tool_calls", adds={"parallel_tool_calls": False}, beside=TOOLS),
    Case(
        name="stream_options",
        adds={"stream_options": {"include_usage": True}},
        beside={"stream": True},
    ),
    Case(name="tool_choice", adds={"tool_choice": "required"}, beside=TOOLS),
    Case(
        name="tool_choice, a named tool",
        adds={"tool_choice": {"type": "function", "function": {"name": "f"}}},
        beside=TOOLS,
    ),
    Case(name="top_logprobs", adds={"top_logprobs": 2}, beside={"logprobs": True}),
    Case(name="response_format, json_object", adds={"response_format": {"type": "json_object"}}),
    Case(
        name="tools, strict",
        adds={"tools": [{"type": "function", "function": {**FUNCTION, "strict": True}}]},
        beside=TOOLS,
    ),
    Case(
        name="tools, cache_control",
        adds={"tools": [{**TOOL, **EPHEMERAL}]},
        beside=TOOLS,
        bound=True,
    ),
    Case(
        name="cascade",
        adds={"cascade": {"session": "mark"}},
    ),
]


TEXT = {"type": "text", "text": "hi"}


def says(name: str, *messages: dict[str, object]) -> Case:
    return Case(name=name, adds={"messages": [USER, *messages]}, beside=TOOLS)


def shows(name: str, part: dict[str, object]) -> Case:
    return Case(
        name=name,
        adds={"messages": [{"role": "user", "content": [TEXT, part]}]},
        beside={"messages": [{"role": "user", "content": [TEXT]}]},
    )


RESULT = {"role": "tool", "tool_call_id": "mark1", "content": "mark2"}
CALLED = {"role": "assistant", "content": "mark0", "tool_calls": [CALL]}
ANSWERED = {"role": "assistant", "content": "ok"}
SIGNED = [{"type": "thinking", "thinking": "mark3", "signature": "mark4"}]


def thinks(name: str, **fields: object) -> Case:
    return Case(
        name=name,
        adds={"messages": [USER, {**ANSWERED, **fields}, USER]},
        beside={"messages": [USER, ANSWERED, USER]},
        bound=True,
    )


MESSAGES = [
    Case(name="system message", adds={"messages": [{"role": "system", "content": "mark"}, USER]}),
    Case(
        name="developer message",
        adds={"messages": [{"role": "developer", "content": "mark"}, USER]},
    ),
    Case(name="name of a message", adds={"messages": [{**USER, "name": "mark"}]}),
    Case(name="unknown field of a message", adds={"messages": [{**USER, "unheard_of": "mark"}]}),
    Case(
        name="content in parts",
        adds={"messages": [{"role": "user", "content": [{"type": "text", "text": "mark"}]}]},
    ),
    shows(
        "image, inline",
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
    ),
    shows("image, by address", {"type": "image_url", "image_url": {"url": "https://mark/a.png"}}),
    shows("audio part", {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}),
    shows(
        "file, inline",
        {
            "type": "file",
            "file": {"filename": "mark.pdf", "file_data": "data:application/pdf;base64,AAAA"},
        },
    ),
    Case(
        name="cache_control of a part",
        adds={"messages": [{"role": "user", "content": [{**TEXT, **EPHEMERAL}]}]},
        beside={"messages": [{"role": "user", "content": [TEXT]}]},
        bound=True,
    ),
    says("tool calls and their results", CALLED, RESULT),
    Case(
        name="content null beside tool calls",
        adds={"messages": [USER, {**CALLED, "content": None}, RESULT], **TOOLS},
        beside={"messages": [USER, CALLED, RESULT], **TOOLS},
    ),
    Case(
        name="refusal of an earlier answer",
        adds={"messages": [USER, {**ANSWERED, "refusal": "mark"}, USER]},
        beside={"messages": [USER, ANSWERED, USER]},
    ),
    says("result of a function", {"role": "function", "name": "f", "content": "mark"}),
    thinks("reasoning_content", reasoning_content="mark"),
    thinks("thinking_blocks, signed", thinking_blocks=SIGNED),
]

CHAT = Endpoint(
    path="/v1/chat/completions",
    title="Chat completions",
    body={"messages": [USER]},
    cases=(*one_each(FIELDS, bound=BOUND), *MORE, *MESSAGES, *server_cases(FIELDS)),
    client_fields=frozenset(get_type_hints(CompletionCreateParamsStreaming)),
    own=frozenset({"model", "messages", "stream", "stream_options", "cascade"}),
)
