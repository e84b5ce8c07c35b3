"""In front of a model server that speaks chat completions over HTTP."""

from dataclasses import replace

import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from tests.responses import answer_of
from tests.upstream import DONE, Upstream, serving, words

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


@pytest.mark.parametrize("model", ["always-small", "cascade"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_server_of_chat_completions_is_asked_and_its_answer_told(connect, model, stream):
    service, ai = await connect()
    pieces = [*words("it is", " four", usage=USAGE), DONE]
    async with serving(Upstream(pieces=pieces)) as upstream:
        backend = OpenAIHttpBackend(url=upstream.url, model="m-1")
        small = replace(service.snapshot.tiers["small"], backend=backend)
        service.snapshot.tiers["small"] = small
        answer = await answer_of(
            ai, stream, model=model, instructions="be brief", input="2+2?", max_output_tokens=9
        )
        await backend.aclose()
    assert (answer.output_text, answer.model, answer.status) == ("it is four", "m-1", "completed")
    usage = answer.usage
    assert (usage.input_tokens, usage.input_tokens_details.cached_tokens) == (100, 60)
    assert (usage.output_tokens, usage.output_tokens_details.reasoning_tokens) == (9, 4)
    [asked] = upstream.bodies
    assert asked["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "2+2?"},
    ]
    assert asked["max_completion_tokens"] == 9
    judged = {"logprobs", "top_logprobs"} if model == "cascade" else set()
    known = {"model", "messages", "max_completion_tokens", "stream", "stream_options"}
    assert asked.keys() == known | judged
