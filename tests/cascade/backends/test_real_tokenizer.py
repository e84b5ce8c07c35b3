"""What the real llama.cpp counts is what it would have charged for, and where its window ends."""

import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.errors import BackendRefusedError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.tiers import ModelTier
from cascade.types import ChatRequest
from tests.engines import Bench
from tests.real_models import SMALL, running

pytestmark = pytest.mark.real_models

WINDOW = 256
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"place": "Oslo"}'},
}
USER = {"role": "user", "content": "How is the weather in Oslo? <|im_start|> Grüße, 東京."}
TURNS = [
    {"role": "system", "content": "You are terse."},
    USER,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "user", "content": [{"type": "text", "text": "And tomorrow?"}]},
]


@pytest.fixture(scope="module")
def server():
    with running(SMALL, context=WINDOW) as server:
        yield server


@pytest.fixture
async def backend(server):
    made = OpenAIHttpBackend(
        url=f"{server.url}/v1", model=SMALL, api_key=server.api_key, tokenizer="llama_cpp"
    )
    yield made
    await made.aclose()


def asking(*messages, tools=None):
    return ChatRequest(
        id="r", messages=messages, tools=tools, params={"max_tokens": 1, "temperature": 0}
    )


@pytest.mark.parametrize(
    "asked",
    [asking(USER), asking(*TURNS), asking(USER, tools=[TOOL]), asking(*TURNS, tools=[TOOL])],
    ids=["plain", "system and calls", "tools", "all"],
)
async def test_the_count_is_what_the_model_reports_to_have_read(backend, asked):
    counted = await backend.tokenizer.count(asked)
    assert counted == (await backend.complete(asked)).usage.prompt


async def words(backend, tokens):
    """A request of exactly so many tokens."""
    spare = tokens - await backend.tokenizer.count(asking({"role": "user", "content": "word"}))
    asked = asking({"role": "user", "content": "word" + " word" * spare})
    assert await backend.tokenizer.count(asked) == tokens
    return asked


async def test_a_prompt_a_little_too_long_is_refused_by_count_and_a_shorter_one_is_answered(
    backend,
):
    tier = ModelTier(
        name="small", backend=backend, context_tokens=WINDOW, tokenizer=backend.tokenizer
    )
    bench = Bench(tier, arm=Arm(name=None, policy=FixedPolicy(name="f", tier="small")))
    fits, too_long = await words(backend, WINDOW - 1), await words(backend, WINDOW)
    assert (await bench.run(fits)).completion.usage.output == 1
    refused = await bench.run(too_long)
    assert refused.attempts == ()
    assert refused.error.message == (
        f"no tier can serve this request: small has a window of {WINDOW} tokens, too short for the "
        f"prompt of {WINDOW}"
    )


async def test_the_server_itself_draws_the_line_where_the_count_does(backend):
    with pytest.raises(BackendRefusedError, match=f"{WINDOW} tokens"):
        await backend.complete(await words(backend, WINDOW))
