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


@pytest.fixture
async def tokenizer(upstream):
    backends = []

    def made(kind, url=None):
        backends.append(OpenAIHttpBackend(url=url or upstream.url, model="m", tokenizer=kind))
        return backends[-1].tokenizer

    yield made
    for backend in backends:
        await backend.aclose()


def asked(**overrides):
    return ChatRequest(id="r", **{"messages": [{"role": "user", "content": "hi"}], **overrides})


async def test_llama_cpp_writes_the_prompt_down_and_then_cuts_it(upstream, tokenizer):
    answering(upstream, {"prompt": "<s>hi", "tokens": [1, 5, 9]})
    form = {"type": "json_object"}
    request = asked(tools=[TOOL], params={"response_format": form})
    assert await tokenizer("llama_cpp").ids(request) == [1, 5, 9]
    assert upstream.paths == ["/apply-template", "/apply-template", "/tokenize"]
    written, looked_at, cut = upstream.bodies
    assert "tools" not in looked_at
    assert (written["messages"], written["tools"]) == (request.messages, [TOOL])
    assert written["response_format"] == form
    assert cut == {"model": "m", "content": "<s>hi", "add_special": True, "parse_special": True}


async def test_vllm_tells_the_tokens_in_one_go(upstream, tokenizer):
    answering(upstream, {"count": 3, "tokens": [1, 5, 9]})
    request = asked(tools=[TOOL], params={"temperature": 0, "add_generation_prompt": True})
    assert await tokenizer("vllm").ids(request) == [1, 5, 9]
    [body] = upstream.bodies
    assert body == {
        "model": "m",
        "messages": request.messages,
        "tools": [TOOL],
        "add_generation_prompt": True,
    }


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("llama_cpp", {"content": "so", "add_special": False, "parse_special": False}),
        ("vllm", {"prompt": "so", "add_special_tokens": False}),
    ],
)
async def test_a_text_is_cut_without_special_tokens(upstream, tokenizer, kind, body):
    answering(upstream, {"tokens": [7]})
    assert await tokenizer(kind).text_ids("so") == [7]
    assert (upstream.paths, upstream.bodies) == (["/tokenize"], [{"model": "m", **body}])
    answering(upstream, {"tokens": []})
    assert await tokenizer(kind).text_ids("") == []


@pytest.mark.parametrize("kind", ANSWERS)
async def test_the_tokens_of_turns_that_only_call_tools_are_told(upstream, tokenizer, kind):
    answering(upstream, {"prompt": "<s>", "tokens": [1]})
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "user", "content": [TEXT]},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "rain"},
    ]
    assert await tokenizer(kind).ids(asked(messages=turns)) == [1]


@pytest.mark.parametrize("kind", ANSWERS)
async def test_the_tokens_of_a_prompt_with_an_image_are_not_told(upstream, tokenizer, kind):
    answering(upstream, {"prompt": "<s>", "tokens": [1]})
    shown = [{"role": "user", "content": [TEXT, IMAGE]}]
    assert await tokenizer(kind).ids(asked(messages=shown)) is None
    assert upstream.bodies == []


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"not json", 200),
        ({"prompt": "<s>"}, 200),
        ({"prompt": "<s>", "tokens": []}, 200),
        ({"prompt": "<s>", "tokens": ["1"]}, 200),
        ({"prompt": "<s>", "tokens": [1, True]}, 200),
        ({"prompt": "<s>", "tokens": [{"id": 1, "piece": "a"}]}, 200),
        ({"prompt": "<s>", "tokens": [1]}, 501),
    ],
)
async def test_a_server_that_tells_no_tokens_leaves_them_unknown(
    upstream, tokenizer, kind, answer, status
):
    answering(upstream, answer, status)
    assert await tokenizer(kind).ids(asked()) is None


async def test_a_template_that_gives_no_prompt_leaves_its_tokens_unknown(upstream, tokenizer):
    answering(upstream, {"prompt": None, "tokens": [1]})
    assert await tokenizer("llama_cpp").ids(asked()) is None
    assert upstream.paths == ["/apply-template"]


async def test_tokens_that_take_their_time_are_not_waited_for(upstream, tokenizer):
    upstream.pieces = [30.0]
    async with asyncio.timeout(5):
        assert await tokenizer("llama_cpp").ids(asked()) is None
    assert await tokenizer("vllm", url="http://127.0.0.1:9/v1").text_ids("hi") is None


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
