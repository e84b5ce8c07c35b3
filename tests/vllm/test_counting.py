"""What the real vLLM counts is what it charges for, and its window ends where the count says."""

from uuid import uuid4

import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.errors import BackendRefusedError
from cascade.types import ChatRequest
from tests.vllm.servers import BIG_PORT, SMALL_PORT

WINDOW = 4096
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
TURNS = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "How is the weather?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "user", "content": [{"type": "text", "text": "And tomorrow?"}]},
]


@pytest.fixture(params=[("small", SMALL_PORT), ("big-ft", BIG_PORT)], ids=["base", "adapter"])
async def backend(vllm, request):
    model, port = request.param
    made = OpenAIHttpBackend(url=f"http://127.0.0.1:{port}/v1", model=model, tokenizer="vllm")
    yield made
    await made.aclose()


def asking(*messages, tools=None):
    return ChatRequest(id="r", messages=messages, tools=tools, params={"max_tokens": 1})


@pytest.mark.parametrize("tools", [None, [TOOL]], ids=["without tools", "with tools"])
async def test_the_count_is_what_the_model_reports_to_have_read(backend, tools):
    asked = asking(*TURNS, tools=tools)
    counted = await backend.tokenizer.count(asked)
    assert counted == (await backend.complete(asked)).usage.prompt


@pytest.mark.parametrize("tools", [None, [TOOL]], ids=["without tools", "with tools"])
async def test_the_tokens_number_what_the_model_reports_to_have_read(backend, tools):
    asked = asking(*TURNS, tools=tools)
    ids = await backend.tokenizer.ids(asked)
    assert len(ids) == (await backend.complete(asked)).usage.prompt


async def test_a_text_alone_has_the_tokens_that_it_has_in_a_prompt(backend):
    plain = await backend.tokenizer.text_ids("The sum is 42.")
    whole = await backend.tokenizer.ids(asking({"role": "user", "content": "The sum is 42."}))
    starts = range(len(whole) - len(plain) + 1)
    assert any(whole[at : at + len(plain)] == plain for at in starts)


async def test_a_prompt_that_fills_the_window_is_counted_and_refused(backend):
    spare = WINDOW - await backend.tokenizer.count(asking({"role": "user", "content": "word"}))
    asked = asking({"role": "user", "content": "word" + " word" * spare})
    assert await backend.tokenizer.count(asked) == WINDOW
    with pytest.raises(BackendRefusedError):
        await backend.complete(asked)


async def test_tenants_with_salts_of_their_own_never_share_the_cache(vllm):
    salted = OpenAIHttpBackend(
        url=f"http://127.0.0.1:{SMALL_PORT}/v1", model="small", salt_key=b"k" * 32
    )
    text = f"{uuid4()} here is a list of words. " + "apple pear plum cherry " * 60
    message = {"role": "user", "content": text}
    read = []
    for tenant in ("a", "a", "b"):
        asked = ChatRequest(id="r", tenant=tenant, messages=[message], params={"max_tokens": 1})
        read.append((await salted.complete(asked)).usage.cache_read)
    await salted.aclose()
    assert read[1] > 100
    assert read[0] == read[2] == 0
