import asyncio

import orjson
import pytest

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.types import ChatRequest
from tests.upstream import Upstream, serving

TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
TEXT = {"type": "text", "text": "hello"}
ANSWERS = {"llama_cpp": {"input_tokens": 12}, "vllm": {"count": 12, "max_model_len": 99}}
PATHS = {"llama_cpp": "/v1/chat/completions/input_tokens", "vllm": "/tokenize"}


@pytest.fixture
async def upstream():
    async with serving(Upstream()) as running:
        yield running


@pytest.fixture
async def count(upstream):
    backends = []

    async def counted(kind, url=None, **asked):
        backend = OpenAIHttpBackend(
            url=url or upstream.url, model="m", tokenizer=kind, api_key="k", first_token_seconds=9.0
        )
        backends.append(backend)
        told = {"messages": [{"role": "user", "content": "hi"}], **asked}
        return await backend.tokenizer.count(ChatRequest(id="r", **told))

    yield counted
    for backend in backends:
        await backend.aclose()


def answering(upstream, answer, status=200):
    upstream.status = status
    upstream.pieces = [answer if isinstance(answer, bytes) else orjson.dumps(answer)]


@pytest.mark.parametrize("kind", ANSWERS)
async def test_the_server_counts_messages_and_tools_as_the_model_would_get_them(
    upstream, count, kind
):
    answering(upstream, ANSWERS[kind])
    params = {"chat_template_kwargs": {"enable_thinking": False}, "temperature": 0}
    messages = [{"role": "user", "content": "hi"}]
    assert await count(kind, messages=messages, tools=[TOOL], params=params) == 12
    [body] = upstream.bodies
    assert (body["model"], body["messages"], body["tools"]) == ("m", messages, [TOOL])
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert ("temperature" in body) == (kind == "llama_cpp")
    assert upstream.paths == [PATHS[kind]]
    assert upstream.authorization == "Bearer k"


@pytest.mark.parametrize("kind", ANSWERS)
async def test_media_stay_here(upstream, count, kind):
    answering(upstream, ANSWERS[kind])
    await count(kind, messages=[{"role": "user", "content": [TEXT, IMAGE]}])
    assert upstream.bodies[0]["messages"] == [{"role": "user", "content": [TEXT]}]


async def test_vllm_counts_beside_the_base_address_wherever_that_is(upstream, count):
    answering(upstream, ANSWERS["vllm"])
    root = upstream.url.removesuffix("/v1")
    for url in (f"{root}/v1/", root, f"{root}/llm/v1"):
        assert await count("vllm", url=url) == 12
    assert upstream.paths == ["/tokenize", "/tokenize", "/llm/tokenize"]


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"not json", 200),
        (b"[1]", 200),
        ({}, 200),
        ({"count": None, "input_tokens": None}, 200),
        ({"count": "12", "input_tokens": True}, 200),
        ({"count": 0, "input_tokens": -1}, 200),
        ({"count": 12, "input_tokens": 12}, 404),
        ({"count": 12, "input_tokens": 12}, 503),
    ],
)
async def test_a_server_that_cannot_tell_leaves_the_count_unknown(
    upstream, count, kind, answer, status
):
    answering(upstream, answer, status)
    assert await count(kind) is None
    assert len(upstream.bodies) == 1


async def test_nobody_listening_and_a_cut_leave_the_count_unknown(upstream, count):
    assert await count("vllm", url="http://127.0.0.1:9/v1") is None
    upstream.pieces = [None]
    assert await count("vllm") is None


async def test_a_server_that_takes_its_time_is_not_waited_for(upstream, count):
    upstream.pieces = [30.0]
    async with asyncio.timeout(5):
        assert await count("vllm") is None


async def test_a_prompt_of_megabytes_is_counted(upstream, count):
    answering(upstream, ANSWERS["vllm"])
    assert await count("vllm", messages=[{"role": "user", "content": "x" * 3_000_000}]) == 12


def test_a_server_that_is_not_said_to_count_is_not_asked_to():
    assert OpenAIHttpBackend(url="http://127.0.0.1:9/v1", model="m").tokenizer is None


async def test_a_kept_connection_that_turns_out_closed_does_not_cost_the_count(upstream):
    answering(upstream, ANSWERS["vllm"])
    upstream.drops_reused = True
    backend = OpenAIHttpBackend(url=upstream.url, model="m", tokenizer="vllm")
    asked = ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}])
    assert [await backend.tokenizer.count(asked) for _ in range(3)] == [12, 12, 12]
    await backend.aclose()
