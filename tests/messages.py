"""Asking a scripted service in the Messages API's shape."""

import asyncio

import aiohttp

from cascade.engine import CascadeEngine
from serving.messages.request import parse
from serving.messages.stream import MessageStream
from tests.engines import MemorySink

ASK = {"max_tokens": 50, "messages": [{"role": "user", "content": "what is 2+2?"}]}
RAW = b'{"model":"cascade","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}'


def call(arguments='{"place": "Oslo"}', name="weather", identity="c1"):
    return {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


async def lines(service, **body):
    body = {"model": "cascade", "stream": True, **ASK, **body}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/messages", json=body) as response,
    ):
        return response.headers, (await response.text()).split("\n\n")


async def played(response):
    """What a response sends when nobody listens."""
    sent = []

    async def send(message):
        sent.append(message)

    await response({}, asyncio.Event().wait, send)
    return sent


def stream_of(shot, heartbeat_seconds):
    asked = parse(RAW, {}, "id")
    events = CascadeEngine(shot, MemorySink()).events(asked.request, shot.arm("cascade", ""))
    return MessageStream(events, asked, {"x-cascade-request-id": "id"}, heartbeat_seconds)
