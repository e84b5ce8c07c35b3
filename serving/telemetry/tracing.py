"""Sends the spans of every result to a collector, by OTLP over HTTP.

They are made when the result is there, with the times that were taken anyway, so that nothing of a
request waits for them and a collector that is down costs spans and no answers.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    set_span_in_context,
)

from cascade.protocols import AuditSink, Traces
from cascade.result import CascadeResult
from cascade.types import Attempt, ChatRequest
from serving.service import Background
from serving.telemetry.places import Place, Places, Told
from serving.telemetry.spans import Spanned, of_attempts, of_request, of_shadows

_NANO = 1_000_000_000
_FIRST_TOKEN = "gen_ai.first_chunk"  # noqa: S105 - the name of an event
_EXPORT_SECONDS = 10.0
_log = logging.getLogger("cascade.tracing")


class Tracing(Background):
    """The traces of one service.

    Args:
        providers: who serves each tier, in the words of OpenTelemetry's conventions.
        exporter: where spans go; see `exporter`.
        service: the name they are told under.
        sample: share of the requests whose spans are sent; a client that sends the context of a
            trace has decided for its own.

    Attributes:
        places: says where each call is in its trace.
    """

    def __init__(
        self,
        providers: Mapping[str, str],
        exporter: SpanExporter,
        *,
        service: str = "cascade",
        sample: float = 1.0,
    ) -> None:
        self.places = Places(sample)
        self._providers = providers
        self._next = Told()
        release = version("cascade-router")
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # whether there are any is known before they are made
            id_generator=self._next,
            resource=Resource.create({SERVICE_NAME: service, SERVICE_VERSION: release}),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer: Tracer = self._provider.get_tracer("cascade", release)

    def before(self, sink: AuditSink) -> AuditSink:
        """The sink, with the spans of every result made on its way there."""
        return TracedSink(sink, self)

    async def start(self) -> None:
        """Nothing is to be begun: the exporter's thread is there."""

    async def aclose(self) -> None:
        """Send what is left, and end."""
        await asyncio.to_thread(self._provider.shutdown)

    def note(self, result: CascadeResult) -> None:
        """Make the spans of a result."""
        place = self.places.of(result.request)
        if place.sampled:
            with self._within(place, of_request(result), SpanKind.SERVER):
                self._make(place, result, result.attempts)

    def aside(self, request: ChatRequest) -> Traces:
        """Says where each call is that is made for a request after its answer."""
        return self.places.of(request).aside()

    def note_aside(self, result: CascadeResult, calls: Sequence[Attempt]) -> None:
        """Make the spans of calls that were made for a request after its answer."""
        place = self.places.of(result.request)
        if place.sampled:
            own, links = place.aside(), [Link(place.root)]
            with self._within(own, of_shadows(result, calls), SpanKind.INTERNAL, links):
                self._make(own, result, calls)

    @contextmanager
    def _within(
        self, place: Place, whole: Spanned, kind: SpanKind, links: Sequence[Link] = ()
    ) -> Iterator[None]:
        """Begin the span that others are within, and end it after those."""
        root = self._begun(whole, place.root, place.parent, kind, links)
        try:
            yield
        finally:
            _ended(root, whole)

    def _make(self, place: Place, result: CascadeResult, calls: Sequence[Attempt]) -> None:
        """A span of every call."""
        for attempt, each in zip(calls, of_attempts(result, calls, self._providers), strict=True):
            kind = SpanKind.CLIENT if each.remote else SpanKind.INTERNAL
            _ended(self._begun(each, place.call(attempt.index), place.root, kind), each)

    def _begun(
        self,
        what: Spanned,
        own: SpanContext,
        parent: SpanContext | None,
        kind: SpanKind,
        links: Sequence[Link] = (),
    ) -> Span:
        self._next.context = own
        within = Context()
        if parent is not None:
            within = set_span_in_context(NonRecordingSpan(parent), within)
        return self._tracer.start_span(
            what.name,
            context=within,
            kind=kind,
            links=links,
            attributes=dict(what.attributes),
            start_time=_nanoseconds(what.began),
        )


class TracedSink(AuditSink):
    """Another sink, whose results are made into spans as well, in the loop's next turn.

    Args:
        inner: takes every result.
        tracing: makes the spans.
    """

    def __init__(self, inner: AuditSink, tracing: Tracing) -> None:
        self._inner = inner
        self._tracing = tracing

    def write(self, result: CascadeResult) -> None:
        """Take a result."""
        self._inner.write(result)
        asyncio.get_running_loop().call_soon(self._tracing.note, result)


class _SaidOnce(SpanExporter):
    """Another exporter, whose failures are said when they begin and when they end.

    Args:
        inner: sends the spans.
        endpoint: where to.
    """

    def __init__(self, inner: SpanExporter, endpoint: str) -> None:
        self._inner = inner
        self._endpoint = endpoint
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; those that cannot be sent are lost."""
        result = self._inner.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            _log.warning("spans cannot be sent to %s and are lost", self._endpoint)
        elif self._failing and not failed:
            _log.warning("spans are sent to %s again", self._endpoint)
        self._failing = failed
        return result

    def shutdown(self) -> None:
        """End."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what is held back."""
        return self._inner.force_flush(timeout_millis)


def exporter(endpoint: str, headers: Mapping[str, str]) -> SpanExporter:
    """Sends spans to a collector.

    Args:
        endpoint: the collector's address, path included, such as http://127.0.0.1:4318/v1/traces.
        headers: sent along, such as a key.
    """
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)  # what follows says it
    inner = OTLPSpanExporter(endpoint=endpoint, headers=dict(headers), timeout=_EXPORT_SECONDS)
    return _SaidOnce(inner, endpoint)


def _ended(span: Span, what: Spanned) -> None:
    if what.first_token_seconds is not None:
        span.add_event(_FIRST_TOKEN, timestamp=_nanoseconds(what.began + what.first_token_seconds))
    if what.fault is not None:
        kind, sentence = what.fault
        span.set_attribute("error.type", kind)
        span.set_status(Status(StatusCode.ERROR, sentence))
    span.end(_nanoseconds(what.began + what.seconds))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * _NANO)
