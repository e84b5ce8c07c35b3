import pytest

from cascade.backends.scripted import Script
from cascade.types import Kind, Usage
from tests.apis import baseline
from tests.engines import FixedJudge
from tests.messages import ASK, call, lines

WEATHER = {
    "name": "weather",
    "description": "of a place",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}},
}


async def test_the_anthropic_client_gets_an_answer_and_headers_say_how(connect):
    service, ai = await connect()
    raw = await ai.messages.with_raw_response.create(model="cascade", **ASK)
    answer = await raw.parse()
    [result] = service.log.results
    assert answer.id == f"msg_{result.request.id}"
    assert (answer.type, answer.role, answer.model) == ("message", "assistant", "small-model")
    assert [(block.type, block.text) for block in answer.content] == [("text", "four")]
    assert (answer.stop_reason, answer.stop_sequence) == ("end_turn", None)
    headers = {n: v for n, v in raw.headers.items() if n.startswith("x-cascade")}
    assert float(headers.pop("x-cascade-overhead-ms")) > 0
    assert headers.pop("x-cascade-baseline-usd") == baseline(result)
    assert headers == {
        "x-cascade-request-id": result.request.id,
        "x-cascade-policy": "ladder",
        "x-cascade-tier": "small",
        "x-cascade-model": "small-model",
        "x-cascade-attempts": "1",
        "x-cascade-degraded": "false",
        "x-cascade-cost-usd": "0.000014",
    }


@pytest.mark.parametrize(
    ("reported", "told"),
    [
        (Usage(input=7, cache_read=3, cache_write={"5m": 2, "1h": 1}, output=4), (7, 3, 3, 4)),
        (Usage(input=7, output=4, reasoning=5), (7, 0, 0, 9)),
        (None, (0, 0, 0, 0)),
    ],
)
async def test_usage_counts_the_cache_apart_streamed_or_not(connect, reported, told):
    _, ai = await connect(small=[Script(text="a b", usage=reported)])
    whole = await ai.messages.create(model="cascade", **ASK)
    usages = [whole.usage]
    for model in ("cascade", "always-small"):
        async with ai.messages.stream(model=model, **ASK) as stream:
            usages.append((await stream.get_final_message()).usage)
    for usage in usages:
        assert told == (
            usage.input_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.output_tokens,
        )


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "tool_use"),
    ],
)
async def test_the_stop_reason_is_anthropics_streamed_or_not(connect, finish_reason, stop_reason):
    _, ai = await connect(small=[Script(text="a", finish_reason=finish_reason)])
    assert (await ai.messages.create(model="cascade", **ASK)).stop_reason == stop_reason
    async with ai.messages.stream(model="cascade", **ASK) as stream:
        assert (await stream.get_final_message()).stop_reason == stop_reason


@pytest.mark.parametrize("model", ["always-small", "cascade"])
async def test_a_streamed_answer_is_anthropics_events(connect, model):
    _, ai = await connect(small=["one two three"])
    events = [event async for event in await ai.messages.create(model=model, stream=True, **ASK)]
    assert [event.type for event in events] == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert events[0].message.model == "small-model"
    assert {event.index for event in events[1:6]} == {0}
    assert "".join(event.delta.text for event in events[2:5]) == "one two three"
    assert events[-2].usage.input_tokens == 10
    # Before a live answer begins its prompt's tokens are not known.
    assert events[0].message.usage.input_tokens == (0 if model == "always-small" else 10)


async def test_the_clients_own_stream_adds_up_to_the_answer(connect):
    _, ai = await connect(small=[Script(text="one two", tool_calls=[call()])])
    async with ai.messages.stream(model="cascade", **ASK) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        message = await stream.get_final_message()
    assert text == "one two"
    whole = await ai.messages.create(model="cascade", **ASK)
    assert message.content[0].text == whole.content[0].text
    assert message.content[1].to_dict() == whole.content[1].to_dict()
    assert message.stop_reason == whole.stop_reason == "tool_use"
    assert message.usage.output_tokens == whole.usage.output_tokens


async def test_a_stream_tells_in_a_comment_what_became_known_late(serve):
    headers, events = await lines(await serve())
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["x-cascade-tier"] == "small"
    [comment] = [event for event in events if event.startswith(": ")]
    assert "x-cascade-cost-usd=0.000014" in comment
    assert events[-2] == 'event: message_stop\ndata: {"type":"message_stop"}'


async def test_an_escalated_stream_has_only_the_accepted_text(serve):
    service = await serve(small=["wrong"], large=["right"], judge=FixedJudge(0.1))
    _, events = await lines(service)
    assert not any("wrong" in event for event in events)
    assert any("right" in event for event in events)
    kinds = [a.kind for a in service.log.results[0].attempts]
    assert kinds == [Kind.ANSWER, Kind.JUDGE, Kind.ANSWER]


RESULTS = [
    {"type": "tool_result", "tool_use_id": "c1", "content": "-3"},
    {
        "type": "tool_result",
        "tool_use_id": "c2",
        "is_error": True,
        "content": [{"type": "text", "text": "no such place"}],
    },
    {"type": "text", "text": "Well?"},
]


@pytest.mark.parametrize("stream", [True, False])
async def test_tools_are_called_and_their_results_come_back(connect, stream):
    tools = [call(), call('{"place": "Bergen"}', identity="c2")]
    service, ai = await connect(
        small=[Script(text="Let me look.", tool_calls=tools, finish_reason="tool_calls"), "cold"]
    )

    async def ask(messages):
        body = {"model": "cascade", "max_tokens": 50, "tools": [WEATHER], "messages": messages}
        if not stream:
            return await ai.messages.create(**body)
        async with ai.messages.stream(**body) as events:
            return await events.get_final_message()

    messages = [{"role": "user", "content": "How cold is it?"}]
    first = await ask(messages)
    assert first.stop_reason == "tool_use"
    uses = [block for block in first.content if block.type == "tool_use"]
    assert [(use.id, use.name, use.input) for use in uses] == [
        ("c1", "weather", {"place": "Oslo"}),
        ("c2", "weather", {"place": "Bergen"}),
    ]
    last = await ask(
        [
            *messages,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": RESULTS},
        ]
    )
    assert last.content[0].text == "cold"
    asked = service.backend("small").requests[-1]
    [tool] = asked.tools
    assert tool["type"] == "function"
    assert tool["function"] == {
        "name": "weather",
        "description": "of a place",
        "parameters": WEATHER["input_schema"],
    }
    assert asked.messages == [
        {"role": "user", "content": "How cold is it?"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [call('{"place":"Oslo"}'), call('{"place":"Bergen"}', identity="c2")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "-3"},
        {"role": "tool", "tool_call_id": "c2", "content": "The tool failed.\nno such place"},
        {"role": "user", "content": "Well?"},
    ]


CACHED = {"cache_control": {"type": "ephemeral"}}
LOOK = [
    {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
    },
    {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
    {"type": "text", "text": "look", **CACHED},
]


async def test_everything_the_client_said_reaches_the_model(connect):
    service, ai = await connect()
    await ai.messages.create(
        model="always-small",
        max_tokens=50,
        system=[{"type": "text", "text": "be brief", **CACHED}],
        messages=[{"role": "user", "content": LOOK}],
        tools=[WEATHER],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        stop_sequences=["x"],
        thinking={"type": "enabled", "budget_tokens": 1024},
        output_config={
            "effort": "low",
            "format": {"type": "json_schema", "schema": {"type": "object"}},
        },
        metadata={"user_id": "u"},
        extra_body={"temperature": 0.5, "top_k": 3, "top_p": 0.9, "unheard_of": {"a": [None]}},
    )
    [asked] = service.backend("small").requests
    assert asked.messages == [
        {"role": "system", "content": [{"type": "text", "text": "be brief", **CACHED}]},
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
                {"type": "text", "text": "look", **CACHED},
            ],
        },
    ]
    schema = {"name": "answer", "schema": {"type": "object"}, "strict": True}
    assert asked.params == {
        "max_tokens": 50,
        "stop": ["x"],
        "temperature": 0.5,
        "top_k": 3,
        "top_p": 0.9,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "low"},
        "response_format": {"type": "json_schema", "json_schema": schema},
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "user": "u",
        "unheard_of": {"a": [None]},
    }
    assert asked.session == "u"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("stream", [True, False])
async def test_reasoning_becomes_thinking_and_comes_back_as_reasoning(connect, field, stream):
    service, ai = await connect(small=[Script(text="four", extra={field: "2 and 2"})])
    if stream:
        async with ai.messages.stream(model="cascade", **ASK) as events:
            answer = await events.get_final_message()
    else:
        answer = await ai.messages.create(model="cascade", **ASK)
    thinking, text = answer.content
    assert (thinking.type, thinking.thinking, text.text) == ("thinking", "2 and 2", "four")
    turn = {"role": "assistant", "content": answer.content}
    await ai.messages.create(
        model="cascade", max_tokens=50, messages=[*ASK["messages"], turn, *ASK["messages"]]
    )
    assert service.backend("small").requests[-1].messages[1] == {
        "role": "assistant",
        "content": "four",
        "reasoning_content": "2 and 2",
    }


@pytest.mark.parametrize("stream", [True, False])
async def test_signed_and_redacted_thinking_come_and_go_as_they_are(connect, stream):
    pieces = [
        {"type": "thinking", "thinking": "2 "},
        {"type": "thinking", "thinking": "and 2"},
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d1"},
    ]
    signed = [
        {"type": "thinking", "thinking": "2 and 2", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d1"},
    ]
    extra = {"reasoning_content": "2 and 2", "thinking_blocks": pieces}
    service, ai = await connect(small=[Script(text="four", extra=extra)])
    if stream:
        async with ai.messages.stream(model="cascade", **ASK) as events:
            answer = await events.get_final_message()
    else:
        answer = await ai.messages.create(model="cascade", **ASK)
    assert [block.to_dict() for block in answer.content[:2]] == signed
    turn = {"role": "assistant", "content": answer.content}
    await ai.messages.create(
        model="cascade", max_tokens=50, messages=[*ASK["messages"], turn, *ASK["messages"]]
    )
    sent = service.backend("small").requests[-1].messages[1]
    assert sent == {"role": "assistant", "content": "four", "thinking_blocks": signed}
