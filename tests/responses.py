"""Asking a scripted service in the Responses API's shape."""

from dataclasses import replace

import aiohttp
import orjson

from cascade.answers import assemble
from cascade.backends.scripted import ScriptedBackend
from cascade.engine import CascadeEngine
from cascade.types import Chunk, Completion
from serving.responses.request import parse
from serving.responses.stream import ResponseStream
from tests.engines import MemorySink

ASK = "what is 2+2?"
RAW = b'{"model":"cascade","stream":true,"input":"x"}'

WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "of a place",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    "strict": True,
}


def call(arguments='{"place": "Oslo"}', name="weather", identity="c1"):
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


async def lines(service, **body):
    body = {"model": "cascade", "stream": True, "input": ASK, **body}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/responses", json=body) as response,
    ):
        return response.headers, (await response.text()).split("\n\n")


def data_of(events):
    """The JSON of what was sent; comments are left out."""
    lines = [line for event in events for line in event.split("\n")]
    return [orjson.loads(line[6:]) for line in lines if line.startswith("data: ")]


async def events_of(ai, **body):
    """The typed events that OpenAI's client makes of a stream."""
    body = {"model": "cascade", "input": ASK, **body}
    return [event async for event in await ai.responses.create(stream=True, **body)]


async def final_of(ai, **body):
    """The response that OpenAI's client puts together from a stream."""
    async with ai.responses.stream(**{"model": "cascade", "input": ASK, **body}) as stream:
        return await stream.get_final_response()


async def answer_of(ai, stream, **body):
    """The response, streamed or not."""
    if stream:
        return await final_of(ai, **body)
    return await ai.responses.create(**{"model": "cascade", "input": ASK, **body})


def stream_of(shot, heartbeat_seconds):
    asked = parse(RAW, {}, "id")
    events = CascadeEngine(shot, MemorySink()).events(asked.request, shot.arm("cascade", ""))
    return ResponseStream(events, asked, {"x-cascade-request-id": "id"}, heartbeat_seconds)


class Pieces(ScriptedBackend):
    """Answers with these chunk choices."""

    def __init__(self, *pieces):
        super().__init__(model="small-model")
        self._chunks = [[{"index": 0, **piece}] for piece in pieces]

    async def stream(self, request):
        self.requests.append(request)
        for choices in self._chunks:
            yield Chunk(choices=choices, model="small-model")
        yield Chunk(completion=Completion(choices=assemble(self._chunks), model="small-model"))


END = {"delta": {}, "finish_reason": "stop"}


def answering(service, *pieces):
    """Makes the small tier answer with these chunk choices, and end."""
    tiers = service.snapshot.tiers
    tiers["small"] = replace(tiers["small"], backend=Pieces(*pieces, END))
