"""Every client, streamed and not, against models on a real vLLM."""

import json

import jsonschema_rs
import pytest

from tests.asking import CLIENTS, WEATHER, Question, ask

pytestmark = [
    pytest.mark.parametrize("client", CLIENTS),
    pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"]),
]

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


async def test_an_answer_arrives_with_its_usage(service, client, streamed):
    question = Question(model="small", text="Name three fruits.", max_tokens=12)
    answer = await ask(client, service.url, question, streamed=streamed)
    assert answer.text.strip()
    assert answer.model == "small"
    assert answer.finish in {"stop", "length"}
    assert answer.prompt_tokens > 10
    assert 0 < answer.output_tokens <= 12
    assert answer.cached_tokens is not None


async def test_an_answer_the_judge_is_unsure_of_is_replaced(service, client, streamed):
    question = Question(model="auto", text="Name three fruits.", max_tokens=12)
    answer = await ask(client, service.url, question, streamed=streamed)
    assert answer.text.strip()
    assert answer.model == "big"


async def test_a_schema_is_kept(service, client, streamed):
    question = Question(
        model="small", text="Mara is 31. Name and age as JSON.", max_tokens=60, schema=PERSON
    )
    answer = await ask(client, service.url, question, streamed=streamed)
    assert jsonschema_rs.is_valid(PERSON, json.loads(answer.text))


async def test_a_required_tool_call_follows_its_strict_schema(service, client, streamed):
    question = Question(
        model="small", text="What is the weather in Oslo?", max_tokens=120, tool=WEATHER
    )
    answer = await ask(client, service.url, question, streamed=streamed)
    assert answer.calls
    for name, arguments in answer.calls:
        assert name == "weather"
        assert jsonschema_rs.is_valid(WEATHER, arguments)
    assert answer.finish == "tool_calls"
