from copy import deepcopy

import pytest

from cascade.errors import (
    BackendRefusedError,
)
from cascade.types import ChatRequest, Usage
from tests import anthropic
from tests.litellm_service import (  # noqa: F401  # fixtures among them
    ADD,
    CLAUDE,
    HELLO,
    ask,
    drain,
    make,
    said,
    upstream,
    whole,
)
from tests.upstream import DONE, event, words


async def test_an_answer_comes_in_pieces_and_then_whole(upstream, ask):
    report = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    upstream.pieces = [*words("one", " two", usage=report), DONE]
    chunks = await drain(ask())
    completion = chunks[-1].completion
    assert [c["delta"].get("content") for k in chunks for c in k.choices if c["delta"]][-2:] == [
        "one",
        " two",
    ]
    assert (completion.text, completion.finish_reason, completion.model) == (
        "one two",
        "stop",
        "m-1",
    )
    assert completion.usage == Usage(input=40, cache_read=60, output=15, reasoning=5)


async def test_what_the_client_sent_reaches_the_model_untouched(upstream, ask):
    said(upstream, "a")
    messages = [
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
            "x": 1,
        },
        {"role": "tool", "tool_call_id": "1", "content": "r"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ]
    params = {
        "temperature": 0,
        "logit_bias": {"5": 1},
        "seed": 7,
        "stop": ["a", "b", "c", "d", "e", "f"],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}},
        "user": "u",
        "metadata": {"a": "b"},
        "unheard_of": [1, None],
    }
    await drain(ask(params=params, tools=[ADD], messages=messages))
    assert upstream.bodies == [
        {
            **params,
            "model": "m",
            "messages": messages,
            "tools": [ADD],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


async def test_null_content_beside_tool_calls_is_taken(upstream, ask):
    said(upstream, "a")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    before = deepcopy(messages)
    await drain(ask(messages=messages))
    assert upstream.bodies[0]["messages"][0]["tool_calls"] == [call]
    assert messages == before


SWITCHES = {
    "api_base": "http://192.0.2.1",
    "api_key": "theirs",
    "extra_headers": {"Authorization": "theirs"},
    "mock_response": "made up",
    "fallbacks": ["openai/other"],
    "num_retries": 5,
}


async def test_a_client_cannot_turn_litellms_own_switches(upstream, ask):
    said(upstream, "a")
    chunks = await drain(ask(params=SWITCHES))
    assert chunks[-1].completion.text == "a"
    assert upstream.authorization == "Bearer k"
    assert SWITCHES.items() <= upstream.bodies[0].items()


@pytest.mark.parametrize("name", [*SWITCHES, "n", "logprobs", "unheard_of"])
async def test_what_cannot_go_to_a_provider_is_refused_and_not_lost(upstream, ask, name):
    value = SWITCHES.get(name, 2)
    with pytest.raises(BackendRefusedError, match=f"takes no {name}"):
        await drain(ask(model=CLAUDE, params={name: value}))
    assert upstream.bodies == []


async def test_fields_are_put_into_the_providers_words(upstream, ask):
    upstream.pieces = anthropic.message("ok", usage={"input_tokens": 3, "output_tokens": 1})
    params = {"max_tokens": 9, "stop": ["x"], "tool_choice": "required", "top_k": 4, "store": True}
    chunks = await drain(ask(model=CLAUDE, params=params, tools=[ADD]))
    assert chunks[-1].completion.text == "ok"
    assert chunks[-1].completion.model == "claude-1"
    body = upstream.bodies[0]
    assert (body["max_tokens"], body["stop_sequences"], body["top_k"]) == (9, ["x"], 4)
    assert body["tool_choice"] == {"type": "any"}
    assert body["tools"][0]["input_schema"]["type"] == "object"
    assert "store" not in body


async def test_the_operators_extra_arguments_go_along_and_the_clients_fields_win(upstream, ask):
    said(upstream, "a")
    extra = {"temperature": 1, "seed": 1, "extra_body": {"route": "x"}}
    await drain(ask(params={"temperature": 0, "other": 1}, extra=extra))
    body = upstream.bodies[0]
    assert (body["temperature"], body["seed"], body["route"], body["other"]) == (0, 1, "x", 1)


async def test_tool_calls_are_put_together_from_their_pieces(upstream, ask):
    def piece(**call):
        return event({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]})

    upstream.pieces = [
        piece(id="c1", type="function", function={"name": "add", "arguments": ""}),
        piece(function={"arguments": '{"a"'}),
        piece(function={"arguments": ": 1}"}),
        *words(finish="tool_calls")[1:],
        DONE,
    ]
    completion = (await drain(ask(tools=[ADD])))[-1].completion
    assert completion.tool_calls == (
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    )
    assert completion.finish_reason == "tool_calls"


async def test_fields_of_the_answer_that_are_not_known_are_kept(upstream, ask):
    upstream.pieces = [*words("a", reasoning_content="hm"), DONE]
    assert (await drain(ask()))[-1].completion.choices[0].extra == {"reasoning_content": "hm"}


async def test_every_log_probability_arrives_also_of_a_token_without_text(upstream, ask):
    entries = [
        {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": []}
        for token, logprob in [("a", -0.1), ("", -0.2), ("b", -0.3)]
    ]
    upstream.headers = {"Content-Type": "application/json"}
    upstream.pieces = whole(
        {
            "index": 0,
            "message": {"content": "ab"},
            "finish_reason": "stop",
            "logprobs": {"content": entries},
        }
    )
    chunks = await drain(ask(params={"logprobs": True, "top_logprobs": 0}))
    assert [entry["logprob"] for entry in chunks[-1].completion.logprobs] == [-0.1, -0.2, -0.3]
    assert chunks[0].choices[0]["delta"]["content"] == "ab"
    assert upstream.bodies[0]["logprobs"] is True


async def test_several_choices_are_kept_apart_with_their_ends(upstream, ask):
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for i in range(2)
    ]
    upstream.headers = {"Content-Type": "application/json"}
    upstream.pieces = whole(
        {"index": 0, "message": {"content": "a"}, "finish_reason": "length"},
        {"index": 1, "message": {"content": None, "tool_calls": calls}, "finish_reason": "stop"},
    )
    completion = (await drain(ask(params={"n": 2})))[-1].completion
    assert [choice.text for choice in completion.choices] == ["a", ""]
    assert completion.choices[0].finish_reason == "length"
    assert completion.choices[1].tool_calls == tuple(calls)
    assert completion.usage == Usage()


async def test_usage_that_is_not_reported_is_unknown_not_guessed(upstream, ask):
    said(upstream, "a")
    assert (await drain(ask()))[-1].completion.usage == Usage()
    report = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": None}
    upstream.pieces = [*words("a", usage=report), DONE]
    assert (await drain(ask()))[-1].completion.usage == Usage(input=5, output=1)


async def test_a_model_may_repeat_itself(upstream, ask):
    said(upstream, *["again "] * 150)
    assert (await drain(ask()))[-1].completion.text == "again " * 150


async def test_where_a_call_is_in_a_trace_is_told_to_a_server_of_ones_own(upstream, make):
    said(upstream, "a")
    context = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    asked = ChatRequest(id="r", messages=HELLO, context=context)
    backend = make(extra={"extra_headers": {"x-mine": "1"}})
    await drain(backend.stream(asked))
    assert upstream.sent[0]["traceparent"] == context["traceparent"]
    assert upstream.sent[0]["x-mine"] == "1"


async def test_and_not_to_a_provider_at_its_own_address(make):
    context = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    asked = ChatRequest(id="r", messages=HELLO, context=context)
    assert make()._arguments(asked, whole=False)["extra_headers"] == context  # noqa: SLF001
    away = make(url=None)._arguments(asked, whole=False)  # noqa: SLF001 - no call leaves the machine
    assert "extra_headers" not in away
