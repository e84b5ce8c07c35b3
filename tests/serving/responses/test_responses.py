import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel

from cascade.backends.scripted import Script
from cascade.types import Kind, Usage
from tests.engines import FixedJudge
from tests.responses import ASK, WEATHER, answer_of, call, events_of, final_of, lines


async def test_the_openai_client_gets_an_answer_and_headers_say_how(connect):
    service, ai = await connect()
    raw = await ai.responses.with_raw_response.create(model="cascade", input=ASK)
    answer = raw.parse()
    [result] = service.log.results
    assert answer.id == f"resp_{result.request.id}"
    assert (answer.object, answer.status, answer.model) == ("response", "completed", "small-model")
    assert answer.output_text == "four"
    assert answer.created_at <= answer.completed_at
    assert (answer.error, answer.incomplete_details) == (None, None)
    [message] = answer.output
    assert (message.type, message.role, message.status) == ("message", "assistant", "completed")
    assert message.content[0].to_dict() == {
        "type": "output_text",
        "text": "four",
        "annotations": [],
        "logprobs": [],
    }
    assert raw.headers["x-cascade-request-id"] == result.request.id
    assert raw.headers["x-cascade-tier"] == "small"
    assert raw.headers["x-cascade-cost-usd"] == "0.000014"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_response_has_every_field_of_openais_type(connect, stream):
    _, ai = await connect(small=[Script(text="four", tool_calls=[call()])])
    answer = await answer_of(ai, stream, tools=[WEATHER], include=["message.output_text.logprobs"])
    Response.model_validate(answer.to_dict(), strict=True)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_response_repeats_what_it_was_asked_and_that_nothing_is_stored(connect, stream):
    _, ai = await connect()
    asked = {
        "instructions": "be brief",
        "max_output_tokens": 99,
        "metadata": {"team": "red"},
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "reasoning": {"effort": "low"},
        "safety_identifier": "s",
        "temperature": 0.5,
        "text": {"verbosity": "low"},
        "tool_choice": "none",
        "tools": [WEATHER],
        "top_p": 0.9,
        "user": "u",
    }
    told = (await answer_of(ai, stream, store=True, **asked)).to_dict()
    format_ = {"format": {"type": "text"}}
    assert {name: told[name] for name in asked} == {
        **asked,
        "text": {**format_, "verbosity": "low"},
    }
    assert told["store"] is False
    assert (told["background"], told["truncation"]) == (False, "disabled")
    least = (await answer_of(ai, stream)).to_dict()
    assert (least["tools"], least["tool_choice"], least["text"]) == ([], "auto", format_)
    assert least["instructions"] is None
    assert least["parallel_tool_calls"] is True


@pytest.mark.parametrize(
    ("reported", "told"),
    [
        (Usage(input=7, cache_read=3, cache_write={"5m": 2, "1h": 1}, output=4), (13, 3, 3, 4, 0)),
        (Usage(input=7, output=4, reasoning=5), (7, 0, 0, 9, 5)),
        (None, None),
    ],
)
async def test_usage_includes_the_cache_and_is_null_when_nothing_was_reported(
    connect, reported, told
):
    _, ai = await connect(small=[Script(text="a b", usage=reported)])
    answers = [await answer_of(ai, stream=False)]
    answers += [await final_of(ai, model=model) for model in ("cascade", "always-small")]
    for usage in (answer.usage for answer in answers):
        if told is None:
            assert usage is None
            continue
        assert told == (
            usage.input_tokens,
            usage.input_tokens_details.cached_tokens,
            usage.input_tokens_details.cache_write_tokens,
            usage.output_tokens,
            usage.output_tokens_details.reasoning_tokens,
        )
        assert usage.total_tokens == usage.input_tokens + usage.output_tokens


@pytest.mark.parametrize("stream", [True, False])
async def test_an_escalated_answer_has_only_the_accepted_text(connect, stream):
    service, ai = await connect(small=["wrong"], large=["right"], judge=FixedJudge(0.1))
    answer = await answer_of(ai, stream)
    assert (answer.output_text, answer.model) == ("right", "large-model")
    kinds = [a.kind for a in service.log.results[0].attempts]
    assert kinds == [Kind.ANSWER, Kind.JUDGE, Kind.ANSWER]
    _, events = await lines(service)
    assert not any("wrong" in event for event in events)


@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [("length", "max_output_tokens"), ("content_filter", "content_filter")],
)
@pytest.mark.parametrize("model", ["always-small", "cascade"])
async def test_an_answer_that_was_cut_is_incomplete_and_says_why(
    connect, finish_reason, reason, model
):
    _, ai = await connect(small=[Script(text="a b", finish_reason=finish_reason)])
    whole = await ai.responses.create(model=model, input=ASK)
    events = await events_of(ai, model=model)
    assert events[-1].type == "response.incomplete"
    for answer in (whole, events[-1].response):
        assert (answer.status, answer.incomplete_details.reason) == ("incomplete", reason)
        assert (answer.output_text, answer.output[0].status) == ("a b", "incomplete")
        assert answer.completed_at is None
        assert answer.usage.output_tokens == 2


class Person(BaseModel):
    name: str
    age: int


async def test_a_pydantic_model_is_parsed_from_the_answer_streamed_or_not(connect):
    service, ai = await connect(small=['{"name": "Mara", "age": 31}'])
    whole = await ai.responses.parse(model="cascade", input=ASK, text_format=Person)
    async with ai.responses.stream(model="cascade", input=ASK, text_format=Person) as stream:
        streamed = await stream.get_final_response()
    assert whole.output_parsed == streamed.output_parsed == Person(name="Mara", age=31)
    sent = service.backend("small").requests[0].params["response_format"]
    assert sent["type"] == "json_schema"
    assert sent["json_schema"]["name"] == "Person"
    assert sent["json_schema"]["strict"] is True
    assert set(sent["json_schema"]["schema"]["properties"]) == {"name", "age"}


async def test_a_pydantic_tool_gets_its_arguments_parsed(connect):
    _, ai = await connect(
        small=[Script(text="", tool_calls=[call('{"name":"A","age":1}', "Person")])]
    )
    tools = [openai.pydantic_function_tool(Person)]
    flat = [{"type": "function", **tools[0]["function"]}]
    whole = await ai.responses.parse(model="always-small", input=ASK, tools=flat)
    assert whole.output[0].parsed_arguments == {"name": "A", "age": 1}


@pytest.mark.parametrize("model", ["always-small", "cascade"])
async def test_calls_before_a_cut_are_whole_and_so_is_the_text_before_them(connect, model):
    script = Script(text="a", tool_calls=[call()], finish_reason="length")
    _, ai = await connect(small=[script])
    whole = await ai.responses.create(model=model, input=ASK)
    events = await events_of(ai, model=model)
    for answer in (whole, events[-1].response):
        assert answer.status == "incomplete"
        assert [item.status for item in answer.output] == ["completed", "completed"]


@pytest.mark.parametrize("top", [1, 3])
@pytest.mark.parametrize("stream", [True, False])
async def test_log_probabilities_come_when_they_are_included(connect, stream, top):
    service, ai = await connect(small=["one two"])
    included = ["message.output_text.logprobs"]
    answer = await answer_of(ai, stream, include=included, top_logprobs=top)
    entries = answer.output[0].content[0].logprobs
    assert [entry.token for entry in entries] == ["one", " two"]
    assert [len(entry.top_logprobs) for entry in entries] == [top, top]
    sent = service.backend("small").requests[0].params
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, max(top, 2))  # the judge wants two
    silent = await answer_of(ai, stream, model="always-small", top_logprobs=3)
    assert silent.output[0].content[0].logprobs == []
    assert "logprobs" not in service.backend("small").requests[-1].params


LOOK = [
    {"type": "input_image", "image_url": "https://a/b.png", "detail": "low"},
    {"type": "input_file", "filename": "a.pdf", "file_data": "data:x;base64,AA=="},
    {"type": "input_text", "text": "look"},
]
SAME = {
    "metadata": {"team": "red"},
    "parallel_tool_calls": False,
    "prompt_cache_key": "k",
    "safety_identifier": "s",
    "service_tier": "flex",
    "temperature": 0.5,
    "top_p": 0.9,
    "user": "u",
}
UNKNOWN = {"seed": 3, "unheard_of": {"a": [None]}}


async def test_everything_the_client_said_reaches_the_model(connect):
    service, ai = await connect()
    await ai.responses.create(
        model="always-small",
        instructions="be brief",
        input=[{"role": "user", "content": LOOK}],
        tools=[WEATHER],
        tool_choice={"type": "function", "name": "weather"},
        max_output_tokens=50,
        reasoning={"effort": "low", "summary": "auto"},
        text={"verbosity": "high", "format": {"type": "json_object"}},
        store=True,
        truncation="disabled",
        stream_options={"include_obfuscation": False},
        extra_body=UNKNOWN,
        **SAME,
    )
    [asked] = service.backend("small").requests
    system, user = asked.messages
    assert system == {"role": "system", "content": "be brief"}
    assert user["content"] == [
        {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:x;base64,AA==", "filename": "a.pdf"}},
        {"type": "text", "text": "look"},
    ]
    assert asked.params == {
        **SAME,
        **UNKNOWN,
        "max_completion_tokens": 50,
        "reasoning_effort": "low",
        "response_format": {"type": "json_object"},
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "verbosity": "high",
    }
    assert (asked.session, asked.tags) == ("u", {"team": "red"})


@pytest.mark.parametrize("stream", [True, False])
async def test_an_explanation_comes_with_the_response_when_asked_for(connect, stream):
    service, ai = await connect()
    answer = await answer_of(ai, stream, extra_body={"cascade": {"explain": True}})
    assert answer.cascade["tier"] == "small"
    assert "cascade" not in service.backend("small").requests[0].params
    assert "cascade" not in (await answer_of(ai, stream)).to_dict()
