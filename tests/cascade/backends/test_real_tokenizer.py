"""What the real llama.cpp counts is what it would have charged for, and where its window ends.

The tokens that it tells are those it reads, and so those that its cache compares.
"""

import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.errors import BackendRefusedError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.prefix import Chained, chain_of_ids
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


def talking_to(server):
    return OpenAIHttpBackend(
        url=f"{server.url}/v1", model=SMALL, api_key=server.api_key, tokenizer="llama_cpp"
    )


@pytest.fixture
async def backend(server):
    made = talking_to(server)
    yield made
    await made.aclose()


@pytest.fixture
async def stranger(server):
    """One that has never seen a prompt."""
    made = talking_to(server)
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


FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {"type": "object", "properties": {"rain": {"type": "boolean"}}},
    },
}
FORMED = ChatRequest(
    id="r", messages=[USER], params={"max_tokens": 1, "temperature": 0, "response_format": FORM}
)
BEGUN = asking(USER, {"role": "assistant", "content": "It is"})


@pytest.mark.parametrize(
    "asked",
    [
        *(asking(USER), asking(*TURNS), asking(USER, tools=[TOOL]), asking(*TURNS, tools=[TOOL])),
        *(FORMED, BEGUN),
    ],
    ids=["plain", "system and calls", "tools", "all", "schema", "an answer that was begun"],
)
async def test_the_tokens_number_what_the_model_reports_to_have_read(backend, asked):
    ids = await backend.tokenizer.ids(asked)
    assert len(ids) == (await backend.complete(asked)).usage.prompt


async def test_the_tokens_say_how_much_of_a_prompt_the_next_one_finds_warm(backend):
    first = asking({"role": "user", "content": "Name a river and a lake of the north. " * 4})
    second = asking({"role": "user", "content": "Name a river and a lake of the north. " * 3 + "!"})
    mine, its = [
        chain_of_ids(await backend.tokenizer.ids(each), block=1) for each in (first, second)
    ]
    await backend.complete(first)
    cached = (await backend.complete(second)).usage.cache_read
    assert 20 < cached == mine.shared_blocks(its) < its.tokens


async def test_prompt_and_answer_are_what_the_next_prompt_finds_warm(backend):
    tokenizer, answers = backend.tokenizer, {"max_tokens": 12, "temperature": 0}
    ask = {"role": "user", "content": "Write one sentence on the rivers of Norway."}
    first = ChatRequest(id="r", messages=[ask], params=answers)
    answer = await backend.complete(first)
    grown = (
        Chained.of_ids(await tokenizer.ids(first), block=1)
        .with_ids(await tokenizer.text_ids(answer.text))
        .chain
    )
    sent_back = {"role": "assistant", "content": answer.text}
    second = asking(ask, sent_back, {"role": "user", "content": "And its lakes?"})
    following = chain_of_ids(await tokenizer.ids(second), block=1)
    assert following.shared_blocks(grown) == grown.blocks
    cached = (await backend.complete(second)).usage.cache_read
    # What was said last is not in the cache yet when an answer is cut.
    assert grown.tokens - 1 <= cached <= grown.tokens


async def test_a_text_alone_has_its_tokens_and_no_others(backend):
    tokenizer = backend.tokenizer
    plain = list(await tokenizer.text_ids("The sum is 42."))
    whole = list(await tokenizer.ids(asking({"role": "user", "content": "The sum is 42."})))
    assert plain == whole[whole.index(plain[0]) :][: len(plain)]
    ending = whole[whole.index(plain[0]) + len(plain)]
    assert ending not in await tokenizer.text_ids("The sum is 42.<|im_end|>")
    assert await tokenizer.text_ids("") == []


async def test_a_conversation_that_grows_has_the_tokens_of_one_that_was_never_seen(
    backend, stranger
):
    odd = {"role": "assistant", "content": " \n It is <|im_end|> dry. "}
    said = [*TURNS, odd, USER, *TURNS[2:]]
    turns = [said[: at + 1] for at, each in enumerate(said) if each["role"] in {"user", "tool"}]
    for asked in (asking(*messages, tools=[TOOL]) for messages in turns):
        ids = await backend.tokenizer.ids(asked)
        assert len(ids) == await stranger.tokenizer.count(asked)
    assert ids == await stranger.tokenizer.ids(asked)


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
