import asyncio

import pytest
from aiohttp import web

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.errors import (
    BackendAuthError,
    BackendConnectionError,
    BackendOverloadedError,
    BackendProtocolError,
    BackendRefusedError,
    BackendServerError,
    BackendSetupError,
    BackendTimeoutError,
    BackendUnreachableError,
)
from cascade.types import ChatRequest, Usage
from tests.upstream import DONE, Upstream, event, serving, words

REPORT = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 5},
}


@pytest.fixture
async def upstream():
    async with serving(Upstream()) as running:
        yield running


@pytest.fixture
async def ask(upstream):
    backends = []

    def make(params=None, tools=None, messages=None, **options):
        backend = OpenAIHttpBackend(url=upstream.url, model="m", **options)
        backends.append(backend)
        asked = ChatRequest(
            id="r",
            messages=messages or [{"role": "user", "content": "hi"}],
            params=params or {},
            tools=tools,
        )
        return backend.stream(asked)

    yield make
    for backend in backends:
        await backend.aclose()


async def drain(stream):
    return [chunk async for chunk in stream]


async def test_an_answer_comes_in_pieces_and_then_whole(upstream, ask):
    upstream.pieces = [*words("one", " two", usage=REPORT), DONE]
    chunks = await drain(ask())
    completion = chunks[-1].completion
    assert completion.text == "one two"
    assert completion.finish_reason == "stop"
    assert completion.model == "m-1"
    assert completion.usage == Usage(input=40, cache_read=60, output=15, reasoning=5)
    assert completion.replica == upstream.url.removeprefix("http://").removesuffix("/v1")
    assert len(chunks) == 5


async def test_events_may_be_cut_anywhere(upstream, ask):
    whole = b"".join([*words("one", " tüo"), DONE])
    upstream.pieces = [whole[i : i + 7] for i in range(0, len(whole), 7)]
    assert (await drain(ask()))[-1].completion.text == "one tüo"


async def test_a_very_long_line_is_read(upstream, ask):
    upstream.pieces = [*words("x" * 600_000), DONE]
    assert len((await drain(ask()))[-1].completion.text) == 600_000


async def test_comments_and_carriage_returns_are_no_trouble(upstream, ask):
    upstream.pieces = [b": ping\r\n\r\n", *[e.replace(b"\n", b"\r\n") for e in words("a")], DONE]
    assert (await drain(ask()))[-1].completion.text == "a"


async def test_what_the_client_sent_reaches_the_model_untouched(upstream, ask):
    upstream.pieces = [*words("a"), DONE]
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}], "x": 1},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ]
    params = {"temperature": 0, "logit_bias": {"5": 1}, "seed": 7, "unheard_of": [1, None]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    await drain(ask(params=params, tools=tools, messages=messages))
    assert upstream.bodies == [
        {
            **params,
            "model": "m",
            "messages": messages,
            "tools": tools,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


async def test_a_prompt_of_megabytes_arrives(upstream, ask):
    upstream.pieces = [*words("a"), DONE]
    await drain(ask(messages=[{"role": "user", "content": "x" * 3_000_000}]))
    assert len(upstream.bodies[0]["messages"][0]["content"]) == 3_000_000


async def test_logprobs_are_gathered_over_the_pieces(upstream, ask):
    def piece(token, logprob):
        entry = {"token": token, "logprob": logprob, "bytes": list(token.encode())}
        choice = {"index": 0, "delta": {"content": token}, "logprobs": {"content": [entry]}}
        return event({"choices": [choice]})

    upstream.pieces = [piece("a", -0.1), piece("b", -0.2), *words()[1:], DONE]
    completion = (await drain(ask()))[-1].completion
    assert [entry["logprob"] for entry in completion.logprobs] == [-0.1, -0.2]


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
    completion = (await drain(ask()))[-1].completion
    assert completion.tool_calls == (
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
    )


async def test_choices_are_kept_apart_and_unknown_fields_kept(upstream, ask):
    def piece(index, text, finish=None):
        delta = {"content": text, "reasoning_content": "hm "}
        return event({"choices": [{"index": index, "delta": delta, "finish_reason": finish}]})

    upstream.pieces = [piece(1, "b"), piece(0, "a"), piece(1, "b", "stop"), piece(0, "a", "stop")]
    completion = (await drain(ask()))[-1].completion
    assert [choice.text for choice in completion.choices] == ["aa", "bb"]
    assert completion.choices[0].extra == {"reasoning_content": "hm hm "}


async def test_usage_that_is_not_reported_is_unknown_not_zero(upstream, ask):
    upstream.pieces = [*words("a"), DONE]
    assert (await drain(ask()))[-1].completion.usage == Usage()
    upstream.pieces = [
        *words(
            "a", usage={"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": None}
        ),
        DONE,
    ]
    assert (await drain(ask()))[-1].completion.usage == Usage(input=5, output=1)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BackendRefusedError),
        (401, BackendAuthError),
        (402, BackendAuthError),
        (403, BackendAuthError),
        (404, BackendSetupError),
        (405, BackendSetupError),
        (408, BackendTimeoutError),
        (409, BackendSetupError),
        (410, BackendSetupError),
        (413, BackendRefusedError),
        (422, BackendRefusedError),
        (424, BackendServerError),
        (429, BackendOverloadedError),
        (500, BackendServerError),
        (503, BackendServerError),
    ],
)
async def test_a_status_becomes_the_error_that_says_what_can_be_done(upstream, ask, status, kind):
    upstream.status = status
    upstream.headers = {"Retry-After": "7"}
    upstream.pieces = [b'{"error": {"message": "because"}}']
    with pytest.raises(kind, match="because") as caught:
        await drain(ask())
    assert type(caught.value) is kind
    if status in {429, 500, 503}:
        assert caught.value.retry_after == 7.0


async def salts(upstream, *requests, key=b"k" * 32):
    upstream.pieces = [*words("a"), DONE]
    backend = OpenAIHttpBackend(url=upstream.url, model="m", salt_key=key)
    for tenant, params in requests:
        asked = ChatRequest(id="r", tenant=tenant, messages=[], params=params)
        await backend.complete(asked)
    await backend.aclose()
    return [body.get("cache_salt") for body in upstream.bodies]


async def test_each_tenant_has_a_salt_of_its_own_that_stays(upstream):
    a, b, again = await salts(upstream, ("a", {}), ("b", {}), ("a", {"seed": 1}))
    assert a == again
    assert a != b
    assert len({a, b, "a", "b"}) == 4


async def test_a_salt_that_a_client_sends_divides_its_own_tenants_cache_only(upstream):
    theirs = {"cache_salt": "s"}
    plain, a, b, again = await salts(
        upstream, ("a", {}), ("a", theirs), ("b", theirs), ("a", theirs)
    )
    assert a == again
    assert len({plain, a, b, "s"}) == 4


async def test_a_salt_cannot_be_made_without_the_key_and_without_one_nothing_is_salted(upstream):
    [mine] = await salts(upstream, ("a", {}))
    [_, other] = await salts(upstream, ("a", {}), key=b"o" * 32)
    assert mine != other
    [*_, none, theirs] = await salts(upstream, ("a", {}), ("a", {"cache_salt": "s"}), key=None)
    assert (none, theirs) == (None, "s")


async def test_a_cut_is_an_error_however_it_comes(upstream, ask):
    upstream.pieces = [*words("a", finish=None), None]
    with pytest.raises(BackendConnectionError):
        await drain(ask())
    upstream.pieces = words("a", finish=None)
    with pytest.raises(BackendConnectionError, match="cut"):
        await drain(ask())


async def test_a_finished_answer_without_done_is_whole(upstream, ask):
    upstream.pieces = words("a")
    assert (await drain(ask()))[-1].completion.text == "a"


@pytest.mark.parametrize(
    "data",
    [
        b"not json",
        b"[1]",
        b"3",
        b'{"choices": "x"}',
        b'{"choices": [null]}',
        b'{"choices": [{"delta": "x"}]}',
        b'{"choices": [{"delta": {"content": ["x"]}}]}',
        b'{"choices": [{"index": null, "delta": {}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"index": null}]}}]}',
        b'{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "f"}]}}]}',
        b'{"choices": [{"delta": {"thinking_blocks": ["x"]}}]}',
        b'{"choices": [{"delta": {"thinking_blocks": {"type": "thinking"}}}]}',
        b'{"choices": [{"delta": {"thinking_blocks": [{"thinking": 3}]}}]}',
        b'{"choices": [{"delta": {}, "logprobs": {"content": [3]}}]}',
        b'{"choices": [], "usage": [1]}',
        b'{"choices": [], "model": 4}',
    ],
)
async def test_what_is_no_event_is_a_protocol_error(upstream, ask, data):
    upstream.pieces = [event(data), DONE]
    with pytest.raises(BackendProtocolError):
        await drain(ask())


async def test_an_empty_stream_is_a_protocol_error(upstream, ask):
    upstream.pieces = [DONE]
    with pytest.raises(BackendProtocolError, match="without an answer"):
        await drain(ask())


async def test_an_error_in_the_stream_is_an_error(upstream, ask):
    upstream.pieces = [*words("a", finish=None), event({"error": {"message": "out of memory"}})]
    with pytest.raises(BackendServerError, match="out of memory"):
        await drain(ask())


async def test_nobody_listening_is_a_connection_error():
    backend = OpenAIHttpBackend(url="http://127.0.0.1:9/v1", model="m")
    with pytest.raises(BackendUnreachableError):
        await drain(backend.stream(ChatRequest(id="r", messages=[])))
    await backend.aclose()


async def test_a_late_first_token_and_a_late_end_are_timeouts(upstream, ask):
    upstream.pieces = [5.0, *words("a")]
    with pytest.raises(BackendTimeoutError, match=r"no token in 0\.05 s"):
        await drain(ask(first_token_seconds=0.05))
    upstream.pieces = [words("a", finish=None)[1], 5.0]
    with pytest.raises(BackendTimeoutError):
        await drain(ask(total_seconds=0.1))


@pytest.mark.parametrize("start", [b": still here\n\n", words(finish=None)[0]])
async def test_what_carries_nothing_of_the_answer_is_no_first_token(upstream, ask, start):
    upstream.pieces = [start, 0.02, start, 5.0, *words("a")]
    with pytest.raises(BackendTimeoutError, match=r"no token in 0\.1 s"):
        await drain(ask(first_token_seconds=0.1))


async def test_an_answer_that_has_begun_may_take_longer_than_its_first_token(upstream, ask):
    upstream.pieces = [*words("a", finish=None), 0.2, *words(" b"), DONE]
    assert (await drain(ask(first_token_seconds=0.1)))[-1].completion.text == "a b"


async def test_leaving_the_stream_closes_the_connection(upstream, ask):
    upstream.pieces = [*words("a", finish=None), 30.0]
    stream = ask()
    await anext(stream)
    await stream.aclose()
    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_a_kept_connection_that_turns_out_closed_is_no_failure(upstream):
    upstream.pieces = [*words("a"), DONE]
    upstream.drops_reused = True
    backend = OpenAIHttpBackend(url=upstream.url, model="m")
    for _ in range(4):
        assert (await backend.complete(ChatRequest(id="r", messages=[]))).text == "a"
    await backend.aclose()
    assert len(upstream.connections) == 4


class Breaking(Upstream):
    """Takes a request, and after a while breaks the connection without an answer."""

    good = 0
    works_seconds = 0.0

    async def handle(self, http):
        if len(self.bodies) < self.good:
            return await super().handle(http)
        self.bodies.append(await http.read())
        await asyncio.sleep(self.works_seconds)
        http.transport.abort()
        return web.Response()


@pytest.mark.parametrize(("good", "works_seconds"), [(0, 0.0), (1, 0.6)])
async def test_work_that_was_lost_is_told_and_not_done_again_unseen(good, works_seconds):
    async with serving(Breaking(pieces=[*words("a"), DONE])) as upstream:
        upstream.good, upstream.works_seconds = good, works_seconds
        backend = OpenAIHttpBackend(url=upstream.url, model="m")
        for _ in range(good):
            await backend.complete(ChatRequest(id="r", messages=[]))
        with pytest.raises(BackendConnectionError) as caught:
            await backend.complete(ChatRequest(id="r", messages=[]))
        await backend.aclose()
        assert caught.value.may_have_cost
        assert len(upstream.bodies) == good + 1


async def test_connections_are_kept_and_the_key_is_sent(upstream):
    upstream.pieces = [*words("a"), DONE]
    backend = OpenAIHttpBackend(url=upstream.url, model="m", api_key="s3cret")
    for _ in range(3):
        await backend.complete(ChatRequest(id="r", messages=[]))
    await backend.aclose()
    assert len(upstream.connections) == 1
    assert len(upstream.bodies) == 3
    assert upstream.authorization == "Bearer s3cret"
