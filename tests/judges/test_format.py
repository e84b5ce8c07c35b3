import time

import pytest

from cascade.errors import JudgeError
from cascade.types import FREE, ChatRequest, Choice, Completion
from judges.format import FormatJudge

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


async def judged(text="fine", finish="stop", tool_calls=(), tools=None, **params):
    request = ChatRequest(id="r", messages=[], params=params, tools=tools)
    choice = Choice(text=text, finish_reason=finish, tool_calls=tool_calls)
    return await FormatJudge().judge(request, Completion(choices=(choice,)))


def asking(schema):
    return {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}


async def test_a_whole_answer_is_well_formed_but_not_settled():
    verdict = await judged()
    assert (verdict.score, verdict.final) == (1.0, False)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"finish": None}, "cut"),
        ({"finish": "length"}, "length limit"),
        ({"finish": "length", "max_tokens": 200}, "length limit"),
        ({"finish": "content_filter"}, "filtered"),
        ({"text": " \n"}, "empty"),
        ({"text": "not json", "response_format": {"type": "json_object"}}, "not JSON"),
        ({"text": "[1]", "response_format": {"type": "json_object"}}, "not a JSON object"),
        ({"text": '{"name": "a"}', "response_format": asking(SCHEMA)}, '"age" is a required'),
        ({"text": '{"name": "a", "age": -1}', "response_format": asking(SCHEMA)}, "at /age"),
        ({"text": '{"name": "a", "age": 1, "x": 1}', "response_format": asking(SCHEMA)}, "'x'"),
    ],
)
async def test_a_fault_is_final_and_named(options, fault):
    verdict = await judged(**options)
    assert (verdict.score, verdict.final) == (0.0, True)
    assert fault in verdict.reason


async def test_a_label_cut_by_the_clients_own_small_limit_is_whole():
    assert (await judged("B", "length", max_tokens=1)).score == 1.0
    assert (await judged("B", "length", max_completion_tokens=4)).score == 1.0


TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}},
            "required": ["a"],
        },
    },
}


def calling(name, arguments):
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


async def test_tool_calls_that_fit_stand_for_text_and_are_not_held_against_the_schema():
    calls = (calling("add", '{"a": 1}'),)
    verdict = await judged("", "tool_calls", calls, [TOOL], response_format=asking(SCHEMA))
    assert verdict.score == 1.0


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (calling("add", '{"a": '), "not JSON"),
        (calling("add", '{"a": "x"}'), "at /a"),
        (calling("add", ""), "required"),
        (calling("subtract", "{}"), "no tool of the request"),
        ({"id": "1"}, "no tool of the request"),
    ],
)
async def test_a_tool_call_that_does_not_fit_is_a_fault(call, fault):
    verdict = await judged("", "tool_calls", (call,), [TOOL])
    assert (verdict.score, verdict.final) == (0.0, True)
    assert fault in verdict.reason


async def test_a_fitting_object_passes():
    verdict = await judged('{"name": "a", "age": 3}', response_format=asking(SCHEMA))
    assert verdict.score == 1.0


@pytest.mark.parametrize(
    "schema",
    [{"type": "objekt"}, {"$ref": "http://127.0.0.1:1/schema"}, {"pattern": "("}],
    ids=["unknown type", "remote reference", "broken pattern"],
)
async def test_a_schema_that_cannot_be_used_is_a_judge_error(schema):
    with pytest.raises(JudgeError, match="cannot be used") as caught:
        await judged("{}", response_format=asking(schema))
    assert caught.value.cost == FREE


async def test_a_pattern_that_explodes_does_not_stall():
    schema = {"properties": {"a": {"pattern": "^(a+)+\\1$"}}}
    began = time.monotonic()
    verdict = await judged('{"a": "' + "a" * 5000 + 'b"}', response_format=asking(schema))
    assert verdict.score == 0.0
    assert time.monotonic() - began < 5
