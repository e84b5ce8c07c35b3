"""Requests that are wrong, models that fail: the status, the shape and the words of the error."""

import io
from dataclasses import replace

import aiohttp
import openai
import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendOverloadedError
from tests.chats import ASK, client, lines, post
from tests.engines import FixedJudge


class Overloaded(ScriptedBackend):
    def __init__(self, retry_after):
        super().__init__()
        self.retry_after = retry_after

    async def stream(self, request):
        raise BackendOverloadedError("too many", retry_after=self.retry_after)
        yield


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("asked", "told"),
    [(7.2, "8"), (0.0, "1"), (None, None), (float("inf"), None), (float("nan"), None), (-3, None)],
)
async def test_a_client_is_told_when_an_overloaded_model_wants_to_be_asked_again(
    serve, stream, asked, told
):
    service = await serve(small=[Script(error="BackendServerError")])
    large = replace(service.snapshot.tiers["large"], backend=Overloaded(asked))
    service.snapshot.tiers["large"] = large
    async with client(service) as ai:
        with pytest.raises(openai.RateLimitError) as caught:
            await ai.chat.completions.create(model="cascade", messages=ASK, stream=stream)
    assert caught.value.response.headers.get("retry-after") == told


async def test_only_the_last_failure_says_when_to_come_back(serve):
    service = await serve(large=[Script(error="BackendServerError")])
    small = replace(service.snapshot.tiers["small"], backend=Overloaded(7.0))
    service.snapshot.tiers["small"] = small
    async with client(service) as ai:
        with pytest.raises(openai.InternalServerError) as caught:
            await ai.chat.completions.create(model="cascade", messages=ASK)
    assert "retry-after" not in caught.value.response.headers


async def test_a_rejected_answer_that_is_returned_says_nothing_of_coming_back(serve):
    service = await serve(judge=FixedJudge(0.1))
    large = replace(service.snapshot.tiers["large"], backend=Overloaded(7.0))
    service.snapshot.tiers["large"] = large
    async with client(service) as ai:
        raw = await ai.chat.completions.with_raw_response.create(model="cascade", messages=ASK)
    assert raw.headers["x-cascade-degraded"] == "true"
    assert "retry-after" not in raw.headers


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_that_no_tier_can_serve_is_a_400_that_says_what_was_missing(serve, stream):
    service = await serve()
    tiers = service.snapshot.tiers
    tiers["small"] = replace(tiers["small"], capabilities=frozenset({"logprobs"}))
    tiers["large"] = replace(tiers["large"], context_tokens=100)
    long = {"role": "system", "content": "one more word " * 50}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    messages = [long, {"role": "user", "content": [image]}]
    fields = {"messages": messages, "stream": stream}
    async with client(service) as ai:
        with pytest.raises(openai.BadRequestError) as caught:
            await ai.chat.completions.create(model="cascade", **fields)
        assert caught.value.body == {
            "message": "no tier can serve this request: small does not offer vision; large has a "
            "window of 100 tokens, too short for the prompt",
            "type": "invalid_request_error",
            "param": None,
            "code": "no_tier_fits",
        }
        assert caught.value.response.headers["x-cascade-attempts"] == "0"
        with pytest.raises(openai.BadRequestError, match=r"small does not offer vision"):
            await ai.chat.completions.create(model="small", **fields)
    assert [result.error.type for result in service.log.results] == ["NoFitError"] * 2
    assert not service.backend("small").requests
    assert not service.backend("large").requests


@pytest.mark.parametrize(
    ("change", "status", "param"),
    [
        ({"model": "gpt-9"}, 404, "model"),
        ({"model": None}, 400, "model"),
        ({"model": ""}, 400, "model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": "hi"}, 400, "messages"),
        ({"messages": [{"content": "x"}]}, 400, "messages[0].role"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, 400, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, 400, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [5]}]}, 400, "messages[0].content"),
        ({"stop": 5}, 400, "stop"),
        ({"response_format": {"type": ["json_schema"]}}, 400, "response_format.type"),
        (
            {"response_format": {"type": "json_schema", "json_schema": "x"}},
            400,
            "response_format.json_schema",
        ),
        ({"max_tokens": -1}, 400, "max_tokens"),
        ({"max_tokens": "12"}, 400, "max_tokens"),
        ({"max_completion_tokens": 0}, 400, "max_completion_tokens"),
        ({"temperature": 3}, 400, "temperature"),
        ({"n": 0}, 400, "n"),
        ({"stream": "yes"}, 400, "stream"),
        ({"top_logprobs": 21}, 400, "top_logprobs"),
        ({"tools": {}}, 400, "tools"),
        ({"response_format": "json"}, 400, "response_format"),
    ],
)
async def test_a_wrong_field_is_named(serve, change, status, param):
    import orjson

    service = await serve()
    body = orjson.dumps({"model": "cascade", "messages": ASK, **change})
    got, headers, answer = await post(service, body)
    assert got == status
    assert answer["error"]["param"] == param
    assert answer["error"]["type"] == "invalid_request_error"
    assert headers["x-cascade-request-id"]
    assert not service.log.results


async def test_a_body_that_is_too_large_is_a_413(serve):
    status, _, answer = await post(await serve(), io.BytesIO(b"x" * 1_100_000))
    assert status == 413
    assert answer["error"]["code"] == "request_too_large"


@pytest.mark.parametrize("name", ["\ubaa8\ub378", "a\r\nx-evil: 1"])
async def test_a_models_odd_name_is_made_fit_for_a_header(serve, name):
    service = await serve()
    backend = ScriptedBackend(answers=["four"], model=name)
    service.snapshot.tiers["small"] = replace(service.snapshot.tiers["small"], backend=backend)
    async with client(service) as ai:
        raw = await ai.chat.completions.with_raw_response.create(model="cascade", messages=ASK)
        assert raw.parse().model == name
    assert "?" in raw.headers["x-cascade-model"]
    assert "x-evil" not in raw.headers
    headers, _ = await lines(service)
    assert headers["x-cascade-model"] == raw.headers["x-cascade-model"]


async def test_an_unknown_path_and_a_wrong_method_speak_openais_shape(serve):
    service = await serve()
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{service.url}/v2/nothing") as response:
            assert response.status == 404
            assert (await response.json())["error"]["code"] == "no_such_route"
        async with session.get(f"{service.url}/v1/chat/completions") as response:
            assert response.status == 405


async def test_a_bug_is_a_500_in_openais_shape_without_its_text(serve):
    service = await serve(judge=FixedJudge(ZeroDivisionError("secret")))
    async with client(service) as ai:
        with pytest.raises(openai.InternalServerError) as caught:
            await ai.chat.completions.create(model="cascade", messages=ASK)
    assert "secret" not in str(caught.value.body)
    assert caught.value.response.headers["x-cascade-request-id"]
    assert service.log.results[0].error.type == "ZeroDivisionError"
