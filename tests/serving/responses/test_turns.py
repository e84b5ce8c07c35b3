"""Conversations of several turns, whose answers go back as they came."""

import pytest

from cascade.backends.scripted import Script
from tests.responses import ASK, WEATHER, answer_of, answering, call


@pytest.mark.parametrize("stream", [True, False])
async def test_functions_are_called_and_their_results_come_back(connect, stream):
    calls = [call(), call('{"place": "Bergen"}', identity="c2")]
    service, ai = await connect(
        small=[Script(text="Let me look.", tool_calls=calls, finish_reason="tool_calls"), "cold"]
    )
    asked = [{"role": "user", "content": "How cold is it?"}]
    first = await answer_of(ai, stream, input=asked, tools=[WEATHER], parallel_tool_calls=True)
    assert first.status == "completed"
    uses = [item for item in first.output if item.type == "function_call"]
    assert [(use.call_id, use.name, use.arguments, use.status) for use in uses] == [
        ("c1", "weather", '{"place": "Oslo"}', "completed"),
        ("c2", "weather", '{"place": "Bergen"}', "completed"),
    ]
    assert len({item.id for item in first.output}) == 3
    results = [
        {"type": "function_call_output", "call_id": "c1", "output": "-3"},
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "-5"}],
        },
        {"role": "user", "content": "Well?"},
    ]
    last = await answer_of(ai, stream, input=[*asked, *first.output, *results], tools=[WEATHER])
    assert last.output_text == "cold"
    sent = service.backend("small").requests[-1]
    function = {name: WEATHER[name] for name in ("name", "description", "parameters", "strict")}
    assert sent.tools == [{"type": "function", "function": function}]
    assert sent.messages == [
        *asked,
        {"role": "assistant", "content": "Let me look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "-3"},
        {"role": "tool", "tool_call_id": "c2", "content": "-5"},
        {"role": "user", "content": "Well?"},
    ]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_function_called_without_arguments_has_an_empty_object_of_them(connect, stream):
    _, ai = await connect(small=[Script(text="", tool_calls=[call("")])])
    answer = await answer_of(ai, stream, model="always-small", tools=[WEATHER])
    assert answer.output[0].arguments == "{}"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_is_a_part_of_its_own_and_goes_back_as_text(connect, stream):
    service, ai = await connect()
    answering(service, {"delta": {"refusal": "I will"}}, {"delta": {"refusal": " not"}})
    answer = await answer_of(ai, stream, model="always-small")
    [message] = answer.output
    assert message.content[0].to_dict() == {"type": "refusal", "refusal": "I will not"}
    said = [*user(), *answer.output, *user()]
    await ai.responses.create(model="always-small", input=said)
    sent = service.backend("small").requests[-1].messages[1]
    assert sent == {"role": "assistant", "content": "I will not"}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("stream", [True, False])
async def test_reasoning_is_an_item_and_comes_back_as_reasoning(connect, field, stream):
    service, ai = await connect(small=[Script(text="four", extra={field: "2 and 2"})])
    answer = await answer_of(ai, stream)
    thought, message = answer.output
    assert (thought.type, thought.summary, thought.encrypted_content) == ("reasoning", [], None)
    assert thought.content[0].to_dict() == {"type": "reasoning_text", "text": "2 and 2"}
    assert message.content[0].text == "four"
    await ai.responses.create(model="cascade", input=[*user(), *answer.output, *user()])
    assert service.backend("small").requests[-1].messages[1] == {
        "role": "assistant",
        "content": "four",
        "reasoning_content": "2 and 2",
    }


@pytest.mark.parametrize("stream", [True, False])
async def test_signed_reasoning_travels_in_encrypted_content(connect, stream):
    pieces = [
        {"type": "thinking", "thinking": "2 "},
        {"type": "thinking", "thinking": "and 2"},
        {"type": "thinking", "thinking": "", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d1"},
    ]
    extra = {"reasoning_content": "2 and 2", "thinking_blocks": pieces}
    service, ai = await connect(small=[Script(text="four", extra=extra)])
    answer = await answer_of(ai, stream, include=["reasoning.encrypted_content"])
    thought = answer.output[0]
    assert thought.content[0].text == "2 and 2"
    await ai.responses.create(model="cascade", input=[*user(), *answer.output, *user()])
    assert service.backend("small").requests[-1].messages[1] == {
        "role": "assistant",
        "content": "four",
        "thinking_blocks": [
            {"type": "thinking", "thinking": "2 and 2", "signature": "s1"},
            {"type": "redacted_thinking", "data": "d1"},
        ],
    }


def user():
    return [{"role": "user", "content": ASK}]
