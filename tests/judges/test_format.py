import time
from pathlib import Path

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


async def said(text, ask="Tell me.", *, system=None, extra=None, **options):
    messages = [{"role": "user", "content": ask}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    request = ChatRequest(id="r", messages=messages)
    choice = Choice(text=text, finish_reason="stop", extra=extra or {})
    return await FormatJudge(**options).judge(request, Completion(choices=(choice,)))


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


CALL = calling("add", '{"a": 1}')
OTHER = {
    **TOOL,
    "function": {"name": "multiply", "parameters": {"type": "object", "required": ["b"]}},
}
ONLY_ADD = {"type": "function", "function": {"name": "add"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [ONLY_ADD]}}


@pytest.mark.parametrize(
    ("calls", "params", "fault"),
    [
        ((), {"tool_choice": "required"}, "calls no tool"),
        ((), {"tool_choice": ONLY_ADD}, "calls no tool"),
        ((), {"tool_choice": ALLOWED}, "calls no tool"),
        ((calling("multiply", '{"b": 1}'),), {"tool_choice": ONLY_ADD}, "not add"),
        ((calling("multiply", '{"b": 1}'),), {"tool_choice": ALLOWED}, "not add"),
        ((CALL,), {"tool_choice": "none"}, "forbids"),
        ((CALL, {**CALL, "id": "2"}), {"parallel_tool_calls": False}, "2 tools at once"),
        ((CALL, CALL), {}, "told apart"),
        ((CALL, {**calling("multiply", "{}"), "id": "2"}), {}, "multiply"),
        ((calling("add", "[1]"),), {}, "no JSON object"),
    ],
)
async def test_what_the_request_says_of_tools_is_kept_to(calls, params, fault):
    finish = "tool_calls" if calls else "stop"
    verdict = await judged("" if calls else "Sum it.", finish, calls, [TOOL, OTHER], **params)
    assert (verdict.score, verdict.final) == (0.0, True)
    assert fault in verdict.reason


@pytest.mark.parametrize(
    ("calls", "params"),
    [
        ((), {"tool_choice": "auto"}),
        ((), {"tool_choice": "none"}),
        ((CALL,), {"tool_choice": "required"}),
        ((CALL,), {"tool_choice": ONLY_ADD}),
        ((CALL, {**calling("multiply", '{"b": 2}'), "id": "2"}), {}),
    ],
)
async def test_calls_as_the_request_wants_them_pass(calls, params):
    verdict = await judged("" if calls else "4", "stop", calls, [TOOL, OTHER], **params)
    assert verdict.score == 1.0


async def test_a_custom_tool_takes_any_text():
    tool = {"type": "custom", "custom": {"name": "shell"}}
    call = {"id": "1", "type": "custom", "custom": {"name": "shell", "input": "ls {"}}
    assert (await judged("", "tool_calls", (call,), [tool])).score == 1.0
    assert (await judged("", "tool_calls", (call,), [TOOL])).score == 0.0


REFUSALS = (Path(__file__).parent / "refusals.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("text", REFUSALS)
async def test_a_refusal_is_a_fault(text):
    verdict = await said(text)
    assert (verdict.score, verdict.reason) == (0.0, "the answer is a refusal")
    assert (await said(text, refusals=False)).score == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "I cannot find an error in your code; it prints 3.",
        "I can't wait to see you on Friday!",
        "Sorry, that was my mistake: the result is 12.",
        "I'm sorry to hear that. Try turning it off and on again.",
        "You could write: I'm sorry, but I can't help with that.",
        "A waiter who cannot help says: sorry, I can't.",
        "Entschuldigung, ich habe mich verrechnet: es sind 12.",
        "As an AI researcher, I do not sleep much.",
        "I'm sorry, but I can't help with the first part. " + "The second part is long. " * 20,
    ],
)
async def test_what_only_sounds_like_a_refusal_is_none(text):
    assert (await said(text, repetition=False)).score == 1.0


async def test_a_refusal_that_the_upstream_marks_is_a_fault():
    verdict = await said("", extra={"refusal": "I cannot do that."})
    assert verdict.reason == "the answer is a refusal"


@pytest.mark.parametrize(
    "text",
    [
        "The answer is " + "very " * 60,
        "It is 4. " + "I hope this helps you with your question. " * 9,
        "\n".join(["1. Buy milk", "2. Buy bread"] * 30),
        "ab" * 200,
        "the cat sat on the mat and the dog sat too " * 12 + "end",
    ],
)
async def test_a_loop_is_a_fault(text):
    verdict = await said(text)
    assert verdict.score == 0.0
    assert "loop" in verdict.reason or "over and over" in verdict.reason
    assert (await said(text, repetition=False)).score == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "-" * 300,
        "ha ha ha ha ha",
        "[" + ", ".join(["0"] * 200) + "]",
        "Title\n" + "=" * 200,
        "| a | b |\n|---|---|\n" + "\n".join(f"| {i} | {i * i} |" for i in range(60)),
        "\n".join(f"self.field_{i} = field_{i * 7 % 31}" for i in range(60)),
    ],
)
async def test_what_repeats_for_a_reason_is_no_loop(text):
    assert (await said(text)).score == 1.0


async def test_json_that_was_asked_for_may_repeat_itself():
    text = '{"rows": [' + ", ".join(['{"name": "unknown", "age": "unknown"}'] * 40) + "]}"
    assert (await judged(text, response_format={"type": "json_object"})).score == 1.0
    assert (await judged(text)).score == 0.0


GERMAN = (
    "Die Antwort ist nicht schwer: der Zug ist mit der Bahn schneller und auch der Weg ist frei."
)
ENGLISH = (
    "The answer is not that hard: the train is faster for you and the road is free of traffic."
)
RUSSIAN = (
    "\u041f\u043e\u0435\u0437\u0434 \u0431\u044b\u0441\u0442\u0440\u0435\u0435, \u0438 "
    "\u0434\u043e\u0440\u043e\u0433\u0430 \u0441\u0432\u043e\u0431\u043e\u0434\u043d\u0430. "
) * 2


@pytest.mark.parametrize(
    ("text", "ask", "score"),
    [
        (GERMAN, "Please answer in German.", 1.0),
        (ENGLISH, "Please answer in German.", 0.0),
        (RUSSIAN, "Reply only in Russian.", 1.0),
        (ENGLISH, "Reply only in Russian.", 0.0),
        (RUSSIAN, "Respond in English, please.", 0.0),
        (ENGLISH, "What is it?\nAnswer me in German", 0.0),
        (GERMAN, "Translate this.", 1.0),
        (ENGLISH, "How do I write good morning in Russian?", 1.0),
        (ENGLISH, "How do people answer in Japanese when the phone rings?", 1.0),
        ("Ja.", "Answer in English.", 1.0),
        ("```python\nprint('the and of to is that it with')\n```", "Answer in German.", 1.0),
    ],
)
async def test_the_language_that_is_asked_for_is_wanted(text, ask, score):
    assert (await said(text, ask)).score == score


async def test_the_last_ask_counts_more_than_the_system_message():
    system = "Always answer in French."
    assert (await said(GERMAN, "Answer in German.", system=system)).score == 1.0
    assert (await said(GERMAN, "Which is faster?", system=system)).score == 0.0


async def test_a_language_can_be_fixed_or_not_looked_at():
    assert (await said(ENGLISH, language="de")).score == 0.0
    assert (await said(ENGLISH, "Answer in German.", language=None)).score == 1.0
