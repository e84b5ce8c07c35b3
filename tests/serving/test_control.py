"""What a client may say about one request: read from body or headers, the same for every API."""

import asyncio
from decimal import Decimal

import orjson
import pytest
from fastapi import Request

from cascade.backends.scripted import Script
from cascade.errors import RequestError
from cascade.experiments import Arm
from cascade.policies.fixed import FixedPolicy
from cascade.types import Budget
from serving import present
from serving.control import Control
from serving.incoming import header_texts
from serving.messages.routes import MESSAGES
from serving.recordings import REPLAY
from serving.responses.routes import RESPONSES
from serving.routes import CHAT
from tests.apis import APIS, app_of, ask
from tests.builders import attempt, request, result
from tests.chats import ASK, client
from tests.engines import FixedJudge
from tests.services import snapshot

PARSERS = {"chat": CHAT.parse, "messages": MESSAGES.parse, "responses": RESPONSES.parse}


@pytest.fixture(params=APIS)
def parsed(request):
    """Reads a request of each API with this cascade object and these headers."""

    def read(cascade=None, **headers):
        body = APIS[request.param].body(cascade=cascade)
        names = {f"x-cascade-{name.replace('_', '-')}": value for name, value in headers.items()}
        return PARSERS[request.param](orjson.dumps(body), names, "id")

    return read


def test_a_request_that_says_nothing_has_no_budget_no_pin_and_no_explanation(parsed):
    for call in (parsed(), parsed({}), parsed({"pin": None, "max_cost_usd": None}), parsed(pin="")):
        assert (call.request.budget, call.pin, call.explain) == (None, None, False)


def test_the_body_says_it_all(parsed):
    call = parsed(
        {
            "session": "s",
            "max_cost_usd": 0.001,
            "min_quality": 0.8,
            "deadline_ms": 1500,
            "pin": "large",
            "explain": True,
        }
    )
    assert call.request.session == "s"
    assert call.request.budget == Budget(dollars=Decimal("0.001"), seconds=1.5, quality=0.8)
    assert (call.pin, call.explain) == ("large", True)


def test_the_headers_say_it_all(parsed):
    call = parsed(
        session="s",
        max_cost_usd="0.001",
        min_quality="0.8",
        deadline_ms="1500",
        pin="large",
        explain="true",
    )
    assert call.request.session == "s"
    assert call.request.budget == Budget(dollars=Decimal("0.001"), seconds=1.5, quality=0.8)
    assert (call.pin, call.explain) == ("large", True)


def test_it_does_not_go_to_the_model(parsed):
    assert "cascade" not in parsed({"explain": True}).request.params


def test_the_body_wins_and_a_header_fills_what_it_leaves_open(parsed):
    call = parsed(
        {"max_cost_usd": "2", "session": None},
        max_cost_usd="not looked at",
        session="s",
        min_quality="1",
        explain="1",
    )
    assert call.request.budget == Budget(dollars=Decimal(2), quality=1.0)
    assert (call.request.session, call.explain) == ("s", True)


@pytest.mark.parametrize(
    ("given", "exact"),
    [(0.1, "0.1"), (1e-7, "0.0000001"), (3, "3"), ("0.10", "0.10"), (0.000001234, "0.000001234")],
)
def test_dollars_are_the_digits_that_were_written(parsed, given, exact):
    for call in (parsed({"max_cost_usd": given}), parsed(max_cost_usd=str(given))):
        assert call.request.budget.dollars == Decimal(exact)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_cost_usd", 0),
        ("max_cost_usd", -1),
        ("max_cost_usd", 1_000_001),
        ("max_cost_usd", 1e-13),
        ("max_cost_usd", True),
        ("max_cost_usd", [1]),
        ("max_cost_usd", "cheap"),
        ("max_cost_usd", "1e-999999"),
        ("max_cost_usd", "NaN"),
        ("min_quality", 1.01),
        ("min_quality", -0.1),
        ("min_quality", "0.5"),
        ("min_quality", True),
        ("deadline_ms", 0),
        ("deadline_ms", -5),
        ("deadline_ms", 86_400_001),
        ("deadline_ms", "100"),
        ("session", 5),
        ("session", ""),
        ("pin", ["small"]),
        ("pin", ""),
        ("explain", "yes"),
        ("explain", 1),
        ("max_cost", 1),
    ],
)
def test_what_is_wrong_in_the_body_is_named(parsed, field, value):
    with pytest.raises(RequestError) as caught:
        parsed({field: value})
    assert caught.value.param == f"cascade.{field}"
    assert caught.value.message.startswith(f"cascade.{field}: ")
    assert caught.value.status == 400


def test_an_unknown_key_is_told_what_is_known(parsed):
    with pytest.raises(RequestError, match="max_cost_usd, min_quality, deadline_ms, pin, explain"):
        parsed({"budget": 1})


@pytest.mark.parametrize("given", ["x", 5, [], True])
def test_control_that_is_no_object_is_named(parsed, given):
    with pytest.raises(RequestError) as caught:
        parsed(given)
    assert caught.value.param == "cascade"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_cost_usd", "0"),
        ("max_cost_usd", "cheap"),
        ("max_cost_usd", "inf"),
        ("min_quality", "nan"),
        ("min_quality", "2"),
        ("deadline_ms", "-1"),
        ("deadline_ms", "soon"),
        ("explain", "perhaps"),
    ],
)
def test_what_is_wrong_in_a_header_is_named(parsed, name, value):
    with pytest.raises(RequestError) as caught:
        parsed(**{name: value})
    header = f"x-cascade-{name.replace('_', '-')}"
    assert caught.value.param == header
    assert caught.value.message.startswith(f"{header}: ")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_pinned_tier_answers_whatever_the_model_is(api, stream):
    app, log = app_of(snapshot())
    for model in ("auto", "cascade", "small"):
        body = APIS[api].body(model=model, stream=stream, cascade={"pin": "large"})
        answer = await ask(app, APIS[api].path, body)
        assert answer.status == 200
        assert answer.headers["x-cascade-tier"] == "large"
        assert answer.headers["x-cascade-policy"] == "large"
        assert "x-cascade-experiment" not in answer.headers
        result = log.results[-1]
        assert (result.request.model, result.request.unit) == (model, "")
        assert (result.experiment, result.arm) == (None, None)
        assert [attempt.step.tier for attempt in result.attempts] == ["large"]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("pin", ["huge", "cascade", "auto"])
async def test_only_a_tier_can_be_pinned(api, pin):
    app, log = app_of(snapshot())
    for control in ({"cascade": {"pin": pin}}, {}):
        headers = [] if control else [(b"x-cascade-pin", pin.encode())]
        answer = await ask(app, APIS[api].path, APIS[api].body(**control), headers)
        assert answer.status == 400
        field = "cascade.pin" if control else "x-cascade-pin"
        assert answer.field == field
        assert answer.json["error"]["message"].startswith(f"{field}: {pin!r} is not the name")
        assert "the tiers are: small, large" in answer.json["error"]["message"]
    assert not log.results


@pytest.mark.parametrize("api", APIS)
async def test_a_wrong_pin_in_the_body_is_named_although_a_header_says_another(api):
    app, _ = app_of(snapshot())
    body = APIS[api].body(cascade={"pin": "huge"})
    answer = await ask(app, APIS[api].path, body, [(b"x-cascade-pin", b"small")])
    assert (answer.status, answer.field) == (400, "cascade.pin")


@pytest.mark.parametrize("api", APIS)
async def test_a_cache_is_only_filled_of_a_tier_that_is_named(api):
    app, log = app_of(snapshot())
    path, body = APIS[api].path, APIS[api].body()
    ahead = (b"x-cascade-prewarm", b"true")
    answer = await ask(app, path, body, [ahead])
    assert (answer.status, answer.field) == (400, "cascade.prewarm")
    assert not log.results
    answer = await ask(app, path, body, [ahead, (b"x-cascade-pin", b"small")])
    assert answer.status == 200
    assert log.results[0].request.prewarm


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", ["max-cost", "budget", "", "tier-name", "sesion"])
async def test_a_header_for_cascade_that_is_not_known_is_told_what_is(api, name):
    app, log = app_of(snapshot())
    header = f"x-cascade-{name}"
    answer = await ask(app, APIS[api].path, APIS[api].body(), [(header.encode(), b"1")])
    assert (answer.status, answer.field) == (400, header)
    known = [*(f"x-cascade-{field.replace('_', '-')}" for field in Control.model_fields)]
    assert ", ".join([*known, "x-cascade-tenant"]) in answer.json["error"]["message"]
    assert not log.results


@pytest.mark.parametrize("path", ["/v1/feedback", APIS["chat"].path])
async def test_it_is_refused_wherever_headers_are_read(path):
    app, log = app_of(snapshot())
    headers = [(b"idempotency-key", b"k"), (b"x-cascade-tennant", b"a")]
    answer = await ask(app, path, APIS["chat"].body(), headers)
    assert (answer.status, answer.field) == (400, "x-cascade-tennant")
    assert not log.results


def test_every_header_that_an_answer_may_have_is_ignored_in_a_request():
    arm = Arm(name="a", policy=FixedPolicy(name="p", tier="small"), experiment="e")
    late = present.late_headers(result(attempts=(attempt(usage_estimated=True),)))
    names = present.early_headers(request(), arm) | late | present.who("small", "m")
    raw = [(name.encode(), b"\xff") for name in names if name.startswith("x-cascade-")]
    assert len(raw) == 12
    assert header_texts(Request({"type": "http", "headers": [*raw, REPLAY]})) == {}


@pytest.mark.parametrize("api", APIS)
async def test_what_an_answer_said_may_come_back_with_the_next_request(api):
    app, _ = app_of(snapshot())
    first = await ask(app, APIS[api].path, APIS[api].body(model="auto"))
    passed_on = [(name.encode(), value.encode()) for name, value in first.headers.items()]
    passed_on = [(name, value) for name, value in passed_on if name.startswith(b"x-cascade-")]
    assert (b"x-cascade-tier", b"small") in passed_on
    assert (await ask(app, APIS[api].path, APIS[api].body(), passed_on)).status == 200


@pytest.mark.parametrize("api", APIS)
async def test_a_pin_does_not_hide_an_unknown_model(api):
    app, _ = app_of(snapshot())
    body = APIS[api].body(model="gpt-9", cascade={"pin": "small"})
    assert (await ask(app, APIS[api].path, body)).status == 404


async def test_the_openai_client_sends_it_as_extra_body_or_extra_headers(serve):
    service = await serve()
    async with client(service) as ai:
        for extra in (
            {"extra_body": {"cascade": {"pin": "large", "max_cost_usd": 0.5, "session": "s"}}},
            {
                "extra_headers": {
                    "x-cascade-pin": "large",
                    "x-cascade-max-cost-usd": "0.5",
                    "x-cascade-session": "s",
                }
            },
        ):
            answer = await ai.chat.completions.create(model="auto", messages=ASK, **extra)
            assert answer.model == "large-model"
    assert [result.request.budget for result in service.log.results] == [
        Budget(dollars=Decimal("0.5"))
    ] * 2
    assert {result.request.session for result in service.log.results} == {"s"}
    assert all(asked.params == {} for asked in service.backend("large").requests)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_cost_limit_below_every_price_is_a_400_before_any_call(api, stream):
    app, log = app_of(snapshot())
    control = {"max_cost_usd": "0.000000001", "explain": True}
    answer = await ask(app, APIS[api].path, APIS[api].body(stream=stream, cascade=control))
    assert answer.status == 400
    assert "budget" in answer.json["error"]["message"]
    assert answer.json["cascade"]["budget"]["max_cost_usd"] == "0.000000001"
    assert answer.json["cascade"]["attempts"] == []
    assert log.results[0].error.code == "budget_too_small"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_deadline_that_passes_is_a_504(api, stream):
    slow = [Script(first_token_seconds=30)]
    app, log = app_of(snapshot(small=slow, large=slow))
    body = APIS[api].body(stream=stream, cascade={"deadline_ms": 30})
    async with asyncio.timeout(10):
        answer = await ask(app, APIS[api].path, body)
    assert answer.status == 504
    assert log.results[0].error.code == "deadline_exceeded"


@pytest.mark.parametrize("api", APIS)
async def test_a_quality_that_the_judge_does_not_give_goes_on_to_the_next_tier(api):
    app, _ = app_of(snapshot(judge=FixedJudge(0.9)))
    headers = [(b"x-cascade-min-quality", b"0.95")]
    answer = await ask(app, APIS[api].path, APIS[api].body(), headers)
    assert answer.headers["x-cascade-tier"] == "large"
    answer = await ask(app, APIS[api].path, APIS[api].body())
    assert answer.headers["x-cascade-tier"] == "small"
