"""What an explanation says, and where each API puts it."""

from decimal import Decimal

import anthropic
import orjson
import pytest

from cascade.backends.scripted import Script
from cascade.quote import Quote, Shared
from cascade.types import Budget, Usage
from serving import present
from serving.explain import explained, explanation
from tests import builders
from tests.apis import APIS, app_of, ask
from tests.builders import attempt, completion, cost, escalated, failed, result
from tests.chats import ASK, client
from tests.engines import FixedJudge
from tests.messages import ASK as MESSAGE
from tests.services import snapshot

EXPLAIN = {"extra_body": {"cascade": {"explain": True}}}


def test_it_says_who_answered_by_which_rule_and_what_it_cost():
    told = explanation(result("r1", baseline=cost("0.00005"), degraded=True))
    assert {name: value for name, value in told.items() if name != "attempts"} == {
        "request_id": "r1",
        "requested_model": "auto",
        "experiment": "auto",
        "arm": "cascade",
        "experiment_version": None,
        "policy": "default",
        "config_version": "c0ffee",
        "tier": "small",
        "model": "qwen2.5-coder-0.5b",
        "reason": "small is not judged",
        "degraded": True,
        "cost_usd": "0.00000172",
        "cost_estimated": False,
        "baseline_usd": "0.00005",
        "overhead_ms": 3.0,
        "seconds": 0.21,
        "beliefs": {"small": 0.41, "large": 0.78},
        "belief_flags": [],
        "budget": None,
    }


def test_every_attempt_says_why_it_was_made_and_what_came_of_it():
    small, judge, large = explanation(escalated())["attempts"]
    assert small == {
        "index": 0,
        "kind": "answer",
        "tier": "small",
        "model": "qwen2.5-coder-0.5b",
        "outcome": "rejected",
        "reason": "the first step of the ladder",
        "judge": "logprob",
        "score": 0.412,
        "threshold": 0.7,
        "verdict_reason": "the mean token was given a probability of 0.9",
        "cost_usd": "0.00000172",
        "usage_estimated": False,
        "cold_premium_usd": "0.000001",
        "quoted_usd": "0.000002",
        "credit_usd": "0",
        "decision_price_usd": "0.000002",
        "warm_tokens": 0,
        "cold_tokens": 0,
        "expected_seconds": None,
        "seconds": 0.2,
        "first_token_seconds": 0.05,
        "tries": 1,
        "tokens": {
            "input": 40,
            "cache_read": 60,
            "cache_write": None,
            "output": 12,
            "reasoning": None,
        },
        "error": None,
    }
    assert (judge["kind"], judge["score"], judge["tokens"]) == ("judge", 0.412, None)
    assert (large["tier"], large["outcome"]) == ("large", "accepted")
    assert large["reason"] == "logprob gives small's answer 0.412, which is below 0.700"


def test_the_bill_and_the_price_that_was_decided_by_are_two_things():
    told = Quote(
        tier="small",
        warm_tokens=600,
        cold_tokens=400,
        dollars=Decimal("0.001"),
        shared=Shared(premium=0.0009, cold=0.0003, credit=0.0001 / 3),
    )
    call = explanation(result(attempts=(attempt(quote=told),)))["attempts"][0]
    assert (call["warm_tokens"], call["cold_tokens"]) == (600, 400)
    assert (call["quoted_usd"], call["credit_usd"]) == ("0.001", "0.000033333333")
    assert call["decision_price_usd"] == "0.000966666667"


@pytest.mark.parametrize("quote", [None, Quote(tier="small")])
def test_a_call_without_a_known_price_was_decided_by_none(quote):
    call = explanation(result(attempts=(attempt(quote=quote),)))["attempts"][0]
    for name in ("quoted_usd", "credit_usd", "decision_price_usd"):
        assert call[name] is None


def test_a_failed_attempt_says_how_it_failed():
    error = explanation(result(attempts=(failed(),)))["attempts"][0]["error"]
    assert error == {
        "type": "BackendConnectionError",
        "message": "connection refused",
        "status": 503,
    }


def test_what_is_not_known_is_null_and_no_number():
    told = explanation(result(attempts=(attempt(cost=None, cold_premium=None),), beliefs=None))
    assert (told["cost_usd"], told["baseline_usd"], told["beliefs"]) == (None, None, None)
    assert (told["attempts"][0]["cost_usd"], told["attempts"][0]["cold_premium_usd"]) == (None,) * 2


def test_limits_are_told_in_the_words_they_were_stated_in():
    budget = Budget(dollars=Decimal("0.0000001"), seconds=1.5, quality=0.8)
    told = explanation(result(request=builders.request(budget=budget)))
    assert told["budget"] == {
        "max_cost_usd": "0.0000001",
        "min_quality": 0.8,
        "deadline_ms": 1500.0,
    }


def test_an_estimated_cost_says_so_in_explanation_and_header():
    cut = result(attempts=(attempt(usage_estimated=True),))
    told = explanation(cut)
    assert (told["cost_estimated"], told["attempts"][0]["usage_estimated"]) == (True, True)
    assert present.late_headers(cut)["x-cascade-cost-estimated"] == "true"
    assert "x-cascade-cost-estimated" not in present.late_headers(result())


@pytest.mark.parametrize("api", APIS)
async def test_a_call_that_was_cut_before_another_answered_makes_the_cost_an_estimate(api):
    app, _ = app_of(snapshot(small=[Script(text="a b c", cut_after=2)]))
    answer = await ask(app, APIS[api].path, APIS[api].body(cascade={"explain": True}))
    assert answer.headers["x-cascade-tier"] == "large"
    assert answer.headers["x-cascade-cost-estimated"] == "true"
    attempts = answer.json["cascade"]["attempts"]
    assert [each["usage_estimated"] for each in attempts] == [True, False]
    assert answer.headers["x-cascade-cost-usd"] == answer.json["cascade"]["cost_usd"] != "unknown"


def test_a_cost_that_is_not_known_is_not_called_an_estimate():
    cut = result(attempts=(attempt(usage_estimated=True, cost=None),))
    assert not explanation(cut)["cost_estimated"]
    headers = present.late_headers(cut)
    assert headers["x-cascade-cost-usd"] == "unknown"
    assert "x-cascade-cost-estimated" not in headers


def test_the_baseline_is_a_header_in_plain_decimals_or_unknown():
    assert present.late_headers(result())["x-cascade-baseline-usd"] == "unknown"
    tiny = present.late_headers(result(baseline=cost("1E-7")))
    assert tiny["x-cascade-baseline-usd"] == "0.0000001"


def test_it_can_be_written_as_json_and_has_nothing_of_the_prompt_or_the_answers():
    secret = "nobody may read this"
    asked = builders.request(messages=[{"role": "user", "content": secret}])
    usage = Usage(input=1, cache_write={"5m": 2}, output=float("nan"))
    said = attempt(completion=completion(secret, usage=usage))
    text = orjson.dumps(explanation(result(request=asked, attempts=(said,)))).decode()
    assert secret not in text
    assert '"cache_write":{"5m":2}' in text


def test_it_is_told_only_to_who_asked():
    assert explained(result(), asked=False) == {}
    assert explained(result("r1"), asked=True)["cascade"]["request_id"] == "r1"


@pytest.mark.parametrize("api", APIS)
async def test_a_whole_answer_has_it_beside_its_usage(api):
    app, log = app_of(snapshot())
    silent = await ask(app, APIS[api].path, APIS[api].body())
    assert "cascade" not in silent.json
    told = await ask(app, APIS[api].path, APIS[api].body(cascade={"explain": True}))
    assert told.json["usage"]
    assert told.json["cascade"] == explanation(log.results[-1])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
async def test_an_error_has_it_beside_the_error(api, stream):
    broken = [Script(error="BackendServerError")]
    app, log = app_of(snapshot(small=broken, large=broken))
    body = APIS[api].body(stream=stream)
    assert "cascade" not in (await ask(app, APIS[api].path, body)).json
    answer = await ask(app, APIS[api].path, {**body, "cascade": {"explain": True}})
    assert answer.status == 502
    assert answer.json["error"]["message"]
    assert answer.json["cascade"] == explanation(log.results[-1])
    assert [each["error"]["status"] for each in answer.json["cascade"]["attempts"]] == [502, 502]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("model", ["cascade", "always-small"])
async def test_a_stream_tells_it_once_at_its_end(api, model):
    app, log = app_of(snapshot())
    body = APIS[api].body(model=model, stream=True)
    assert b'"cascade":{' not in (await ask(app, APIS[api].path, body)).body
    answer = await ask(app, APIS[api].path, {**body, "cascade": {"explain": True}})
    [told] = [event for event in _data(answer.body) if _told(event)]
    assert _told(told) == explanation(log.results[-1])
    assert told in _data(answer.body)[-2:]


@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_breaks_tells_it_with_the_error(api):
    app, log = app_of(snapshot(small=[Script(text="a b c", cut_after=2)]))
    body = APIS[api].body(model="always-small", stream=True, cascade={"explain": True})
    answer = await ask(app, APIS[api].path, body)
    events = _data(answer.body)
    assert events[-1]["error"]["message"]
    assert [_told(event) for event in events if _told(event)] == [explanation(log.results[-1])]


def _told(event):
    return event.get("cascade") or event.get("response", {}).get("cascade")


def _data(body):
    lines = body.decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [orjson.loads(each) for each in data if each != "[DONE]"]


async def test_the_openai_client_reads_it_streamed_with_usage_or_without(serve):
    service = await serve(small=["one two"], judge=FixedJudge(0.1))
    async with client(service) as ai:
        whole = await ai.chat.completions.create(model="cascade", messages=ASK, **EXPLAIN)
        assert whole.cascade["tier"] == "large"
        assert [each["kind"] for each in whole.cascade["attempts"]] == ["answer", "judge", "answer"]
        for options in ({}, {"stream_options": {"include_usage": True}}):
            fields = {"model": "cascade", "messages": ASK, "stream": True, **options, **EXPLAIN}
            chunks = [chunk async for chunk in await ai.chat.completions.create(**fields)]
            *said, last = chunks
            assert all(chunk.choices for chunk in said)
            assert last.choices == []
            assert (last.usage is not None) == bool(options)
            assert last.cascade["request_id"] == service.log.results[-1].request.id


async def test_the_anthropic_client_reads_it_streamed_or_not(serve):
    service = await serve()
    async with _anthropic(service) as ai:
        message = await ai.messages.create(model="cascade", **MESSAGE, **EXPLAIN)
        assert message.cascade["tier"] == "small"
        headers = {"x-cascade-explain": "true", "x-cascade-pin": "large"}
        message = await ai.messages.create(model="cascade", **MESSAGE, extra_headers=headers)
        assert message.cascade["tier"] == "large"
        fields = {"model": "cascade", "stream": True, **MESSAGE, **EXPLAIN}
        events = [event async for event in await ai.messages.create(**fields)]
        [delta] = [event for event in events if event.type == "message_delta"]
        assert delta.cascade["request_id"] == service.log.results[-1].request.id
        async with ai.messages.stream(model="cascade", **MESSAGE, **EXPLAIN) as stream:
            assert (await stream.get_final_message()).content[0].text == "four"


async def test_the_openai_client_reads_it_from_a_response_streamed_or_not(serve):
    service = await serve()
    async with client(service) as ai:
        whole = await ai.responses.create(model="cascade", input="2+2?", **EXPLAIN)
        assert whole.cascade["tier"] == "small"
        async with ai.responses.stream(model="cascade", input="2+2?", **EXPLAIN) as stream:
            final = await stream.get_final_response()
    assert final.cascade["request_id"] == service.log.results[-1].request.id


async def test_the_clients_find_the_requests_id_where_they_look_for_it(serve):
    service = await serve()
    async with _anthropic(service) as ai:
        message = await ai.messages.with_raw_response.create(model="cascade", **MESSAGE)
    async with client(service) as ai:
        fields = {"model": "cascade", "messages": ASK}
        answer = await ai.chat.completions.with_raw_response.create(**fields)
    told = [message.request_id, answer.request_id]
    assert told == [each.request.id for each in service.log.results]


async def test_a_refused_request_has_its_id_where_the_clients_look_for_it():
    app, _ = app_of(snapshot())
    for api in APIS.values():
        answer = await ask(app, api.path, api.body(model="gpt-9"))
        names = ("x-cascade-request-id", "x-request-id", "request-id")
        assert len({answer.headers[name] for name in names}) == 1


def _anthropic(service):
    return anthropic.AsyncAnthropic(base_url=service.url, api_key="none", max_retries=0)
