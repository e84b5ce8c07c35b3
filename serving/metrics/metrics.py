"""What one service tells Prometheus: counted from its results, and looked up when it is asked."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from cascade.forecast import Forecast
from cascade.protocols import AuditSink
from cascade.result import CascadeResult
from cascade.types import Attempt
from serving.metrics.counting import count, count_aside, count_attempt
from serving.metrics.families import Families
from serving.metrics.prefixes import Affinity, DistinctPrefixes
from serving.metrics.state import State, StateCollector
from serving.metrics.turns import Turns
from serving.readiness import READY, ServerState, states
from serving.store.sink import AuditState


class Metrics:
    """The metrics of one service. All of it belongs to the thread of the event loop.

    Attributes:
        forecast: what the engine expects of its tiers.

    Args:
        forecast: the engine's, which knows the tiers, their caches and their pace.
        kv_bytes_per_token: memory of a cached token by tier, where it is known.
    """

    def __init__(
        self, forecast: Forecast, *, kv_bytes_per_token: Mapping[str, int] | None = None
    ) -> None:
        self.forecast = forecast
        self._kv_bytes = kv_bytes_per_token or {}
        self._registry = CollectorRegistry()
        self._families = Families.declared(self._registry)
        self._state = StateCollector()
        self._registry.register(self._state)
        self._turns = Turns(forecast.tiers, forecast.pace, self._families)
        self._prefixes = DistinctPrefixes()
        self._affinity = Affinity()
        forecast.tell(lambda tier, answer: count_aside(tier, answer, self._families))

    def before(self, sink: AuditSink) -> AuditSink:
        """The sink, with every result counted on its way there."""
        return MeteredSink(sink, self)

    def began(self) -> None:
        """A request for an answer came in."""
        self._families.requests_in_flight.inc()

    def ended(self) -> None:
        """A request for an answer is over, whatever became of it."""
        self._families.requests_in_flight.dec()

    def note(self, result: CascadeResult) -> None:
        """Count a result."""
        count(result, self._families)
        self._prefixes.note(result.fingerprint)
        for attempt in result.attempts:
            answer = attempt.completion
            if answer is not None and attempt.answered and answer.usage.prompt:
                tier, tenant = attempt.step.tier, result.request.tenant
                self._affinity.note(tenant, tier, answer.replica, answer.usage.prompt)
        self._turns.note(result)

    def note_shadows(self, calls: Iterable[Attempt]) -> None:
        """Count calls that were made when their request had been answered."""
        for attempt in calls:
            count_attempt(attempt, self._families)

    def dropped_shadow(self, reason: str) -> None:
        """A request that was drawn is not answered once more."""
        self._families.shadow_dropped.labels(reason).inc()

    def told(self, servers: Iterable[ServerState], audit: AuditState | None) -> bytes:
        """Everything, as text that Prometheus reads.

        Args:
            servers: the model servers that Cascade launched.
            audit: how the log is doing.
        """
        tiers = self.forecast.tiers
        found = states(tiers, servers)
        held = {name: self.forecast.ledger.held_tokens(name) for name in tiers}
        tokens = {name: count for name, count in held.items() if count is not None}
        kv_bytes = self._kv_bytes
        self._state.state = State(
            cooling={name: tier.cooling() for name, tier in tiers.items()},
            ready={name: state == READY for name, state in found.items()},
            retained_tokens=tokens,
            retained_bytes={n: count * kv_bytes[n] for n, count in tokens.items() if n in kv_bytes},
            prefixes=self._prefixes.count(),
            affinity=self._affinity.share(),
            audit=audit,
        )
        return generate_latest(_WithoutBirthdays(self._registry))


class MeteredSink(AuditSink):
    """Another sink, whose results are counted as well.

    They are counted in the loop's next turn, so that no request waits for it or fails by it.

    Args:
        inner: takes every result.
        metrics: where they are counted.
    """

    def __init__(self, inner: AuditSink, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    def write(self, result: CascadeResult) -> None:
        """Take a result."""
        self._inner.write(result)
        asyncio.get_running_loop().call_soon(self._metrics.note, result)


class _WithoutBirthdays(Collector):
    """Leaves out when each series began, which takes as many lines again and nobody asks for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [s for s in family.samples if not s.name.endswith("_created")]
            yield family
