"""The same prompt has the same bytes however its JSON was written, and another has others."""

import base64
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cascade.prefix import (
    answer_rendering,
    has_media,
    message_rendering,
    rendering,
    tool_renderings,
)
from cascade.prefix.canonical import MEDIUM_BYTES
from tests import builders

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"place": "Oslo"}'},
}
MARK = {"cache_control": {"type": "ephemeral"}}
PIXELS = bytes(range(256)) * 40
TEXTS = st.text(max_size=40)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool"]),
        "content": TEXTS
        | st.none()
        | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=3),
    }
)


def user(content, **fields):
    return {"role": "user", "content": content, **fields}


def text(value, **fields):
    return {"type": "text", "text": value, **fields}


def said(content=None, *calls, **fields):
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **fields}


def image(data=PIXELS, encode=base64.b64encode, kind="image/png", **fields):
    address = f"data:{kind};base64,{encode(data).decode()}"
    return user([{"type": "image_url", "image_url": {"url": address, **fields}}])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("hi"), {"content": "hi", "role": "user"}),
        (user("hi"), user([text("hi")])),
        (user("hi"), user([text("hi", **MARK)], **MARK)),
        (user("hi"), user("hi", name=None)),
        (said(None, CALL), said("", CALL)),
        (said(None, CALL), {"role": "assistant", "tool_calls": [CALL]}),
        (said("yes"), {"role": "assistant", "content": "yes", "tool_calls": None}),
        (said("", CALL), said("", {**dict(reversed(CALL.items())), "index": 0})),
        (
            said("", CALL),
            said("", {**CALL, "function": dict(reversed(CALL["function"].items()))}),
        ),
        (image(), image(encode=base64.encodebytes)),
        (image(), image(kind="image/jpeg")),
    ],
    ids=[
        *("keys", "parts", "marks", "no name", "null", "missing", "no calls", "call keys"),
        *("function keys", "wrapped base64", "media type"),
    ],
)
def test_what_no_model_sees_makes_no_difference(one, other):
    assert message_rendering(one) == message_rendering(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user("hi"), said("hi")),
        (user("hi"), user("hi ")),
        (user("hi"), user("hi", name="ann")),
        (user("hi\nyou"), user([text("hi"), text("you")])),
        (user([text("a"), text("b")]), user([text("b"), text("a")])),
        (said("", CALL), said("", {**CALL, "id": "c2"})),
        (said("", CALL), said("", CALL, CALL)),
        (
            said("", CALL),
            said("", {**CALL, "function": {"name": "weather", "arguments": '{"place":"Oslo"}'}}),
        ),
        (image(), image(PIXELS[1:])),
        (image(), image(detail="low")),
        (image(), user([{"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}])),
        (
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            {"role": "tool", "tool_call_id": "c2", "content": "rain"},
        ),
        (said("yes"), said("yes", reasoning_content="because")),
    ],
    ids=[
        *("role", "white space", "name", "parts", "order of parts", "call id", "two calls"),
        *("arguments", "image", "detail", "address", "whose result", "reasoning"),
    ],
)
def test_what_a_model_sees_makes_a_difference(one, other):
    assert message_rendering(one) != message_rendering(other)


def test_an_image_is_as_long_as_4000_bytes_of_text_however_large_it_is():
    empty = len(message_rendering(user([])))
    for shown in (image(b"1"), image(), image(PIXELS * 10)):
        assert len(message_rendering(shown)) - empty == MEDIUM_BYTES == 4000


def source(data, kind="base64"):
    """An image or a document in Anthropic's words."""
    return user([{"type": "document", "source": {"type": kind, "data": data}}])


def test_anthropics_images_are_known_by_their_bytes_and_encoded_anew_they_are_others():
    plain, wrapped, other = (
        message_rendering(source(each.decode()))
        for each in (
            *(base64.b64encode(PIXELS), base64.encodebytes(PIXELS)),
            base64.b64encode(PIXELS + b"\0"),
        )
    )
    assert plain == wrapped != other


def test_a_large_image_is_known_by_all_of_its_bytes_however_it_is_wrapped():
    large = bytes(range(256)) * 1000
    plain, wrapped, other = (
        message_rendering(image(data, encode))
        for data, encode in (
            (large, base64.b64encode),
            (large, base64.encodebytes),
            (large[:-1] + b"\0", base64.b64encode),
        )
    )
    assert plain == wrapped != other


def test_data_that_is_no_base64_counts_letter_by_letter():
    one, other = (message_rendering(source(each, "text")) for each in ("a-b, c!", "ab c"))
    assert one != other


def test_tools_keep_their_order_and_that_of_their_keys():
    other = {"type": "function", "function": {"name": "news", "parameters": {}}}
    turned = {"function": TOOL["function"], "type": "function"}
    asked = [builders.request(tools=each) for each in ([TOOL, other], [other, TOOL], [turned])]
    assert len({rendering(each) for each in asked}) == 3
    [straight], [reversed_] = (
        tool_renderings(builders.request(tools=[each]), ordered=False) for each in (TOOL, turned)
    )
    assert straight == reversed_


def test_marks_for_a_providers_cache_are_no_part_of_a_tool():
    marked = [
        {**TOOL, **MARK},
        {**TOOL, "function": {**TOOL["function"], **MARK}},
    ]
    plain = rendering(builders.request(tools=[TOOL]))
    assert [rendering(builders.request(tools=[each])) for each in marked] == [plain, plain]


def test_a_parameter_of_a_tool_may_be_called_like_a_mark():
    named = {**TOOL, "function": {"name": "f", "parameters": {"properties": MARK}}}
    assert b"cache_control" in rendering(builders.request(tools=[named]))


def test_older_clients_functions_and_the_answers_schema_stand_with_the_tools():
    plain = builders.request()
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}
    for params in ({"functions": [TOOL["function"]]}, {"response_format": schema}):
        assert rendering(replace(plain, params=params)).endswith(rendering(plain))
        assert rendering(replace(plain, params=params)) != rendering(plain)
    for params in ({"temperature": 0.3}, {"response_format": {"type": "text"}}):
        assert rendering(replace(plain, params=params)) == rendering(plain)


@given(st.lists(MESSAGES, max_size=4), st.lists(MESSAGES, max_size=4))
def test_only_the_same_prompts_have_the_same_bytes(one, other):
    def seen(messages):
        return [(m["role"], _texts(m["content"])) for m in messages]

    mine, its = (rendering(builders.request(messages=each)) for each in (one, other))
    assert (mine == its) == (seen(one) == seen(other))


def _texts(content):
    texts = [part["text"] for part in content] if isinstance(content, list) else [content or ""]
    return texts or [""]


@given(st.lists(MESSAGES, max_size=4), MESSAGES)
def test_a_prompt_that_goes_on_begins_with_what_it_goes_on_from(messages, more):
    short, long = (builders.request(messages=each) for each in (messages, [*messages, more]))
    assert rendering(long) == rendering(short) + message_rendering(more)


def test_an_answer_adds_what_the_client_sends_back():
    answered = builders.completion("It rains.")
    assert answer_rendering(answered) == message_rendering(said("It rains."))
    [choice] = answered.choices
    called = replace(answered, choices=[replace(choice, text="", tool_calls=[CALL])])
    assert answer_rendering(called) == message_rendering(said(None, CALL))


@pytest.mark.parametrize(
    "odd",
    [
        user(7),
        user(["a", 7, None, {"no": "type"}]),
        user("\ud800"),
        user([{"type": "image_url", "image_url": {"url": "data:nonsense"}}]),
        user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,???"}}]),
        user([{"type": "image_url"}]),
        user([{"type": ["image"], "text": 3}]),
        user([{"type": "tool_result", "content": [text("x"), image()["content"][0]]}]),
        {"content": "hi"},
        said("", "no call", {"id": "c"}, {"function": {"arguments": {"place": "Oslo"}}}),
    ],
)
def test_what_no_client_should_send_is_rendered_all_the_same(odd):
    assert message_rendering(odd) == message_rendering(odd)
    assert message_rendering(odd) != message_rendering(user("hi"))


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (user("hi"), False),
        (user([text("hi"), "there", None]), False),
        ({"role": "user"}, False),
        (image(), True),
        (user([{"type": "tool_result", "content": [image()["content"][0]]}]), True),
        (user([{"type": "input_audio", "input_audio": {"data": "AAAA"}}]), True),
    ],
)
def test_media_are_found_wherever_they_are(message, found):
    assert has_media(builders.request(messages=[user("first"), message])) is found
