"""Says where each call of a request is in a trace, before the call is made and its span with it.

A model server that keeps traces can only go on with one whose names it is told with the call. So
the names of spans are not drawn when a span is made but computed from the request, alike before the
call and after it, and nothing has to be kept in between.
"""

from dataclasses import dataclass, field, replace
from hashlib import blake2b
from secrets import token_bytes

from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.span import TraceState

from cascade.protocols import Traces
from cascade.types import ChatRequest

_WIRE = TraceContextTextMapPropagator()
_ROOT, _ASIDE = "", "aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place(Traces):
    """Where a request's spans are.

    Attributes:
        trace: the trace's number.
        parent: the span of whoever asked; None when the trace begins here.
        sampled: whether the spans are sent.
        state: what others noted on the trace.
    """

    trace: int
    parent: SpanContext | None
    sampled: bool
    state: TraceState
    _seed: str
    _key: bytes = field(repr=False)

    @property
    def root(self) -> SpanContext:
        """Of the span that all others are within."""
        return self._span(_ROOT)

    def call(self, index: int) -> SpanContext:
        """Of the span of the attempt of an index."""
        return self._span(str(index))

    def aside(self) -> "Place":
        """Where the spans of what is done after the answer are: in a trace of their own.

        OpenTelemetry's specification has work that a request sets off and does not wait for told
        so, with a link back: its length is not the request's.
        """
        seed = f"{self._seed}/{_ASIDE}"
        trace = _number(seed, self._key, 16)
        return replace(self, trace=trace, parent=None, state=TraceState(), _seed=seed)

    def placed(self, request: ChatRequest, index: int) -> ChatRequest:
        """The request as its attempt of an index puts it, with the headers that say where it is."""
        carrier: dict[str, str] = {}
        _WIRE.inject(carrier, set_span_in_context(NonRecordingSpan(self.call(index)), Context()))
        return replace(request, context=carrier)

    def _span(self, name: str) -> SpanContext:
        return SpanContext(
            self.trace,
            _number(f"{self._seed}/{name}", self._key, 8),
            is_remote=False,
            trace_flags=TraceFlags(TraceFlags.SAMPLED if self.sampled else TraceFlags.DEFAULT),
            trace_state=self.state,
        )


class Places(Traces):
    """The places of all requests of one service.

    Args:
        sample: share of the requests whose spans are sent; a client that sends the context of a
            trace has decided for its own.
    """

    def __init__(self, sample: float) -> None:
        self._sampler = TraceIdRatioBased(sample)
        self._key = token_bytes(16)

    def of(self, request: ChatRequest) -> Place:
        """Where a request's spans are."""
        parent = _parent(request)
        seed = request.id
        trace = parent.trace_id if parent else _number(seed, self._key, 16)
        if parent:
            sampled = parent.trace_flags.sampled
        else:
            sampled = self._sampler.should_sample(None, trace, "").decision is not Decision.DROP
        return Place(
            trace=trace,
            parent=parent,
            sampled=sampled,
            state=parent.trace_state if parent else TraceState(),
            _seed=seed,
            _key=self._key,
        )

    def placed(self, request: ChatRequest, index: int) -> ChatRequest:
        """The request as its attempt of an index puts it, with the headers that say where it is."""
        return self.of(request).placed(request, index)


class Told(IdGenerator):
    """Gives the span that is made next the number that it is told.

    Attributes:
        context: of that span.
    """

    def __init__(self) -> None:
        self.context: SpanContext | None = None

    def generate_span_id(self) -> int:
        """The span's number."""
        return self._next.span_id

    def generate_trace_id(self) -> int:
        """Its trace's."""
        return self._next.trace_id

    @property
    def _next(self) -> SpanContext:
        if self.context is None:
            raise AssertionError("nobody said which span is made next")
        return self.context


def _parent(request: ChatRequest) -> SpanContext | None:
    """The span of whoever asked, as far as the headers that came can be read."""
    if not request.trace:
        return None
    carrier = {"traceparent": request.trace}
    if request.trace_state:
        carrier["tracestate"] = request.trace_state
    found = get_current_span(_WIRE.extract(carrier, Context())).get_span_context()
    return found if found.is_valid else None


def _number(seed: str, key: bytes, size: int) -> int:
    """Not to be found out by who knows the request's id, and never the 0 that means none."""
    return int.from_bytes(blake2b(seed.encode(), key=key, digest_size=size).digest()) or 1
