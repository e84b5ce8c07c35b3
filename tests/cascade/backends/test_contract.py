"""What every backend in the registry must do; a new line there brings these tests with it."""

from contextlib import asynccontextmanager

import pytest

from cascade.backends.registry import BACKENDS
from cascade.backends.replicas import Replica, ReplicasBackend
from cascade.errors import BackendConnectionError, BackendError
from cascade.registry import load
from cascade.types import ChatRequest
from tests.guards import cooling, guarded, limited, retrying
from tests.upstream import DONE, Upstream, serving, words


@asynccontextmanager
async def openai_http(make, *, cut=False):
    end = [None] if cut else [DONE]
    answer = words("one", " two", finish=None if cut else "stop")
    async with serving(Upstream(pieces=[*answer, *end])) as upstream:
        yield make(url=upstream.url, model="m"), lambda: len(upstream.bodies)


@asynccontextmanager
async def litellm_api(make, *, cut=False):
    end = [None] if cut else [DONE]
    answer = words("one", " two", finish=None if cut else "stop")
    async with serving(Upstream(pieces=[*answer, *end])) as upstream:
        yield make(url=upstream.url, model="openai/m", api_key="k"), lambda: len(upstream.bodies)


@asynccontextmanager
async def scripted(make, *, cut=False):
    backend = make(answers=[{"text": "one two", "cut_after": 1 if cut else None}])
    yield backend, lambda: len(backend.requests)


PLAYED_BY = {"litellm_api": litellm_api, "openai_http": openai_http, "scripted": scripted}
REQUEST = ChatRequest(id="r", messages=[{"role": "user", "content": "hi"}])


def test_every_backend_has_a_way_to_be_played():
    assert PLAYED_BY.keys() == BACKENDS.keys()


WRAPPED_IN = {
    "nothing": lambda backend: backend,
    "retries": retrying,
    "limit": limited,
    "cool-down": cooling,
    "all three": guarded,
    "replicas": lambda backend: ReplicasBackend({"one": Replica(backend=backend)}),
}


@pytest.fixture(params=sorted(BACKENDS))
def name(request):
    return request.param


@pytest.fixture(params=WRAPPED_IN)
def play(request, name):
    make, wrap = load(BACKENDS, "backend", name), WRAPPED_IN[request.param]

    @asynccontextmanager
    async def played(**options):
        async with PLAYED_BY[name](make, **options) as (backend, asked):
            yield wrap(backend), asked

    return played


async def test_the_last_chunk_and_only_that_has_the_completion(play):
    async with play() as (backend, _):
        chunks = [chunk async for chunk in backend.stream(REQUEST)]
        assert [chunk.completion is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [
            True
        ]
        assert chunks[-1].completion.text == "one two"
        assert chunks[-1].completion.model
        await backend.aclose()


async def test_the_pieces_add_up_to_the_completion(play):
    async with play() as (backend, _):
        chunks = [chunk async for chunk in backend.stream(REQUEST)]
        pieces = [(c.get("delta") or {}).get("content") for k in chunks for c in k.choices]
        assert "".join(piece or "" for piece in pieces) == "one two"
        await backend.aclose()


async def test_complete_is_the_drain_of_stream(play):
    async with play() as (backend, _):
        assert (await backend.complete(REQUEST)).text == "one two"
        await backend.aclose()


async def test_a_cut_is_a_backend_error_and_no_completion(play):
    async def read(stream, into):
        async for chunk in stream:
            into.append(chunk)  # what came before the error is looked at

    async with play(cut=True) as (backend, _):
        seen = []
        with pytest.raises(BackendConnectionError):
            await read(backend.stream(REQUEST), seen)
        assert all(chunk.completion is None for chunk in seen)
        await backend.aclose()


async def test_nothing_is_asked_before_the_stream_is_read(play):
    async with play() as (backend, asked):
        stream = backend.stream(REQUEST)
        assert asked() == 0
        await stream.aclose()
        await backend.aclose()


def test_every_backend_error_says_whether_a_retry_helps():
    for kind in BackendError.__subclasses__():
        assert isinstance(kind.retryable, bool)
        assert kind.code != BackendError.code or kind.__name__ == "BackendServerError"
