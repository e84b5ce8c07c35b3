import orjson
import pytest

from cascade.errors import RequestError
from serving.messages.request import parse

ASK = [{"role": "user", "content": "hi"}]


def parsed(headers=None, **change):
    body = {"model": "cascade", "max_tokens": 9, "messages": ASK, **change}
    return parse(orjson.dumps(body), headers or {}, "r1")


def user(*blocks):
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def assistant(*blocks):
    return {"messages": [*ASK, {"role": "assistant", "content": list(blocks)}]}


def image(**source):
    return {"type": "image", "source": source}


def result(**fields):
    return {"type": "tool_result", "tool_use_id": "c1", **fields}


TOOL = {"name": "f", "input_schema": {}}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [5]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"temperature": 1.5}, "temperature"),
        ({"top_p": 2}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"stream": "yes"}, "stream"),
        ({"stop_sequences": "x"}, "stop_sequences"),
        ({"thinking": True}, "thinking"),
        ({"metadata": {"user_id": 5}}, "metadata.user_id"),
        ({"output_config": {"format": {"type": "json"}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"system": 5}, "system"),
        ({"system": []}, "system"),
        ({"system": [{"type": "text", "text": "a"}, image()]}, "system[1].type"),
        (user({"text": "x"}), "messages[0].content[0].type"),
        (user({"type": "text"}), "messages[0].content[0].text"),
        (user({"type": "document"}), "messages[0].content[0].type"),
        (user({"type": "tool_use"}), "messages[0].content[0].type"),
        (user({"type": "image"}), "messages[0].content[0].source"),
        (user(image()), "messages[0].content[0].source.type"),
        (user(image(type="file", file_id="x")), "messages[0].content[0].source.type"),
        (user(image(type="url")), "messages[0].content[0].source.url"),
        (user(image(type="base64", data="A")), "messages[0].content[0].source.media_type"),
        (user(image(type="base64", media_type="a/b")), "messages[0].content[0].source.data"),
        (user({"type": "tool_result"}), "messages[0].content[0].tool_use_id"),
        (user(result(is_error="no")), "messages[0].content[0].is_error"),
        (
            user(result(content=[{"type": "text", "text": "a"}, {"type": "document"}])),
            "messages[0].content[0].content[1].type",
        ),
        (assistant(image()), "messages[1].content[0].type"),
        (assistant(result()), "messages[1].content[0].type"),
        (assistant({"type": "server_tool_use"}), "messages[1].content[0].type"),
        (assistant({"type": "thinking"}), "messages[1].content[0].thinking"),
        (assistant({"type": "redacted_thinking"}), "messages[1].content[0].data"),
        (
            assistant({"type": "tool_use", "id": "c1", "name": "f", "input": "{}"}),
            "messages[1].content[0].input",
        ),
        (assistant({"type": "tool_use", "name": "f", "input": {}}), "messages[1].content[0].id"),
        ({"tools": {}}, "tools"),
        ({"tools": [TOOL, {"name": "g"}]}, "tools[1].input_schema"),
        ({"tools": [{"input_schema": {}}]}, "tools[0].name"),
        ({"tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}]}, "tools[1].type"),
        ({"tools": [{**TOOL, "type": ["custom"]}]}, "tools[0].type"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"n": 2}, "n"),
        ({"stop": ["x"]}, "stop"),
        ({"user": "u"}, "user"),
        ({"logprobs": True}, "logprobs"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_what_is_wrong_or_cannot_be_translated_is_named_by_its_path(change, field):
    with pytest.raises(RequestError) as caught:
        parsed(**change)
    assert caught.value.param == field
    assert caught.value.message.startswith(f"{field}: ")
    assert caught.value.status == 400


def test_a_body_without_max_tokens_is_told_so():
    with pytest.raises(RequestError, match="max_tokens: "):
        parse(orjson.dumps({"model": "cascade", "messages": ASK}), {}, "r1")


def written(depth):
    """Whether a tool with a schema so deep is taken; what is taken must be writable again."""
    schema = b'{"a":' * depth + b"1" + b"}" * depth
    body = orjson.dumps({"model": "cascade", "max_tokens": 9, "messages": ASK})
    body = body[:-1] + b',"tools":[{"name":"f","input_schema":' + schema + b"}]}"
    try:
        request = parse(body, {}, "r1").request
    except RequestError:
        return False
    orjson.dumps({"tools": request.tools})
    return True


def test_what_is_taken_can_be_written_again_for_the_model():
    taken = [written(depth) for depth in range(240, 260)]
    assert taken == sorted(taken, reverse=True)
    assert (taken[0], taken[-1]) == (True, False)


@pytest.mark.parametrize(
    ("choice", "fields"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        (
            {"type": "tool", "name": "f"},
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        ),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
        ({"type": "auto", "disable_parallel_tool_use": False}, {"tool_choice": "auto"}),
    ],
)
def test_a_tool_choice_is_openais(choice, fields):
    request = parsed(tools=[TOOL], tool_choice=choice).request
    assert request.params == {"max_tokens": 9, **fields}


def test_a_tool_keeps_what_cascade_does_not_know():
    mark = {"cache_control": {"type": "ephemeral"}, "defer_loading": True}
    request = parsed(tools=[{"type": "custom", **TOOL, "strict": True, **mark}]).request
    function = {"name": "f", "parameters": {}, "strict": True}
    assert request.tools == [{**mark, "type": "function", "function": function}]


def test_a_call_alone_has_null_content_and_an_empty_turn_an_empty_text():
    mark = {"cache_control": {"type": "ephemeral"}}
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": [1, None]}, **mark}
    messages = [*assistant(call)["messages"], {"role": "assistant", "content": []}]
    function = {"name": "f", "arguments": '{"a":[1,null]}'}
    assert parsed(messages=messages).request.messages[1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**mark, "id": "c1", "type": "function", "function": function}],
        },
        {"role": "assistant", "content": ""},
    ]


def test_tool_results_are_messages_before_the_text_wherever_they_stood():
    mark = {"cache_control": {"type": "ephemeral"}}
    picture = image(type="url", url="https://a/b.png")
    said = {"type": "text", "text": "and?"}
    blocks = [
        result(content=[{"type": "text", "text": "see"}, picture], **mark),
        said,
        said,
        result(tool_use_id="c2"),
        result(tool_use_id="c3", is_error=True),
        result(tool_use_id="c4", is_error=True, content="no file"),
        result(tool_use_id="c5", is_error=True, content=[picture]),
    ]
    shown = {"type": "image_url", "image_url": {"url": "https://a/b.png"}}
    assert parsed(**user(*blocks)).request.messages == [
        {
            **mark,
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "see"}, shown],
        },
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "tool", "tool_call_id": "c3", "content": "The tool failed."},
        {"role": "tool", "tool_call_id": "c4", "content": "The tool failed.\nno file"},
        {
            "role": "tool",
            "tool_call_id": "c5",
            "content": [{"type": "text", "text": "The tool failed."}, shown],
        },
        {"role": "user", "content": [said, said]},
    ]


def test_a_system_prompt_is_the_first_message_and_may_come_again_later():
    request = parsed(
        system=[{"type": "text", "text": "be brief"}],
        messages=[*ASK, {"role": "system", "content": "be briefer"}],
    ).request
    assert request.messages == [
        {"role": "system", "content": "be brief"},
        *ASK,
        {"role": "system", "content": "be briefer"},
    ]


def test_session_and_tenant_follow_the_same_rules_as_a_chat_completion():
    headers = {"x-cascade-session": "s", "x-cascade-tenant": "t"}
    request = parsed(headers, metadata={"user_id": "u"}).request
    assert (request.session, request.tenant) == ("s", "t")
    assert parsed(metadata={"user_id": "u"}).request.session == "u"
    answered = [*ASK, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "so?"}]
    first, later = parsed(system="a"), parsed(system="a", messages=answered)
    assert first.request.session == later.request.session
    assert first.request.session != parsed(system="b").request.session


def test_other_metadata_is_kept_as_tags():
    request = parsed(metadata={"user_id": "u", "team": "red"}).request
    assert request.tags == {"team": "red"}
    assert request.params == {"max_tokens": 9, "user": "u", "metadata": {"team": "red"}}
