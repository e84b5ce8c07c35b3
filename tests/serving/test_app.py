import asyncio
import io
from dataclasses import replace

import aiohttp
import openai
import pytest

from cascade.backends.scripted import Script, ScriptedBackend
from cascade.errors import BackendOverloadedError
from cascade.experiments import Arm, Experiment
from cascade.policies.fixed import FixedPolicy
from cascade.snapshot import Snapshot
from cascade.types import Kind
from tests.engines import SMALL_THEN_LARGE, FixedJudge, tier
from tests.services import running

ASK = [{"role": "user", "content": "what is 2+2?"}]


def snapshot(*, small=("four",), large=("4",), judge=None):
    policies = {
        "cascade": SMALL_THEN_LARGE.policy,
        "always-small": FixedPolicy(name="always-small", tier="small"),
    }
    arms = {name: Arm(name=None, policy=policy) for name, policy in policies.items()}
    trial = [
        Arm(name=name, policy=policy, experiment="auto", weight=1)
        for name, policy in policies.items()
    ]
    return Snapshot(
        version="v1",
        tiers={"small": tier("small", *small), "large": tier("large", *large)},
        judges={"told": judge or FixedJudge(0.9, logprobs=True, top_logprobs=2)},
        arms=arms,
        experiments={"auto": Experiment(name="auto", arms=trial)},
    )


@pytest.fixture
async def serve():
    stack = []

    async def start(**options):
        context = running(snapshot(**options))
        service = await context.__aenter__()
        stack.append(context)
        return service

    yield start
    for context in reversed(stack):
        await context.__aexit__(None, None, None)


def client(service):
    return openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0)


async def post(service, body, **headers):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/chat/completions", data=body, headers=headers) as response,
    ):
        return response.status, response.headers, await response.json()


async def lines(service, **body):
    body = {"model": "cascade", "messages": ASK, "stream": True, **body}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{service.url}/v1/chat/completions", json=body) as response,
    ):
        return response.headers, (await response.text()).split("\n\n")


async def test_the_openai_client_gets_an_answer_and_headers_say_how(serve):
    service = await serve()
    async with client(service) as ai:
        raw = await ai.chat.completions.with_raw_response.create(model="cascade", messages=ASK)
    answer = raw.parse()
    assert answer.choices[0].message.content == "four"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].logprobs is None
    assert answer.model == "small-model"
    assert answer.usage.prompt_tokens == 10
    assert answer.usage.completion_tokens == 2
    headers = {n: v for n, v in raw.headers.items() if n.startswith("x-cascade")}
    [result] = service.log.results
    assert float(headers.pop("x-cascade-overhead-ms")) > 0
    assert headers == {
        "x-cascade-request-id": result.request.id,
        "x-cascade-policy": "ladder",
        "x-cascade-tier": "small",
        "x-cascade-model": "small-model",
        "x-cascade-attempts": "1",
        "x-cascade-degraded": "false",
        "x-cascade-cost-usd": "0.000014",
    }


async def test_an_experiment_names_itself_and_its_arm_and_is_sticky(serve):
    service = await serve()
    seen = set()
    async with client(service) as ai:
        for _ in range(3):
            raw = await ai.chat.completions.with_raw_response.create(model="auto", messages=ASK)
            assert raw.headers["x-cascade-experiment"] == "auto"
            seen.add(raw.headers["x-cascade-arm"])
    assert len(seen) == 1
    assert {result.arm for result in service.log.results} == seen


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


async def test_an_upstream_that_breaks_after_text_is_an_error_event_without_done(serve):
    service = await serve(small=[Script(text="a b c", cut_after=2)])
    _, events = await lines(service, model="always-small")
    assert '"code":"stream_broken"' in events[-2]
    assert "data: [DONE]" not in events
    assert service.log.results[0].released_characters == 3


async def test_everything_the_client_sent_reaches_the_model(serve):
    service = await serve()
    # Marks of a provider reach only a tier that says it knows them, as this one does.
    assert "cache_control" in service.snapshot.tiers["small"].accepts
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    messages = [
        {"role": "system", "content": "be brief", "cache_control": {"type": "ephemeral"}},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
    ]
    extra = {
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "response_format": {"type": "text"},
        "stop": ["x"],
        "seed": 3,
        "logit_bias": {"1": -1},
        "reasoning_effort": "low",
        "max_completion_tokens": 50,
        "user": "u",
        "unheard_of": {"a": [None]},
    }
    body = {"model": "always-small", "messages": messages, "tools": tools, **extra}
    async with client(service) as ai:
        await ai.chat.completions.create(
            model="always-small", messages=messages, tools=tools, extra_body=extra
        )
    [asked] = service.backend("small").requests
    assert asked.messages == messages
    assert asked.tools == tools
    assert asked.params == extra
    assert asked.session == body["user"]


async def test_a_providers_marks_do_not_reach_a_tier_that_does_not_know_them(serve):
    service = await serve()
    tiers = service.snapshot.tiers
    tiers["small"] = replace(tiers["small"], accepts=frozenset())
    mark = {"cache_control": {"type": "ephemeral"}}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    said = {"type": "text", "text": "3"}
    body = {
        "model": "always-small",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "1+2?", **mark}]},
            {"role": "assistant", "content": [thought, said], "reasoning_content": "hm"},
            {"role": "user", "content": "thanks", "name": "mara"},
        ],
        "prompt_cache_key": "k",
        "seed": 3,
    }
    async with client(service) as ai:
        await ai.post("/chat/completions", body=body, cast_to=object)
    [asked] = service.backend("small").requests
    assert asked.messages == [
        {"role": "user", "content": [{"type": "text", "text": "1+2?"}]},
        {"role": "assistant", "content": [said]},
        {"role": "user", "content": "thanks", "name": "mara"},
    ]
    assert asked.params == {"seed": 3}


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


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[1]", b'"x"', b"null"])
async def test_a_body_that_is_no_object_is_a_400(serve, body):
    status, _, answer = await post(await serve(), body)
    assert status == 400
    assert answer["error"]["code"] == "invalid_request"


async def test_a_body_that_is_too_large_is_a_413(serve):
    status, _, answer = await post(await serve(), io.BytesIO(b"x" * 1_100_000))
    assert status == 413
    assert answer["error"]["code"] == "request_too_large"


async def test_a_body_nested_too_deeply_is_a_400(serve):
    deep = b"[" * 400 + b"]" * 400
    body = b'{"model": "cascade", "messages": [{"role": "user"}], "x": ' + deep + b"}"
    status, _, answer = await post(await serve(), body)
    assert (status, answer["error"]["message"]) == (400, "the body is nested too deeply")


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


async def test_models_lists_what_can_be_asked_for(serve):
    service = await serve()
    async with client(service) as ai:
        names = [model.id async for model in ai.models.list()]
        assert names == ["auto", "cascade", "always-small", "small", "large"]
        assert (await ai.models.retrieve("auto")).id == "auto"
        with pytest.raises(openai.NotFoundError):
            await ai.models.retrieve("none")


async def test_with_n_every_choice_is_returned(serve):
    service = await serve()
    async with client(service) as ai:
        answer = await ai.chat.completions.create(model="cascade", messages=ASK, n=2)
    assert [choice.index for choice in answer.choices] == [0, 1]


async def test_tool_calls_are_returned_with_null_content(serve):
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    service = await serve(small=[Script(text="", tool_calls=[call], finish_reason="tool_calls")])
    async with client(service) as ai:
        answer = await ai.chat.completions.create(model="cascade", messages=ASK)
        assert answer.choices[0].message.content is None
        assert answer.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
        stream = await ai.chat.completions.create(model="cascade", messages=ASK, stream=True)
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.tool_calls[0].function.name == "f"


async def test_the_clients_logprobs_come_back_when_asked_for(serve):
    service = await serve()
    async with client(service) as ai:
        answer = await ai.chat.completions.create(
            model="cascade", messages=ASK, logprobs=True, top_logprobs=1
        )
    entries = answer.choices[0].logprobs.content
    assert entries[0].token == "four"
    assert len(entries[0].top_logprobs) == 1
