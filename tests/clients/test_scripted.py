"""Every client, streamed and not, over scripted tiers, which can be made to call tools."""

import anthropic
import openai
import pytest

from cascade.backends.scripted import Script
from cascade.types import Usage
from tests.asking import CLIENTS, PERSON, WEATHER, Question, ask
from tests.engines import FixedJudge
from tests.services import running, snapshot

pytestmark = [
    pytest.mark.parametrize("client", CLIENTS),
    pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"]),
]

ASKED = Question(model="cascade", text="what is 2+2?")
CALLS = Script(
    text="",
    tool_calls=[
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "weather", "arguments": '{"place": "Oslo", "unit": "celsius"}'},
        }
    ],
    finish_reason="tool_calls",
)


async def test_an_answer_arrives_with_its_usage(client, streamed):
    usage = Usage(input=40, cache_read=60, output=5)
    async with running(snapshot(small=[Script(text="it is four", usage=usage)])) as service:
        answer = await ask(client, service.url, ASKED, streamed=streamed)
    assert (answer.text, answer.finish, answer.model) == ("it is four", "stop", "small-model")
    assert (answer.prompt_tokens, answer.cached_tokens, answer.output_tokens) == (100, 60, 5)


async def test_a_rejected_answer_is_replaced_by_the_next_tiers(client, streamed):
    shot = snapshot(small=["wrong"], large=["right"], judge=FixedJudge(0.1, logprobs=True))
    async with running(shot) as service:
        answer = await ask(client, service.url, ASKED, streamed=streamed)
    assert (answer.text, answer.model) == ("right", "large-model")


@pytest.mark.parametrize("model", ["cascade", "always-small"], ids=["held", "live"])
async def test_a_tool_call_arrives_with_its_arguments(client, streamed, model):
    question = Question(model=model, text="weather in Oslo?", tool=WEATHER)
    async with running(snapshot(small=[CALLS])) as service:
        answer = await ask(client, service.url, question, streamed=streamed)
        [sent] = service.backend("small").requests
    assert answer.calls == [("weather", {"place": "Oslo", "unit": "celsius"})]
    assert answer.finish == "tool_calls"
    [tool] = sent.tools
    assert tool["function"]["parameters"] == WEATHER
    assert tool["function"]["strict"] is True
    assert sent.params["tool_choice"] == "required"


async def test_a_schema_reaches_the_model_whichever_field_asked_for_it(client, streamed):
    question = Question(model="always-small", text="who?", schema=PERSON)
    async with running(snapshot(small=['{"name": "Mara", "age": 31}'])) as service:
        answer = await ask(client, service.url, question, streamed=streamed)
        [sent] = service.backend("small").requests
    assert answer.text == '{"name": "Mara", "age": 31}'
    form = sent.params["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == PERSON


async def test_an_answer_cut_by_its_limit_says_so(client, streamed):
    async with running(snapshot(small=[Script(text="it is", finish_reason="length")])) as service:
        answer = await ask(client, service.url, ASKED, streamed=streamed)
    assert (answer.text, answer.finish) == ("it is", "length")


async def test_a_failure_is_the_clients_own_error_with_its_status(client, streamed):
    down = Script(error="BackendOverloadedError")
    async with running(snapshot(small=[down], large=[down])) as service:
        with pytest.raises((openai.RateLimitError, anthropic.RateLimitError)) as caught:
            await ask(client, service.url, ASKED, streamed=streamed)
    assert caught.value.status_code == 429


async def test_an_unknown_model_is_the_clients_own_404(client, streamed):
    async with running(snapshot()) as service:
        with pytest.raises((openai.NotFoundError, anthropic.NotFoundError), match="no-such"):
            await ask(client, service.url, Question(model="no-such", text="hi"), streamed=streamed)
