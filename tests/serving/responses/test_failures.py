"""Failures, clients that leave, and what keeps a connection alive."""

import asyncio
from dataclasses import replace

import aiohttp
import openai
import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendOverloadedError
from cascade.types import Failure
from serving.responses.response import failed
from tests.engines import FixedJudge, tier
from tests.messages import played
from tests.responses import ASK, call, data_of, events_of, lines, stream_of
from tests.services import snapshot

BEAT = b": waiting\n\n"


def kinds(events):
    return [data["type"] for data in data_of(events)]


@pytest.mark.parametrize("arguments", ["{", "[1]"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_broken_tool_call_is_an_error_with_its_own_status(connect, stream, arguments):
    _, ai = await connect(small=[Script(text="", tool_calls=[call(arguments)])])
    with pytest.raises(openai.InternalServerError) as caught:
        await ai.responses.create(model="always-small", input=ASK, stream=stream)
    assert caught.value.status_code == 502
    assert caught.value.body["type"] == "server_error"
    assert "'weather'" in caught.value.body["message"]
    assert caught.value.response.headers["x-cascade-attempts"] == "1"


async def test_a_broken_tool_call_after_text_is_a_failed_response(connect):
    service, ai = await connect(small=[Script(text="a", tool_calls=[call("{")])])
    with pytest.raises(openai.APIError, match="'weather'"):
        await events_of(ai, model="always-small")
    _, events = await lines(service, model="always-small")
    assert kinds(events)[-2:] == ["response.failed", "error"]
    assert not any("function_call" in event for event in events)


class Overloaded(ScriptedBackend):
    async def stream(self, request):
        raise BackendOverloadedError("too many", retry_after=7.2)
        yield


@pytest.mark.parametrize("stream", [True, False])
async def test_an_overloaded_model_is_a_429_that_says_when_to_come_back(connect, stream):
    service, ai = await connect(small=[Script(error="BackendServerError")])
    large = replace(service.snapshot.tiers["large"], backend=Overloaded())
    service.snapshot.tiers["large"] = large
    with pytest.raises(openai.RateLimitError) as caught:
        await ai.responses.create(model="cascade", input=ASK, stream=stream)
    assert caught.value.response.headers["retry-after"] == "8"
    assert caught.value.body["code"] == "no_answer"


async def test_a_field_at_fault_is_the_errors_param(connect):
    service, ai = await connect()
    with pytest.raises(openai.BadRequestError) as caught:
        await ai.responses.create(model="cascade", input=ASK, previous_response_id="resp_1")
    assert caught.value.param == "previous_response_id"
    assert caught.value.body["type"] == "invalid_request_error"
    assert not service.log.results


async def test_an_unknown_model_is_a_404(connect):
    _, ai = await connect()
    with pytest.raises(openai.NotFoundError) as caught:
        await ai.responses.create(model="gpt-9", input=ASK)
    assert caught.value.body["code"] == "model_not_found"
    assert caught.value.response.headers["x-cascade-request-id"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_bug_is_a_500_without_its_text(connect, stream):
    service, ai = await connect(judge=FixedJudge(ZeroDivisionError("secret")))
    with pytest.raises(openai.InternalServerError) as caught:
        await ai.responses.create(model="cascade", input=ASK, stream=stream)
    assert "secret" not in str(caught.value.body)
    assert service.log.results[0].error.type == "ZeroDivisionError"


async def test_an_upstream_that_breaks_after_text_is_a_failed_response_and_an_error(connect):
    service, ai = await connect(small=[Script(text="a b c", cut_after=2)])
    stream = await ai.responses.create(model="always-small", input=ASK, stream=True)
    failed = await anext(event async for event in stream if event.type == "response.failed")
    with pytest.raises(openai.APIError) as caught:
        await anext(aiter(stream))
    assert caught.value.code == "stream_broken"
    assert (failed.response.status, failed.response.error.code) == ("failed", "server_error")
    assert failed.response.output[0].status == "incomplete"
    assert failed.response.output_text == "a b"
    assert service.log.results[0].released_characters == 3
    _, events = await lines(service, model="always-small")
    numbers = [data["sequence_number"] for data in data_of(events)]
    assert numbers == list(range(len(numbers)))
    assert "response.completed" not in kinds(events)


async def test_a_failed_response_says_how_it_came_about_when_asked(serve):
    service = await serve(small=[Script(text="a b c", cut_after=2)])
    _, events = await lines(service, model="always-small", cascade={"explain": True})
    failed = data_of(events)[-2]["response"]
    assert failed["cascade"]["attempts"][0]["tier"] == "small"


async def test_the_error_event_has_the_fields_of_openais_type_too(serve):
    service = await serve(small=[Script(text="a b c", cut_after=2)])
    _, events = await lines(service, model="always-small")
    told = data_of(events)[-1]
    assert (told["type"], told["code"], told["param"]) == ("error", "stream_broken", None)
    assert told["message"] == told["error"]["message"]


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "invalid_prompt"), (429, "rate_limit_exceeded"), (500, "server_error")],
)
def test_a_failed_response_has_one_of_the_codes_of_openais_type(status, code):
    fault = Failure(type="NoAnswerError", message="m", status=status, code="no_answer")
    told = failed({"status": "in_progress", "error": None}, fault, [])
    assert told == {"status": "failed", "error": {"code": code, "message": "m"}, "output": []}


async def test_an_upstream_that_breaks_before_text_is_followed_by_the_next_tier(connect):
    _, ai = await connect(small=[Script(text="a b", cut_after=0)], large=["right"])
    events = await events_of(ai)
    assert events[-1].response.output_text == "right"
    assert {e.response.model for e in events if hasattr(e, "response")} == {"large-model"}


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b"[1]", b'{"model": "cascade", "x": ' + b"[" * 400 + b"]" * 400],
)
async def test_a_body_that_cannot_be_read_is_a_400_in_openais_shape(serve, body):
    service = await serve()
    headers = {"content-type": "application/json"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/responses", data=body, headers=headers) as response,
    ):
        assert response.status == 400
        assert (await response.json())["error"]["type"] == "invalid_request_error"


async def test_what_would_need_stored_responses_is_not_there_and_says_why(connect):
    _, ai = await connect()
    for ask in (ai.responses.retrieve, ai.responses.delete, ai.responses.cancel):
        with pytest.raises(openai.NotFoundError, match="responses are not stored here") as caught:
            await ask("resp_1")
        assert caught.value.body["code"] == "no_such_route"
    with pytest.raises(openai.NotFoundError, match="not stored here"):
        await ai.responses.input_items.list("resp_1")


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_is_audited_as_cancelled(connect, stream):
    service, ai = await connect(small=[Script(text="a b", token_seconds=30)])
    asked = ai.responses.create(model="cascade", input=ASK, stream=stream)
    task = asyncio.create_task(asked)
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
    shot = snapshot(small=[Script(text="a", first_token_seconds=0.2)])
    sent = await played(stream_of(shot, 0.05))
    assert b"x-cascade-tier" not in {name for name, _ in sent[0]["headers"]}
    bodies = [message["body"] for message in sent[1:]]
    assert bodies[:3] == [BEAT] * 3
    assert b'"delta":"a"' in b"".join(bodies)
    assert kinds([bodies[-1].decode()])[-1] == "response.completed"


async def test_a_failure_after_a_comment_is_a_response_that_begins_and_fails():
    slow = Script(text="a", first_token_seconds=0.12, cut_after=0)
    sent = await played(stream_of(snapshot(small=[slow], large=[slow]), 0.05))
    assert sent[0]["status"] == 200
    last = sent[-1]["body"].decode()
    assert kinds([last]) == ["response.created", "response.in_progress", "response.failed", "error"]
    created, _, failed, _ = data_of([last])
    assert created["response"]["model"] == "cascade"
    assert failed["response"]["error"]["code"] == "server_error"
    assert failed["response"]["output"] == []


async def test_comments_go_on_while_a_tool_call_grows():
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
    assert b'"delta":"a"' in bodies[0]
    assert bodies[1:4] == [BEAT] * 3
    assert b'"name":"weather"' in bodies[-1]
