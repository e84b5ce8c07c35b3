import orjson
import pytest

from cascade.errors import RequestError
from serving.responses.request import parse

ASK = "hi"
TOOL = {"type": "function", "name": "f", "parameters": {}}


def parsed(headers=None, **change):
    body = {"model": "cascade", "input": ASK, **change}
    return parse(orjson.dumps(body), headers or {}, "r1")


def items(*given):
    return {"input": list(given)}


def user(*parts):
    return items({"role": "user", "content": list(parts)})


def assistant(*parts):
    return items({"role": "assistant", "content": list(parts)})


def result(**fields):
    return {"type": "function_call_output", "call_id": "c1", **fields}


def invocation(**fields):
    return {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", **fields}


STATEFUL = [
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"conversation": {"id": "conv_1"}}, "conversation"),
    ({"background": True}, "background"),
    ({"prompt": {"id": "pmpt_1"}}, "prompt"),
    ({"context_management": [{"type": "compaction"}]}, "context_management"),
    (items({"type": "item_reference", "id": "msg_1"}), "input[0].type"),
    (items({"role": "user", "content": "x"}, {"id": "msg_1"}), "input[1].type"),
    (user({"type": "input_image", "file_id": "file_1"}), "input[0].content[0].file_id"),
    (user({"type": "input_file", "file_id": "file_1"}), "input[0].content[0].file_id"),
]
HOSTED = [
    ({"tools": [TOOL, {"type": kind}]}, "tools[1].type")
    for kind in (
        "web_search",
        "file_search",
        "code_interpreter",
        "mcp",
        "computer",
        "image_generation",
        "custom",
    )
]
MISTAKEN = [
    ({"model": None}, "model"),
    ({"model": ""}, "model"),
    ({"input": None}, "input"),
    ({"input": 5}, "input"),
    ({"input": []}, "input"),
    ({"input": [5]}, "input"),
    ({"instructions": 5}, "instructions"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"max_output_tokens": "9"}, "max_output_tokens"),
    ({"temperature": 2.5}, "temperature"),
    ({"top_p": 2}, "top_p"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"stream": "yes"}, "stream"),
    ({"store": "yes"}, "store"),
    ({"user": 5}, "user"),
    ({"metadata": "x"}, "metadata"),
    ({"truncation": "auto"}, "truncation"),
    ({"truncation": "some"}, "truncation"),
    ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
    ({"include": ["file_search_call.results"]}, "include[0]"),
    ({"text": {"format": {}}}, "text.format.type"),
    ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ({"text": {"voice": "x"}}, "text.voice"),
    ({"reasoning": {"effort": 5}}, "reasoning.effort"),
    ({"reasoning": {"mode": "pro"}}, "reasoning.mode"),
    ({"tools": {}}, "tools"),
    ({"tools": [TOOL, {"name": "g"}]}, "tools[1].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].name"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
    ({"tools": [{**TOOL, "parameters": "x"}]}, "tools[0].parameters"),
    ({"tools": [{**TOOL, "type": ["function"]}]}, "tools[0].type"),
    ({"tool_choice": "any"}, "tool_choice"),
    ({"tool_choice": {"type": "web_search_preview"}}, "tool_choice.type"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "auto"}}, "tool_choice.tools"),
    (
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp"}]}},
        "tool_choice.tools[0].type",
    ),
    ({"messages": [{"role": "user"}]}, "messages"),
    ({"max_tokens": 5}, "max_tokens"),
    ({"max_completion_tokens": 5}, "max_completion_tokens"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"reasoning_effort": "low"}, "reasoning_effort"),
    ({"logprobs": True}, "logprobs"),
    ({"n": 2}, "n"),
    (items({"role": "tool", "content": "x"}), "input[0].role"),
    (items({"role": "user"}), "input[0].content"),
    (items({"type": "message", "content": "x"}), "input[0].role"),
    (items({"type": "web_search_call", "id": "ws_1"}), "input[0].type"),
    (items({"type": ["message"]}), "input[0].type"),
    (items(result(call_id=None, output="x")), "input[0].call_id"),
    (items(result()), "input[0].output"),
    (items(result(output=[{"type": "output_text", "text": "x"}])), "input[0].output[0].type"),
    (items(invocation(arguments={})), "input[0].arguments"),
    (items(invocation(name="")), "input[0].name"),
    (items({"type": "reasoning", "content": "x"}), "input[0].content"),
    (items({"type": "reasoning", "summary": []}), "input"),
    (user(), "input[0].content"),
    (user({"text": "x"}), "input[0].content[0].type"),
    (user({"type": "text", "text": "x"}), "input[0].content[0].type"),
    (user({"type": "output_text", "text": "x"}), "input[0].content[0].type"),
    (user({"type": "input_text"}), "input[0].content[0].text"),
    (user({"type": "input_image"}), "input[0].content[0].image_url"),
    (user({"type": "input_image", "image_url": {"url": "x"}}), "input[0].content[0].image_url"),
    (user({"type": "input_file"}), "input[0].content[0].file_data"),
    (user({"type": "input_file", "file_url": "https://a"}), "input[0].content[0].file_url"),
    (user({"type": "input_audio"}), "input[0].content[0].type"),
    (assistant({"type": "input_text", "text": "x"}), "input[0].content[0].type"),
    (assistant({"type": "refusal"}), "input[0].content[0].refusal"),
]


@pytest.mark.parametrize(("change", "field"), [*STATEFUL, *HOSTED, *MISTAKEN])
def test_what_is_wrong_or_cannot_be_translated_is_named_by_its_path(change, field):
    with pytest.raises(RequestError) as caught:
        parsed(**change)
    assert caught.value.param == field
    assert caught.value.message.startswith(f"{field}: ")
    assert caught.value.status == 400


@pytest.mark.parametrize(("change", "field"), STATEFUL)
def test_what_would_have_to_be_stored_says_what_to_do_instead(change, field):
    with pytest.raises(RequestError, match=r": (send|leave)"):
        parsed(**change)


@pytest.mark.parametrize(
    "field",
    ["previous_response_id", "conversation", "prompt", "background", "tools", "text", "reasoning"],
)
def test_a_field_that_is_null_says_nothing(field):
    assert parsed(**{field: None}).request.params == {}


def test_what_is_off_anyway_is_taken():
    off = {"background": False, "store": True, "truncation": "disabled", "max_tool_calls": 3}
    assert parsed(**off).request.params == {}


DEEP = [
    b'"tools":[{"type":"function","name":"f","parameters":%s}]',
    b'"metadata":%s',
    b'"reasoning":{"summary":%s}',
]


def written(field, depth):
    """Whether a field so deep is taken; what is taken must be writable again."""
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    body = orjson.dumps({"model": "cascade", "input": ASK})
    try:
        request = parse(body[:-1] + b"," + field % deep + b"}", {}, "r1").request
    except RequestError:
        return False
    orjson.dumps({**request.params, "tools": request.tools})
    orjson.dumps({"response": request.asked})
    return True


@pytest.mark.parametrize("field", DEEP)
def test_what_is_taken_can_be_written_again_for_the_model_and_for_the_client(field):
    taken = [written(field, depth) for depth in range(240, 260)]
    assert taken == sorted(taken, reverse=True)
    assert (taken[0], taken[-1]) == (True, False)


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}],
            },
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "f"}}],
                },
            },
        ),
    ],
)
def test_a_tool_choice_is_that_of_a_chat_completion(choice, told):
    assert parsed(tools=[TOOL], tool_choice=choice).request.params == {"tool_choice": told}


def test_without_tools_what_says_nothing_about_them_is_left_out():
    request = parsed(tools=[], tool_choice="auto", parallel_tool_calls=True).request
    assert (request.tools, request.params) == (None, {})
    assert parsed(tool_choice="required").request.params == {"tool_choice": "required"}


def test_a_tool_keeps_what_cascade_does_not_know_and_loses_what_is_null():
    mark = {"cache_control": {"type": "ephemeral"}}
    given = {**TOOL, "strict": None, "description": None, **mark}
    function = {"name": "f", "parameters": {}}
    assert parsed(tools=[given]).request.tools == [
        {**mark, "type": "function", "function": function}
    ]


def test_a_json_schema_keeps_name_description_and_strictness():
    form = {"name": "a", "schema": {"type": "object"}, "description": "d", "strict": True}
    request = parsed(text={"format": {"type": "json_schema", **form}}).request
    assert request.params == {"response_format": {"type": "json_schema", "json_schema": form}}
    assert parsed(text={"format": {"type": "text"}}).request.params == {}


def test_session_and_tenant_follow_the_same_rules_as_a_chat_completion():
    headers = {"x-cascade-session": "s", "x-cascade-tenant": "t"}
    request = parsed(headers, user="u").request
    assert (request.session, request.tenant) == ("s", "t")
    assert parsed(user="u").request.session == "u"
    grown = [
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "so?"},
    ]
    first, later = parsed(instructions="a"), parsed(instructions="a", input=grown)
    assert first.request.session == later.request.session
    assert first.request.session != parsed(instructions="b").request.session
