"""Where each call is in a trace: what model servers are told, held against the spans sent."""

import asyncio
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from cascade.backends.openai_http import OpenAIHttpBackend
from cascade.engine import CascadeEngine
from cascade.experiments import Arm
from cascade.policies.ladder import LadderPolicy, Rung
from cascade.snapshot import Snapshot
from cascade.tiers import ModelTier
from classifiers.llm import LlmEstimator
from judges.llm import LlmJudge
from serving.config import Shadow
from serving.shadow.budget import DayBudget
from serving.shadow.idle import Idle
from serving.shadow.shadows import Shadows
from serving.telemetry.places import Places
from serving.telemetry.tracing import Tracing
from tests.builders import request
from tests.chats import ASK, client
from tests.engines import MemorySink, card
from tests.services import MemoryLog, running
from tests.upstream import DONE, Upstream, serving, words

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATE = "vendor=opaque,other=1"


@pytest.fixture
async def upstream():
    async with serving(Upstream(pieces=[*words("1", usage=None), DONE])) as made:
        yield made


@pytest.fixture
async def known(upstream):
    """Two tiers and one that judges and estimates, all models of one server over HTTP."""
    backends = {
        name: OpenAIHttpBackend(url=upstream.url, model=name)
        for name in ("small", "large", "grader")
    }
    tiers = {
        name: ModelTier(name=name, backend=backend, prices=card())
        for name, backend in backends.items()
    }
    judge = LlmJudge(name="told", tier="grader", tiers=tiers)
    guess = LlmEstimator(name="guess", tier="grader", tiers={"small": 0.5}, served=tiers)
    steps = (Rung(tier="small", judge="told", accept_at=0.8), Rung(tier="large"))
    policy = LadderPolicy(name="cascade", steps=steps)
    yield Snapshot(
        version="v1",
        tiers=tiers,
        judges={"told": judge},
        arms={
            "cascade": Arm(name=None, policy=policy),
            "guessing": Arm(name=None, policy=policy, estimator=guess),
        },
    )
    for backend in backends.values():
        await backend.aclose()


async def asked(known, upstream, sent, model="cascade", **options):
    """What the server was told by call, in their order, and the spans by their numbers."""
    told = InMemorySpanExporter()
    tracing = Tracing({}, told, **options)
    engine = CascadeEngine(known, tracing.before(MemorySink()), traces=tracing.places)
    await engine.run(sent, known.arm(model, ""))
    await asyncio.sleep(0)
    await tracing.aclose()
    return carried(upstream), told.get_finished_spans()


def carried(upstream):
    return [
        (body["model"], sent.get("traceparent"))
        for body, sent in zip(upstream.bodies, upstream.sent, strict=True)
    ]


def placed(spans):
    return {f"00-{s.context.trace_id:032x}-{s.context.span_id:016x}-01": s.name for s in spans}


async def test_each_call_names_the_span_of_its_own_attempt(known, upstream):
    calls, spans = await asked(known, upstream, request(model="cascade"))
    named = placed(spans)
    assert [(model, named[trace]) for model, trace in calls] == [
        ("small", "chat m-1"),
        ("grader", "evaluate told"),
        ("large", "chat m-1"),
    ]
    assert len({trace for _, trace in calls}) == 3
    assert [span.context.span_id for span in spans[:3]] == [
        int(trace.split("-")[2], 16) for _, trace in calls
    ]
    assert {span.context.trace_id for span in spans} == {int(calls[0][1].split("-")[1], 16)}


async def test_an_estimator_that_asks_a_model_names_its_own_span_too(known, upstream):
    calls, spans = await asked(known, upstream, request(model="guessing"), model="guessing")
    first = spans[0]
    assert first.attributes["cascade.attempt.kind"] == "estimate"
    assert first.kind is SpanKind.CLIENT
    assert calls[0][0] == "grader"
    assert placed(spans)[calls[0][1]] == first.name
    assert calls[0][1].split("-")[2] == f"{first.context.span_id:016x}"


async def test_a_clients_trace_and_what_others_noted_on_it_go_on_to_the_server(known, upstream):
    sent = request(model="cascade", trace=PARENT, trace_state=STATE)
    calls, spans = await asked(known, upstream, sent)
    assert {trace.split("-")[1] for _, trace in calls} == {PARENT.split("-")[1]}
    assert PARENT.split("-")[2] not in {trace.split("-")[2] for _, trace in calls}
    assert {headers["tracestate"] for headers in upstream.sent} == {STATE}
    assert f"{spans[-1].parent.span_id:016x}" == PARENT.split("-")[2]


async def test_without_a_note_of_others_none_is_sent(known, upstream):
    await asked(known, upstream, request(model="cascade"))
    assert not [headers for headers in upstream.sent if "tracestate" in headers]


@pytest.mark.parametrize(("trace", "sample"), [("", 0.0), (PARENT[:-1] + "0", 1.0)])
async def test_of_what_is_not_sampled_the_server_is_told_so(known, upstream, trace, sample):
    sent = request(model="cascade", trace=trace)
    calls, spans = await asked(known, upstream, sent, sample=sample)
    assert not spans
    assert [trace[-3:] for _, trace in calls] == ["-00"] * 3


async def test_a_share_of_the_requests_is_sampled(known):
    places = Places(0.25)
    drawn = sum(places.of(request()).sampled for _ in range(2000))
    assert 400 < drawn < 600


def test_two_services_give_one_request_different_places():
    one = request()
    assert Places(1.0).of(one).trace != Places(1.0).of(one).trace
    places = Places(1.0)
    assert places.of(one) == places.of(one)


async def test_without_traces_a_server_is_told_nothing_also_not_of_the_clients(known, upstream):
    engine = CascadeEngine(known, MemorySink())
    sent = request(model="cascade", trace=PARENT, trace_state=STATE)
    await engine.run(sent, known.arm("cascade", ""))
    assert calls_without_a_trace(upstream) == ["small", "grader", "large"]


def calls_without_a_trace(upstream):
    told = [{name.lower() for name in headers} for headers in upstream.sent]
    assert not [names for names in told if names & {"traceparent", "tracestate"}]
    return [body["model"] for body in upstream.bodies]


async def test_a_service_hands_on_the_headers_that_came_over_http(known, upstream):
    told = InMemorySpanExporter()
    tracing = Tracing({}, told)
    log = MemoryLog()
    async with (
        running(known, log=log, background=[tracing], traces=tracing.places) as service,
        client(service) as asks,
    ):
        headers = {"traceparent": PARENT, "tracestate": STATE}
        await asks.chat.completions.create(model="cascade", messages=ASK, extra_headers=headers)
    trace = PARENT.split("-")[1]
    assert [each.split("-")[1] for _, each in carried(upstream)] == [trace] * 3
    assert {headers["tracestate"] for headers in upstream.sent} == {STATE}


@pytest.fixture
async def shadowed(known):
    """Answers requests by the small tier and has the large one asked afterwards."""
    told, sink = InMemorySpanExporter(), MemorySink()
    tracing = Tracing({}, told)
    forecast = CascadeEngine(known, sink).forecast
    shadows = Shadows(
        Shadow(share=1.0, usd_per_day=5, judges=["told"]),
        ["large"],
        snapshot=lambda: known,
        forecast=forecast,
        budget=DayBudget(5, None),
        idle=Idle((), forecast, 1.0),
        asks={"told": ["grader"]},
        inner=tracing.before(sink),
        log=_LateLog(),
        tracer=tracing,
    )
    engine = CascadeEngine(known, shadows, forecast=forecast, traces=tracing.places)

    async def answer(sent):
        await shadows.start()
        await engine.run(sent, known.arm("small", ""))
        shadows.sent(sent.id)
        await shadows.aclose()
        await tracing.aclose()
        return told.get_finished_spans()

    return answer


class _LateLog:
    def add(self, late):
        pass


async def test_calls_after_the_answer_are_a_trace_of_their_own_with_a_link_to_the_request(
    shadowed, upstream
):
    spans = await shadowed(request(model="small", trace=PARENT, trace_state=STATE))
    own = [span for span in spans if f"{span.context.trace_id:032x}" == PARENT.split("-")[1]]
    late = [span for span in spans if span not in own]
    *calls, root = late
    assert root.name == "shadow small"
    assert root.parent is None
    assert [link.context.span_id for link in root.links] == [own[-1].context.span_id]
    assert [(span.name, span.kind) for span in calls] == [
        ("evaluate told", SpanKind.INTERNAL),
        ("chat m-1", SpanKind.CLIENT),
        ("evaluate told", SpanKind.INTERNAL),
    ]
    assert {span.parent.span_id for span in calls} == {root.context.span_id}
    assert [span.attributes["cascade.propensity"] for span in calls] == [1.0] * 3
    assert root.start_time <= calls[0].start_time
    assert root.end_time >= calls[-1].end_time
    told = [(model, trace) for model, trace in carried(upstream)][1:]
    assert [model for model, _ in told] == ["grader", "large", "grader"]
    assert [int(trace.split("-")[2], 16) for _, trace in told] == [
        span.context.span_id for span in calls
    ]
    assert {int(trace.split("-")[1], 16) for _, trace in told} == {root.context.trace_id}
    assert not [headers for headers in upstream.sent[1:] if "tracestate" in headers]


async def test_of_a_request_without_spans_the_calls_after_the_answer_have_none(shadowed, upstream):
    spans = await shadowed(replace(request(model="small"), trace=PARENT[:-1] + "0"))
    assert not spans
    assert [trace[-3:] for _, trace in carried(upstream)] == ["-00"] * 4
