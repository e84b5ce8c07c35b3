"""Answers as server-sent events, and clients that leave."""

import asyncio
from dataclasses import replace

import aiohttp
import openai
import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.types import Kind
from tests.apis import baseline
from tests.chats import ASK, client, lines
from tests.engines import FixedJudge
from tests.services import snapshot


async def test_a_streamed_answer_reads_like_openais(serve):
    service = await serve(small=["one two three"])
    async with client(service) as ai:
        stream = await ai.chat.completions.create(
            model="cascade",
            messages=ASK,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "one two three"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 12
    assert {chunk.model for chunk in chunks} == {"small-model"}


async def test_a_stream_ends_with_what_became_known_late_and_done(serve):
    service = await serve()
    headers, events = await lines(service)
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["x-cascade-tier"] == "small"
    assert events[-2:] == ["data: [DONE]", ""]
    assert events[-3].startswith(": ")
    assert "x-cascade-cost-usd=0.000014" in events[-3]
    assert f"x-cascade-baseline-usd={baseline(service.log.results[0])}, " in events[-3]
    assert not any("usage" in event for event in events)
    assert not any("logprobs" in event for event in events)


async def test_an_escalated_stream_has_only_the_accepted_text(serve):
    service = await serve(small=["wrong"], large=["right"], judge=FixedJudge(0.1))
    _, events = await lines(service)
    assert not any("wrong" in event for event in events)
    assert any("right" in event for event in events)
    assert [a.kind for a in service.log.results[0].attempts] == [
        Kind.ANSWER,
        Kind.JUDGE,
        Kind.ANSWER,
    ]


async def test_a_failure_before_any_text_has_its_own_status_streamed_or_not(serve):
    broken = [Script(error="BackendOverloadedError")]
    service = await serve(small=broken, large=broken)
    for stream in (True, False):
        body = {"model": "cascade", "messages": ASK, "stream": stream}
        async with client(service) as ai:
            with pytest.raises(openai.RateLimitError) as caught:
                await ai.chat.completions.create(**body)
        assert caught.value.body["code"] == "no_answer"
        assert caught.value.response.headers["x-cascade-attempts"] == "2"


async def test_an_upstream_that_breaks_after_text_is_an_error_event_without_done(serve):
    service = await serve(small=[Script(text="a b c", cut_after=2)])
    _, events = await lines(service, model="always-small")
    assert '"code":"stream_broken"' in events[-2]
    assert "data: [DONE]" not in events
    assert service.log.results[0].released_characters == 3


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_is_audited_as_cancelled(serve, stream):
    service = await serve(small=[Script(text="a b", token_seconds=30)])
    body = {"model": "cascade", "messages": ASK, "stream": stream}
    async with aiohttp.ClientSession() as session:
        call = session.post(f"{service.url}/v1/chat/completions", json=body)
        task = asyncio.create_task(call.__aenter__())
        while not service.backend("small").requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(5):
        while not service.log.results:
            await asyncio.sleep(0.01)
    assert service.log.results[0].cancelled


async def test_a_held_stream_is_kept_alive_by_comments():
    from cascade.engine import CascadeEngine
    from serving import present
    from serving.schemas import parse
    from serving.stream import ChatStream
    from tests.engines import MemorySink

    shot = snapshot(small=[Script(text="a", first_token_seconds=0.2)])
    engine = CascadeEngine(shot, MemorySink())
    call = parse(b'{"model":"cascade","stream":true,"messages":[{"role":"user"}]}', {}, "id")
    arm = shot.arm("cascade", "")
    response = ChatStream(
        engine.events(call.request, arm), call, present.early_headers(call.request, arm), 0.05
    )
    sent = []

    async def send(message):
        sent.append(message)

    await response({}, asyncio.Event().wait, send)
    names = {name for name, _ in sent[0]["headers"]}
    assert b"x-cascade-request-id" in names
    assert b"x-cascade-tier" not in names
    bodies = [message["body"] for message in sent[1:]]
    assert bodies[:3] == [b": waiting\n\n"] * 3
    assert b'"content":"a"' in b"".join(bodies)
    assert bodies[-1].endswith(b"data: [DONE]\n\n")


async def test_a_failure_after_a_comment_is_an_error_event():
    from cascade.engine import CascadeEngine
    from serving.schemas import parse
    from serving.stream import ChatStream
    from tests.engines import MemorySink

    slow = Script(text="a", first_token_seconds=0.12, cut_after=0)
    shot = snapshot(small=[slow], large=[slow])
    engine = CascadeEngine(shot, MemorySink())
    call = parse(b'{"model":"cascade","stream":true,"messages":[{"role":"user"}]}', {}, "id")
    response = ChatStream(engine.events(call.request, shot.arm("cascade", "")), call, {}, 0.05)
    sent = []

    async def send(message):
        sent.append(message)

    await response({}, asyncio.Event().wait, send)
    assert sent[0]["status"] == 200
    assert b'"code":"no_answer"' in sent[-1]["body"]
    assert b"[DONE]" not in sent[-1]["body"]


async def test_a_bug_after_text_went_out_is_an_error_event(serve):
    class Broken(ScriptedBackend):
        async def stream(self, request):
            async for chunk in super().stream(request):
                yield chunk
                raise ZeroDivisionError("secret")

    service = await serve()
    broken = replace(service.snapshot.tiers["small"], backend=Broken(answers=["a b"]))
    service.snapshot.tiers["small"] = broken
    _, events = await lines(service, model="always-small")
    assert '"content":"a"' in events[0]
    assert '"code":"internal_error"' in events[-2]
    assert "secret" not in events[-2]
    assert service.log.results[0].error.type == "ZeroDivisionError"
