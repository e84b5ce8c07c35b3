import asyncio
import subprocess
import sys
from copy import deepcopy

import orjson
import pytest

from cascade.backends.litellm_api import LitellmBackend
from cascade.errors import (
    BackendAuthError,
    BackendConnectionError,
    BackendOverloadedError,
    BackendProtocolError,
    BackendRefusedError,
    BackendServerError,
    BackendTimeoutError,
    BackendUnreachableError,
    ConfigError,
)
from cascade.types import ChatRequest, Usage
from tests import anthropic
from tests.upstream import DONE, Upstream, event, serving, words

CLAUDE = "anthropic/claude-sonnet-4-6"
HELLO = [{"role": "user", "content": "hi"}]
ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


@pytest.fixture
async def upstream():
    async with serving(Upstream(headers={"Content-Type": "text/event-stream"})) as running:
        yield running


@pytest.fixture
async def make(upstream):
    backends = []

    def build(model="openai/m", **options):
        url = upstream.url.removesuffix("/v1") if model == CLAUDE else upstream.url
        backends.append(LitellmBackend(**{"model": model, "url": url, "api_key": "k", **options}))
        return backends[-1]

    yield build
    for backend in backends:
        await backend.aclose()


@pytest.fixture
def ask(make):
    def stream(params=None, tools=None, messages=HELLO, **options):
        request = ChatRequest(id="r", messages=messages, params=params or {}, tools=tools)
        return make(**options).stream(request)

    return stream


async def drain(stream):
    return [chunk async for chunk in stream]


def whole(*choices, **fields):
    return [orjson.dumps({"model": "m-1", "choices": choices, **fields})]


def said(upstream, *texts):
    upstream.pieces = [*words(*texts), DONE]


async def test_an_answer_comes_in_pieces_and_then_whole(upstream, ask):
    report = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    upstream.pieces = [*words("one", " two", usage=report), DONE]
    chunks = await drain(ask())
    completion = chunks[-1].completion
    assert [c["delta"].get("content") for k in chunks for c in k.choices if c["delta"]][-2:] == [
        "one",
        " two",
    ]
    assert (completion.text, completion.finish_reason, completion.model) == (
        "one two",
        "stop",
        "m-1",
    )
    assert completion.usage == Usage(input=40, cache_read=60, output=15, reasoning=5)


async def test_what_the_client_sent_reaches_the_model_untouched(upstream, ask):
    said(upstream, "a")
    messages = [
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
            "x": 1,
        },
        {"role": "tool", "tool_call_id": "1", "content": "r"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ]
    params = {
        "temperature": 0,
        "logit_bias": {"5": 1},
        "seed": 7,
        "stop": ["a", "b", "c", "d", "e", "f"],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}},
        "user": "u",
        "metadata": {"a": "b"},
        "unheard_of": [1, None],
    }
    await drain(ask(params=params, tools=[ADD], messages=messages))
    assert upstream.bodies == [
        {
            **params,
            "model": "m",
            "messages": messages,
            "tools": [ADD],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


async def test_null_content_beside_tool_calls_is_taken(upstream, ask):
    said(upstream, "a")
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    before = deepcopy(messages)
    await drain(ask(messages=messages))
    assert upstream.bodies[0]["messages"][0]["tool_calls"] == [call]
    assert messages == before


SWITCHES = {
    "api_base": "http://192.0.2.1",
    "api_key": "theirs",
    "extra_headers": {"Authorization": "theirs"},
    "mock_response": "made up",
    "fallbacks": ["openai/other"],
    "num_retries": 5,
}


async def test_a_client_cannot_turn_litellms_own_switches(upstream, ask):
    said(upstream, "a")
    chunks = await drain(ask(params=SWITCHES))
    assert chunks[-1].completion.text == "a"
    assert upstream.authorization == "Bearer k"
    assert SWITCHES.items() <= upstream.bodies[0].items()


@pytest.mark.parametrize("name", [*SWITCHES, "n", "logprobs", "unheard_of"])
async def test_what_cannot_go_to_a_provider_is_refused_and_not_lost(upstream, ask, name):
    value = SWITCHES.get(name, 2)
    with pytest.raises(BackendRefusedError, match=f"takes no {name}"):
        await drain(ask(model=CLAUDE, params={name: value}))
    assert upstream.bodies == []


async def test_fields_are_put_into_the_providers_words(upstream, ask):
    upstream.pieces = anthropic.message("ok", usage={"input_tokens": 3, "output_tokens": 1})
    params = {"max_tokens": 9, "stop": ["x"], "tool_choice": "required", "top_k": 4, "store": True}
    chunks = await drain(ask(model=CLAUDE, params=params, tools=[ADD]))
    assert chunks[-1].completion.text == "ok"
    assert chunks[-1].completion.model == "claude-1"
    body = upstream.bodies[0]
    assert (body["max_tokens"], body["stop_sequences"], body["top_k"]) == (9, ["x"], 4)
    assert body["tool_choice"] == {"type": "any"}
    assert body["tools"][0]["input_schema"]["type"] == "object"
    assert "store" not in body


async def test_the_operators_extra_arguments_go_along_and_the_clients_fields_win(upstream, ask):
    said(upstream, "a")
    extra = {"temperature": 1, "seed": 1, "extra_body": {"route": "x"}}
    await drain(ask(params={"temperature": 0, "other": 1}, extra=extra))
    body = upstream.bodies[0]
    assert (body["temperature"], body["seed"], body["route"], body["other"]) == (0, 1, "x", 1)


async def test_tool_calls_are_put_together_from_their_pieces(upstream, ask):
    def piece(**call):
        return event({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]})

    upstream.pieces = [
        piece(id="c1", type="function", function={"name": "add", "arguments": ""}),
        piece(function={"arguments": '{"a"'}),
        piece(function={"arguments": ": 1}"}),
        *words(finish="tool_calls")[1:],
        DONE,
    ]
    completion = (await drain(ask(tools=[ADD])))[-1].completion
    assert completion.tool_calls == (
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    )
    assert completion.finish_reason == "tool_calls"


async def test_fields_of_the_answer_that_are_not_known_are_kept(upstream, ask):
    upstream.pieces = [*words("a", reasoning_content="hm"), DONE]
    assert (await drain(ask()))[-1].completion.choices[0].extra == {"reasoning_content": "hm"}


async def test_every_log_probability_arrives_also_of_a_token_without_text(upstream, ask):
    entries = [
        {"token": token, "logprob": logprob, "bytes": None, "top_logprobs": []}
        for token, logprob in [("a", -0.1), ("", -0.2), ("b", -0.3)]
    ]
    upstream.headers = {"Content-Type": "application/json"}
    upstream.pieces = whole(
        {
            "index": 0,
            "message": {"content": "ab"},
            "finish_reason": "stop",
            "logprobs": {"content": entries},
        }
    )
    chunks = await drain(ask(params={"logprobs": True, "top_logprobs": 0}))
    assert [entry["logprob"] for entry in chunks[-1].completion.logprobs] == [-0.1, -0.2, -0.3]
    assert chunks[0].choices[0]["delta"]["content"] == "ab"
    assert upstream.bodies[0]["logprobs"] is True


async def test_several_choices_are_kept_apart_with_their_ends(upstream, ask):
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for i in range(2)
    ]
    upstream.headers = {"Content-Type": "application/json"}
    upstream.pieces = whole(
        {"index": 0, "message": {"content": "a"}, "finish_reason": "length"},
        {"index": 1, "message": {"content": None, "tool_calls": calls}, "finish_reason": "stop"},
    )
    completion = (await drain(ask(params={"n": 2})))[-1].completion
    assert [choice.text for choice in completion.choices] == ["a", ""]
    assert completion.choices[0].finish_reason == "length"
    assert completion.choices[1].tool_calls == tuple(calls)
    assert completion.usage == Usage()


async def test_usage_that_is_not_reported_is_unknown_not_guessed(upstream, ask):
    said(upstream, "a")
    assert (await drain(ask()))[-1].completion.usage == Usage()
    report = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": None}
    upstream.pieces = [*words("a", usage=report), DONE]
    assert (await drain(ask()))[-1].completion.usage == Usage(input=5, output=1)


async def test_a_model_may_repeat_itself(upstream, ask):
    said(upstream, *["again "] * 150)
    assert (await drain(ask()))[-1].completion.text == "again " * 150


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BackendRefusedError),
        (401, BackendAuthError),
        (403, BackendAuthError),
        (404, BackendServerError),
        (408, BackendTimeoutError),
        (413, BackendRefusedError),
        (422, BackendRefusedError),
        (429, BackendOverloadedError),
        (500, BackendServerError),
        (502, BackendServerError),
        (503, BackendServerError),
        (529, BackendServerError),
    ],
)
async def test_a_status_becomes_the_error_that_says_what_can_be_done(
    upstream, ask, model, status, kind
):
    upstream.status = status
    upstream.headers = {"Retry-After": "7", "Content-Type": "application/json"}
    upstream.pieces = [b'{"error": {"message": "because"}}']
    with pytest.raises(kind, match="because") as caught:
        await drain(ask(model=model))
    assert type(caught.value) is kind
    assert len(upstream.bodies) == 1
    if status == 429:
        assert caught.value.retry_after == 7.0


async def test_a_prompt_that_is_too_long_is_the_requests_fault(upstream, ask):
    upstream.status = 400
    upstream.pieces = [
        b'{"error": {"message": "maximum context length is 9", "code": "context_length_exceeded"}}'
    ]
    with pytest.raises(BackendRefusedError, match="maximum context length"):
        await drain(ask())


async def test_a_parameter_that_litellm_cannot_translate_is_the_requests_fault(upstream, ask):
    with pytest.raises(BackendRefusedError):
        await drain(ask(params={"tool_choice": 5}))
    with pytest.raises(BackendRefusedError):
        await drain(ask(params={"response_format": "json"}))
    with pytest.raises(BackendRefusedError):
        await drain(ask(model=CLAUDE, tools=[{"type": "function"}]))
    assert upstream.bodies == []


@pytest.mark.parametrize("end", [[], [None], [DONE]])
async def test_a_cut_is_an_error_however_it_comes(upstream, ask, end):
    upstream.pieces = [*words("a", finish=None), *end]
    with pytest.raises(BackendConnectionError):
        await drain(ask())


@pytest.mark.parametrize("end", [[], [None]])
async def test_a_cut_of_the_other_shape_is_an_error_as_well(upstream, ask, end):
    upstream.pieces = [*anthropic.message("a", usage={"input_tokens": 3}, stop=None), *end]
    with pytest.raises(BackendConnectionError):
        await drain(ask(model=CLAUDE))


async def test_an_empty_stream_is_no_answer(upstream, ask):
    upstream.pieces = [DONE]
    with pytest.raises(BackendProtocolError, match="before the answer was finished"):
        await anext(ask())


async def test_what_is_no_event_is_a_protocol_error(upstream, ask):
    upstream.pieces = [event(b"not json"), DONE]
    with pytest.raises(BackendProtocolError):
        await drain(ask())


async def test_an_error_in_the_stream_is_an_error(upstream, ask):
    upstream.pieces = [*words("a", finish=None), event({"error": {"message": "out of memory"}})]
    with pytest.raises(BackendServerError, match="out of memory"):
        await drain(ask())
    overloaded = {"type": "overloaded_error", "message": "Overloaded"}
    upstream.pieces = [
        *anthropic.message("a", usage={"input_tokens": 3}, stop=None),
        anthropic.event("error", error=overloaded),
    ]
    with pytest.raises(BackendServerError, match="Overloaded"):
        await drain(ask(model=CLAUDE))


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
async def test_nobody_listening_is_unreachable(make, model):
    with pytest.raises(BackendUnreachableError):
        await make(model=model, url="http://127.0.0.1:9").complete(
            ChatRequest(id="r", messages=HELLO)
        )


async def test_a_missing_key_is_the_operators_fault(make, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(BackendAuthError, match="credentials"):
        await make(api_key=None).complete(ChatRequest(id="r", messages=HELLO))


async def test_a_late_first_token_and_a_late_end_are_timeouts(upstream, ask):
    said(upstream, "a")
    await drain(ask())
    upstream.pieces = [5.0, *words("a")]
    with pytest.raises(BackendTimeoutError, match=r"no token in 0\.2 s"):
        await drain(ask(first_token_seconds=0.2))
    upstream.pieces = [*words("a", finish=None), 5.0]
    with pytest.raises(BackendTimeoutError, match=r"no whole answer in 0\.5 s"):
        await drain(ask(total_seconds=0.5))
    with pytest.raises(BackendTimeoutError, match=r"no whole answer in 0\.5 s"):
        await drain(ask(total_seconds=0.5, first_token_seconds=0.1, params={"n": 2}))


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
async def test_leaving_the_stream_closes_the_connection(upstream, ask, model):
    answer = (
        anthropic.message("a", usage={"input_tokens": 3}, stop=None)
        if model == CLAUDE
        else words("a", finish=None)
    )
    upstream.pieces = [*answer, 30.0]
    stream = ask(model=model)
    await anext(stream)
    await stream.aclose()
    async with asyncio.timeout(5):
        await upstream.left.wait()


@pytest.mark.parametrize("params", [{}, {"n": 2}])
async def test_a_caller_that_leaves_before_the_answer_closes_the_connection(upstream, ask, params):
    upstream.pieces = [30.0]
    reading = asyncio.create_task(drain(ask(params=params)))
    async with asyncio.timeout(20):
        while not upstream.bodies:
            await asyncio.sleep(0.01)
        reading.cancel()
        await upstream.left.wait()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_connections_are_kept(upstream, make):
    said(upstream, "a")
    backend = make()
    for _ in range(3):
        await backend.complete(ChatRequest(id="r", messages=HELLO))
    assert len(upstream.bodies) == 3
    assert len(upstream.connections) == 1


async def test_a_model_without_a_known_provider_is_refused_as_configuration():
    backend = LitellmBackend(model="nonesuch/model")
    with pytest.raises(ConfigError, match="knows no provider of 'nonesuch/model'") as caught:
        await backend.complete(ChatRequest(id="r", messages=HELLO))
    assert caught.value.param == "model"


def test_an_extra_argument_that_another_key_sets_is_refused_by_name():
    with pytest.raises(ConfigError, match="other keys") as caught:
        LitellmBackend(model="openai/m", extra={"api_key": "k"})
    assert caught.value.param == "extra.api_key"


def test_a_missing_litellm_is_told_with_the_command_that_mends_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ConfigError, match=r"pip install 'cascade-router\[litellm\]'"):
        LitellmBackend(model="openai/m")


FIRST_USE = """
import asyncio, os, sys
from cascade.backends.litellm_api import LitellmBackend
from cascade.errors import BackendUnreachableError
from cascade.types import ChatRequest

def refuse(event, arguments):
    if event == "socket.getaddrinfo" and arguments[0] != "127.0.0.1":
        os._exit(3)

async def main():
    sys.addaudithook(refuse)
    backend = LitellmBackend(model="openai/m", url="http://127.0.0.1:9/v1", api_key="k")
    assert "litellm" not in sys.modules
    asking = asyncio.ensure_future(
        backend.complete(ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}]))
    )
    turns = 0
    while "litellm.main" not in sys.modules:
        await asyncio.sleep(0.01)
        turns += 1
    assert turns >= 10, f"the event loop was held: {turns} turns"
    try:
        await asking
    except BackendUnreachableError:
        pass
    assert "FROM_A_FILE" not in os.environ
    await backend.aclose()

asyncio.run(main())
"""


def test_the_first_use_holds_nothing_up_reads_no_file_and_says_nothing(tmp_path):
    (tmp_path / ".env").write_text("FROM_A_FILE=1\n")
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", FIRST_USE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("model", ["openai/m", CLAUDE])
async def test_a_backend_goes_on_when_another_for_the_same_model_is_closed(upstream, make, model):
    usage = {"input_tokens": 3, "output_tokens": 1}
    upstream.pieces = (
        anthropic.message("a", usage=usage) if model == CLAUDE else [*words("a"), DONE]
    )
    first, second = make(model=model), make(model=model)
    await first.complete(ChatRequest(id="r", messages=HELLO))
    await first.aclose()
    for _ in range(2):
        assert (await second.complete(ChatRequest(id="r", messages=HELLO))).text == "a"
