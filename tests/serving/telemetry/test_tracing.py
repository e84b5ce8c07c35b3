"""Traces: one span of the request, one below it of every call, in the conventions' terms."""

from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.trace import SpanKind, StatusCode

from cascade.backends.scripted import Script
from cascade.engine import CascadeEngine
from serving.telemetry.tracing import Tracing
from tests.builders import request
from tests.engines import FixedJudge, MemorySink
from tests.services import snapshot

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def told():
    return InMemorySpanExporter()


async def traced(told, asked=None, made=None, **options):
    tracing = Tracing({"small": "llama_cpp"}, told, **options)
    made = made or snapshot(judge=FixedJudge(0.1))
    engine = CascadeEngine(made, MemorySink())
    asked = asked or request(model="cascade", session="s1")
    result = await engine.run(asked, made.arm("cascade", ""))
    tracing.note(result)
    await tracing.aclose()
    return result, told.get_finished_spans()


async def test_an_escalated_request_is_one_trace_of_its_attempts_in_their_order(told):
    result, spans = await traced(told)
    *children, root = spans
    assert root.name == "chat cascade"
    assert root.kind is SpanKind.SERVER
    assert root.attributes["cascade.request_id"] == result.request.id
    assert root.attributes["cascade.tier"] == "large"
    assert {child.parent.span_id for child in children} == {root.context.span_id}
    kinds = [(c.attributes["cascade.attempt.kind"], c.attributes["cascade.tier"]) for c in children]
    assert kinds == [("answer", "small"), ("judge", "small"), ("answer", "large")]
    assert [c.attributes["cascade.attempt.index"] for c in children] == [0, 1, 2]


async def test_a_judges_span_tells_its_score_and_the_calls_their_tokens(told):
    result, spans = await traced(told)
    small, judge = spans[0], spans[1]
    assert judge.name == "evaluate told"
    assert judge.attributes["gen_ai.evaluation.score.value"] == pytest.approx(0.1)
    assert small.attributes["gen_ai.provider.name"] == "llama_cpp"
    used = result.attempts[0].completion.usage
    assert small.attributes["gen_ai.usage.input_tokens"] == used.prompt
    assert small.attributes["gen_ai.usage.output_tokens"] == used.output
    assert spans[2].attributes["gen_ai.provider.name"] == "unknown"


async def test_spans_last_as_long_as_what_they_tell_of(told):
    result, spans = await traced(told)
    root = spans[-1]
    assert (root.end_time - root.start_time) / 1e9 == pytest.approx(result.seconds, abs=1e-6)
    for span, attempt in zip(spans, result.attempts, strict=False):
        began = (span.start_time - root.start_time) / 1e9
        assert began == pytest.approx(attempt.started, abs=1e-6)
        assert root.start_time <= span.start_time <= span.end_time


async def test_what_is_not_known_is_left_out_and_every_name_is_one_of_the_conventions(told):
    _, spans = await traced(told)
    known = {value for name, value in vars(conventions).items() if name.startswith("GEN_AI_")}
    names = {name for span in spans for name in span.attributes}
    assert {name for name in names if name.startswith("gen_ai.")} <= known
    assert not [name for name in names if not name.startswith(("gen_ai.", "cascade."))]
    assert None not in [value for span in spans for value in span.attributes.values()]


async def test_the_clients_trace_is_gone_on_with(told):
    _, spans = await traced(told, request(model="cascade", trace=PARENT))
    assert {f"{span.context.trace_id:032x}" for span in spans} == {PARENT.split("-")[1]}
    assert f"{spans[-1].parent.span_id:016x}" == PARENT.split("-")[2]


async def test_a_client_that_wants_no_trace_gets_none_and_one_that_wants_it_does(told):
    _, spans = await traced(told, request(model="cascade", trace=PARENT[:-1] + "0"))
    assert not spans
    again = InMemorySpanExporter()
    _, spans = await traced(again, request(model="cascade", trace=PARENT), sample=0.0)
    assert len(spans) == 4


@pytest.mark.parametrize("trace", ["", "nonsense", "00-00000000000000000000000000000000-0-01"])
async def test_without_a_readable_trace_a_new_one_is_begun(told, trace):
    _, spans = await traced(told, request(model="cascade", trace=trace))
    assert spans[-1].parent is None


async def test_a_share_of_nothing_tells_of_nobody(told):
    _, spans = await traced(told, sample=0.0)
    assert not spans


async def test_no_word_of_the_conversation_is_in_a_span(told):
    ask = [{"role": "user", "content": "xyzzy plugh"}]
    made = snapshot(small=("frotz",), large=("rezrov",), judge=FixedJudge(0.1))
    asked = replace(request(model="cascade"), messages=ask)
    _, spans = await traced(told, asked, made)
    text = " ".join(span.to_json() for span in spans)
    assert spans
    assert not [word for word in ("xyzzy", "plugh", "frotz", "rezrov") if word in text]


async def test_a_request_that_failed_says_why(told):
    down = (Script(error="BackendUnreachableError"),)
    made = snapshot(small=down, large=down)
    result, spans = await traced(told, made=made)
    assert result.error is not None
    assert spans[-1].status.status_code is StatusCode.ERROR
    assert spans[-1].attributes["error.type"] == result.error.code
    assert [span.status.status_code for span in spans[:-1]] == [StatusCode.ERROR] * 2
