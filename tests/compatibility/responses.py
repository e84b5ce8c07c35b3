"""POST /v1/responses: every field of OpenAI's newer API, and what open servers add."""

from typing import get_type_hints

from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

from tests.compatibility.case import OBJECT, PICTURE, Case, Endpoint, one_each, server_cases

SAID = {"type": "message", "role": "user", "content": "hi"}
TOOL = {"type": "function", "name": "f", "description": "mark", "parameters": OBJECT}
TOOLS = {"tools": [TOOL]}
CALL = {"type": "function_call", "call_id": "mark1", "name": "f", "arguments": '{"a":"mark3"}'}
RESULT = {"type": "function_call_output", "call_id": "mark1", "output": "mark2"}
LOGPROBS = {"include": ["message.output_text.logprobs"]}
FORMAT = {"type": "json_schema", "name": "s", "schema": OBJECT, "strict": True}

FIELDS = {
    "access_programs": ["mark"],
    "background": True,
    "background_options": {"mark": "mark"},
    "context_management": [{"type": "compaction"}],
    "conversation": "mark",
    "image": {"mark": "mark"},
    "instructions": "mark",
    "max_output_tokens": 7,
    "max_tool_calls": 3,
    "metadata": {"mark": "mark"},
    "moderation": {"model": "mark"},
    "previous_response_id": "mark",
    "prompt": {"id": "mark"},
    "prompt_cache_key": "mark",
    "prompt_cache_options": {"mode": "mark"},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "low"},
    "safety_identifier": "mark",
    "service_tier": "flex",
    "store": True,
    "stream": True,
    "temperature": 0.5,
    "text": {"format": FORMAT},
    "tools": [TOOL],
    "top_p": 0.5,
    "user": "mark",
    "n": 2,
    "messages": [{"role": "user", "content": "hi"}],
    "response_format": {"type": "json_object"},
    "seed": 7,
    "stop": ["mark"],
}
BOUND = frozenset({"prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"})

MORE = [
    Case(name="include, log probabilities", adds=LOGPROBS),
    Case(name="include, encrypted reasoning", adds={"include": ["reasoning.encrypted_content"]}),
    Case(name="include, anything else", adds={"include": ["file_search_call.results"]}),
    Case(name="parallel_tool_calls", adds={"parallel_tool_calls": False}, beside=TOOLS),
    Case(name="reasoning.summary", adds={"reasoning": {"summary": "auto"}}),
    Case(
        name="stream_options.include_obfuscation",
        adds={"stream_options": {"include_obfuscation": True}},
        beside={"stream": True},
    ),
    Case(name="text.verbosity", adds={"text": {"verbosity": "low"}}),
    Case(name="text.format, json_object", adds={"text": {"format": {"type": "json_object"}}}),
    Case(name="tool_choice", adds={"tool_choice": "required"}, beside=TOOLS),
    Case(
        name="tool_choice, a named tool",
        adds={"tool_choice": {"type": "function", "name": "f"}},
        beside=TOOLS,
    ),
    Case(name="tools, strict", adds={"tools": [{**TOOL, "strict": True}]}, beside=TOOLS),
    Case(name="tools that the service runs", adds={"tools": [{"type": "web_search"}]}),
    Case(name="top_logprobs", adds={"top_logprobs": 2}, beside=LOGPROBS),
    Case(name="truncation, auto", adds={"truncation": "auto"}),
    Case(name="truncation, disabled", adds={"truncation": "disabled"}),
    Case(name="cascade", adds={"cascade": {"session": "mark"}}),
]


def says(name: str, *items: dict[str, object], bound: bool = False) -> Case:
    beside = {"input": [SAID], **TOOLS}
    return Case(name=name, adds={"input": [SAID, *items]}, beside=beside, bound=bound)


def shows(name: str, part: dict[str, object]) -> Case:
    def input_of(*parts: dict[str, object]) -> dict[str, object]:
        text = {"type": "input_text", "text": "hi"}
        return {"input": [{"role": "user", "content": [text, *parts]}]}

    return Case(name=name, adds=input_of(part), beside=input_of())


ITEMS = [
    Case(name="input as items", adds={"input": [{"role": "user", "content": "mark"}]}),
    says("developer message", {"role": "developer", "content": "mark"}, SAID),
    says(
        "earlier answer",
        {"role": "assistant", "content": [{"type": "output_text", "text": "mark"}]},
        SAID,
    ),
    says("tool calls and their results", CALL, RESULT),
    says(
        "reasoning, as text",
        {
            "type": "reasoning",
            "id": "r",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "mark"}],
        },
        {"role": "assistant", "content": "ok"},
        bound=True,
    ),
    says("item_reference", {"type": "item_reference", "id": "mark"}),
    shows(
        "image, inline",
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
    ),
    shows("image, by address", {"type": "input_image", "image_url": "https://mark/a.png"}),
    shows("image, by file id", {"type": "input_image", "file_id": "mark"}),
    shows(
        "file, inline",
        {
            "type": "input_file",
            "filename": "mark.pdf",
            "file_data": "data:application/pdf;base64,AAAA",
        },
    ),
]

RESPONSES = Endpoint(
    path="/v1/responses",
    title="Responses",
    body={"input": "hi"},
    cases=(
        *one_each(FIELDS, bound=BOUND),
        *MORE,
        *ITEMS,
        *server_cases(FIELDS),
    ),
    client_fields=frozenset(get_type_hints(ResponseCreateParamsStreaming)),
    own=frozenset({"model", "input", "stream", "stream_options", "store", "cascade"}),
)
