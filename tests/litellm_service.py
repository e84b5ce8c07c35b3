"""A provider on loopback and the litellm backend that asks it, for tests."""

import orjson
import pytest

from cascade.backends.litellm_api import LitellmBackend
from cascade.types import ChatRequest
from tests.upstream import DONE, Upstream, serving, words

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
