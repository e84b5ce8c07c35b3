"""Failures, clients that leave, and what keeps a connection alive."""

import asyncio
from dataclasses import replace

import aiohttp
import anthropic
import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendOverloadedError
from tests.engines import FixedJudge, tier
from tests.messages import ASK, call, lines, played, stream_of
from tests.services import snapshot


@pytest.mark.parametrize("arguments", ["{", "[1]"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_broken_tool_call_is_an_error_with_its_own_status(connect, stream, arguments):
    _, ai = await connect(small=[Script(text="", tool_calls=[call(arguments)])])
    with pytest.raises(anthropic.InternalServerError) as caught:
        await ai.messages.create(model="always-small", stream=stream, **ASK)
    assert caught.value.status_code == 502
    assert caught.value.body["error"]["type"] == "api_error"
    assert "'weather'" in caught.value.body["error"]["message"]
    assert caught.value.response.headers["x-cascade-attempts"] == "1"


async def test_a_broken_tool_call_after_text_is_an_error_event(connect):
    service, ai = await connect(small=[Script(text="a", tool_calls=[call("{")])])
    with pytest.raises(anthropic.APIStatusError) as caught:
        [_ async for _ in await ai.messages.create(model="always-small", stream=True, **ASK)]
    assert caught.value.body["error"]["type"] == "api_error"
    _, events = await lines(service, model="always-small")
    assert not any("tool_use" in event or "message_stop" in event for event in events)


class Overloaded(ScriptedBackend):
    async def stream(self, request):
        raise BackendOverloadedError("too many", retry_after=7.2)
        yield


@pytest.mark.parametrize("stream", [True, False])
async def test_an_overloaded_model_is_a_429_that_says_when_to_come_back(connect, stream):
    service, ai = await connect(small=[Script(error="BackendServerError")])
    large = replace(service.snapshot.tiers["large"], backend=Overloaded())
    service.snapshot.tiers["large"] = large
    with pytest.raises(anthropic.RateLimitError) as caught:
        await ai.messages.create(model="cascade", stream=stream, **ASK)
    assert caught.value.response.headers["retry-after"] == "8"
    [result] = service.log.results
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "rate_limit_error"
    assert caught.value.body["request_id"] == result.request.id


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        ("BackendUnreachableError", 503, "overloaded_error"),
        ("BackendTimeoutError", 504, "timeout_error"),
        ("BackendServerError", 502, "api_error"),
        ("BackendRefusedError", 400, "invalid_request_error"),
    ],
)
async def test_a_failure_has_anthropics_name(connect, failure, status, kind):
    _, ai = await connect(small=[Script(error=failure)], large=[Script(error=failure)])
    with pytest.raises(anthropic.APIStatusError) as caught:
        await ai.messages.create(model="cascade", **ASK)
    assert (caught.value.status_code, caught.value.body["error"]["type"]) == (status, kind)


async def test_an_unknown_model_is_a_404(connect):
    service, ai = await connect()
    with pytest.raises(anthropic.NotFoundError) as caught:
        await ai.messages.create(model="claude-9", **ASK)
    assert caught.value.body["error"]["type"] == "not_found_error"
    assert caught.value.response.headers["x-cascade-request-id"] == caught.value.body["request_id"]
    assert not service.log.results


@pytest.mark.parametrize("stream", [True, False])
async def test_a_bug_is_a_500_without_its_text(connect, stream):
    service, ai = await connect(judge=FixedJudge(ZeroDivisionError("secret")))
    with pytest.raises(anthropic.InternalServerError) as caught:
        await ai.messages.create(model="cascade", stream=stream, **ASK)
    assert caught.value.body["error"]["type"] == "api_error"
    assert "secret" not in str(caught.value.body)
    assert service.log.results[0].error.type == "ZeroDivisionError"


async def test_an_upstream_that_breaks_after_text_is_an_error_event(connect):
    service, ai = await connect(small=[Script(text="a b c", cut_after=2)])
    async with ai.messages.stream(model="always-small", **ASK) as stream:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await stream.get_final_message()
        assert stream.current_message_snapshot.content[0].text == "a b"
    assert caught.value.body["error"]["type"] == "api_error"
    assert service.log.results[0].released_characters == 3
    _, events = await lines(service, model="always-small")
    assert not any("message_stop" in event for event in events)


async def test_a_body_that_is_too_large_is_a_413(connect):
    _, ai = await connect()
    with pytest.raises(anthropic.RequestTooLargeError) as caught:
        await ai.messages.create(model="cascade", **ASK, system="x" * 1_100_000)
    assert caught.value.body["error"]["type"] == "request_too_large"


async def test_what_is_not_there_is_told_in_anthropics_shape(connect):
    service, ai = await connect()
    with pytest.raises(anthropic.NotFoundError) as caught:
        await ai.messages.count_tokens(model="cascade", messages=ASK["messages"])
    assert caught.value.body["error"]["type"] == "not_found_error"
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{service.url}/v1/messages") as response,
    ):
        assert response.status == 405
        assert (await response.json())["type"] == "error"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_is_audited_as_cancelled(connect, stream):
    service, ai = await connect(small=[Script(text="a b", token_seconds=30)])
    task = asyncio.create_task(ai.messages.create(model="cascade", stream=stream, **ASK))
    while not service.backend("small").requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(5):
        while not service.log.results:
            await asyncio.sleep(0.01)
    assert service.log.results[0].cancelled


async def test_a_held_stream_is_kept_alive_by_pings():
    shot = snapshot(small=[Script(text="a", first_token_seconds=0.2)])
    sent = await played(stream_of(shot, 0.05))
    assert b"x-cascade-tier" not in {name for name, _ in sent[0]["headers"]}
    bodies = [message["body"] for message in sent[1:]]
    assert bodies[:3] == [b'event: ping\ndata: {"type":"ping"}\n\n'] * 3
    assert b'"text":"a"' in b"".join(bodies)
    assert bodies[-1].endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')


async def test_a_failure_after_a_ping_is_an_error_event():
    slow = Script(text="a", first_token_seconds=0.12, cut_after=0)
    sent = await played(stream_of(snapshot(small=[slow], large=[slow]), 0.05))
    assert sent[0]["status"] == 200
    assert b"event: error\n" in sent[-1]["body"]
    assert b'"type":"overloaded_error"' in sent[-1]["body"]
    assert b"message_stop" not in sent[-1]["body"]


async def test_pings_go_on_while_a_tool_call_grows():
    class Slow(ScriptedBackend):
        async def stream(self, request):
            async for chunk in super().stream(request):
                yield chunk
                if chunk.choices and chunk.choices[0]["delta"].get("tool_calls"):
                    await asyncio.sleep(0.2)

    shot = snapshot()
    shot.arms["cascade"] = shot.arms["always-small"]
    backend = Slow(answers=[Script(text="a", tool_calls=[call()])], model="small-model")
    shot.tiers["small"] = replace(tier("small"), backend=backend)
    bodies = [message["body"] for message in (await played(stream_of(shot, 0.05)))[1:]]
    assert b'"text":"a"' in bodies[0]
    assert bodies[1:4] == [b'event: ping\ndata: {"type":"ping"}\n\n'] * 3
    assert b'"name":"weather"' in bodies[-1]
