from dataclasses import replace

import pytest

from cascade.backends.scripted import Script
from tests.responses import ASK, WEATHER, Pieces, answering, call, data_of, events_of, lines


@pytest.mark.parametrize("model", ["always-small", "cascade"])
async def test_a_streamed_answer_is_openais_events_in_order(connect, model):
    _, ai = await connect(small=["one two three"])
    events = await events_of(ai, model=model)
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * 3,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].response.status == "in_progress"
    assert events[0].response.model == "small-model"
    assert "".join(event.delta for event in events[4:7]) == "one two three"
    assert {event.item_id for event in events[3:9]} == {events[2].item.id}
    assert events[7].text == "one two three"
    assert events[9].item.content[0].text == "one two three"
    final = events[-1].response
    assert final.output[0].to_dict() == events[9].item.to_dict()
    assert final.usage.total_tokens == 12
    assert {event.response.created_at for event in (events[0], events[-1])} == {final.created_at}


@pytest.mark.parametrize("model", ["always-small", "cascade"])
async def test_the_clients_own_stream_adds_up_to_the_whole_answer(connect, model):
    _, ai = await connect(small=[Script(text="one two", tool_calls=[call()])])
    async with ai.responses.stream(model=model, input=ASK) as stream:
        deltas = [e.delta async for e in stream if e.type == "response.output_text.delta"]
        streamed = await stream.get_final_response()
    whole = await ai.responses.create(model=model, input=ASK)
    assert "".join(deltas) == streamed.output_text == whole.output_text == "one two"
    assert shape(streamed) == shape(whole)
    assert streamed.usage == whole.usage
    assert streamed.status == whole.status == "completed"


def shape(response):
    """An output without the ids that each answer has of its own, as it would be sent back."""
    items = [item.to_dict() for item in response.output]
    for item in items:
        del item["id"]
        item.pop("parsed_arguments", None)
        for part in item.get("content", ()):
            part.pop("parsed", None)
    return items


async def test_a_stream_tells_in_a_comment_what_became_known_late_and_has_no_done(serve):
    headers, events = await lines(await serve())
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["x-cascade-tier"] == "small"
    [comment] = [event for event in events if event.startswith(": ")]
    assert "x-cascade-cost-usd=0.000014" in comment
    assert events[-2].startswith("event: response.completed\ndata: ")
    assert not any("[DONE]" in event for event in events)


async def test_the_events_on_the_wire_carry_their_own_names(serve):
    _, events = await lines(await serve())
    sent = [event for event in events if event.startswith("event: ")]
    names = [event.partition("\n")[0].removeprefix("event: ") for event in sent]
    assert names == [data["type"] for data in data_of(sent)]


async def test_a_function_call_is_streamed_whole_with_its_own_events(connect):
    _, ai = await connect(small=[Script(text="", tool_calls=[call()])])
    events = await events_of(ai, tools=[WEATHER])
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    added, delta, done, finished = events[2:6]
    assert (added.item.arguments, added.item.status) == ("", "in_progress")
    assert delta.delta == done.arguments == finished.item.arguments == '{"place": "Oslo"}'
    assert {added.item.id, delta.item_id, done.item_id} == {finished.item.id}
    assert (added.output_index, done.name) == (0, "weather")


async def test_items_are_named_by_their_place_in_the_output(connect):
    _, ai = await connect(small=[Script(text="a", tool_calls=[call(), call(identity="c2")])])
    events = await events_of(ai, model="always-small", tools=[WEATHER])
    added = [event for event in events if event.type == "response.output_item.added"]
    assert [event.item.id.rpartition("_")[2] for event in added] == ["0", "1", "2"]
    assert [event.output_index for event in added] == [0, 1, 2]
    whole = await ai.responses.create(model="always-small", input=ASK, tools=[WEATHER])
    assert [item.id.rpartition("_")[2] for item in whole.output] == ["0", "1", "2"]


async def test_an_answer_of_nothing_begins_and_ends_with_the_model_that_gave_it(connect):
    service, ai = await connect()
    small = replace(service.snapshot.tiers["small"], backend=Pieces({"delta": {}}))
    service.snapshot.tiers["small"] = small
    events = await events_of(ai, model="always-small")
    assert [(event.type, event.response.model) for event in events] == [
        ("response.created", "small-model"),
        ("response.in_progress", "small-model"),
        ("response.completed", "small-model"),
    ]
    assert events[-1].response.output == []


async def test_a_refusal_is_streamed_with_events_of_its_own(connect):
    service, ai = await connect()
    answering(service, {"delta": {"refusal": "I will"}}, {"delta": {"refusal": " not"}})
    events = await events_of(ai, model="always-small")
    told = [(e.type, e.delta) for e in events if e.type.endswith(".delta")]
    assert told == [("response.refusal.delta", "I will"), ("response.refusal.delta", " not")]
    [done] = [event for event in events if event.type == "response.refusal.done"]
    assert done.refusal == "I will not"


async def test_reasoning_between_texts_is_an_item_between_them(connect):
    service, ai = await connect()
    answering(
        service,
        {"delta": {"content": "a"}},
        {"delta": {"reasoning_content": "b"}},
        {"delta": {"reasoning_content": "c"}},
        {"delta": {"content": "d"}},
    )
    events = await events_of(ai, model="always-small")
    added = [event for event in events if event.type == "response.output_item.added"]
    assert [(event.item.type, event.output_index) for event in added] == [
        ("message", 0),
        ("reasoning", 1),
        ("message", 2),
    ]
    final = events[-1].response
    assert [item.content[0].text for item in final.output] == ["a", "bc", "d"]
    assert len({item.id for item in final.output}) == 3
    assert "response.reasoning_text.done" in [event.type for event in events]


def token(text, shown):
    entry = {"token": text, "logprob": -0.1, "bytes": [1], "top_logprobs": []}
    return {"delta": {"content": shown}, "logprobs": {"content": [entry]}}


async def test_log_probabilities_of_half_a_character_wait_for_its_text(connect):
    service, ai = await connect()
    thought = {**token("t", None), "delta": {"reasoning_content": "t"}}
    answering(service, thought, token("x", ""), token("y", "\u00e9"), token("end", ""))
    included = ["message.output_text.logprobs"]
    events = await events_of(ai, model="always-small", include=included)
    [delta] = [event for event in events if event.type == "response.output_text.delta"]
    assert [entry.token for entry in delta.logprobs] == ["x", "y"]
    told = events[-1].response.output[1].content[0].logprobs
    assert [entry.token for entry in told] == ["x", "y", "end"]


async def test_log_probabilities_are_in_the_deltas_of_the_text_they_belong_to(connect):
    _, ai = await connect(small=["one two"])
    events = await events_of(ai, include=["message.output_text.logprobs"])
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    assert [[entry.token for entry in d.logprobs] for d in deltas] == [["one"], [" two"]]
    [done] = [event for event in events if event.type == "response.output_text.done"]
    assert [entry.token for entry in done.logprobs] == ["one", " two"]


async def test_every_event_has_every_field_of_openais_type(connect):
    service, ai = await connect()
    answering(
        service,
        {"delta": {"reasoning_content": "a"}},
        token("b", "b"),
        {"delta": {"refusal": "c"}},
        {"delta": {"tool_calls": [{"index": 0, **call()}]}},
    )
    included = ["message.output_text.logprobs"]
    events = await events_of(ai, model="always-small", include=included, tools=[WEATHER])
    assert len({event.type for event in events}) == 15
    for event in events:
        type(event).model_validate(event.to_dict(), strict=True)
