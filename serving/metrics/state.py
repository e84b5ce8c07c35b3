"""What is told of the service's state at the moment when it is asked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from serving.store.sink import AuditState


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The service at one moment.

    Attributes:
        cooling: whether each tier is being left alone.
        ready: whether each tier can be asked.
        retained_tokens: in each tier's caches, as far as Cascade knows; only of those with one.
        retained_bytes: the same where it is known what a token takes.
        prefixes: different stable parts of prompts, lately.
        affinity: share of a tenant's prompt tokens at the server that got most; None for none.
        audit: how the log is doing; None when that is not known.
    """

    cooling: Mapping[str, bool] = field(default_factory=dict)
    ready: Mapping[str, bool] = field(default_factory=dict)
    retained_tokens: Mapping[str, int] = field(default_factory=dict)
    retained_bytes: Mapping[str, int] = field(default_factory=dict)
    prefixes: int = 0
    affinity: float | None = None
    audit: AuditState | None = None


class StateCollector(Collector):
    """Tells Prometheus of the state that it was given last."""

    def __init__(self) -> None:
        self.state = State()

    def collect(self) -> Iterator[Metric]:
        """All of it; what is not known is left out."""
        state = self.state
        yield _by_tier("tier_cooling", "1 while a tier is left alone after faults.", state.cooling)
        yield _by_tier("tier_ready", "1 while a tier can be asked.", state.ready)
        yield _by_tier(
            "cache_retained_tokens",
            "Tokens that a tier's caches are expected to hold.",
            state.retained_tokens,
        )
        yield _by_tier(
            "cache_retained_bytes",
            "Bytes of these, where it is known what a token takes.",
            state.retained_bytes,
        )
        yield _one(
            "prompt_fingerprint_cardinality",
            "Different stable beginnings of prompts within the last hour, 10000 at most.",
            state.prefixes,
        )
        affinity = _one(
            "tenant_cache_affinity",
            "Share of a tenant's prompt tokens that went to the server with most of them.",
            state.affinity,
        )
        yield affinity
        if state.audit is not None:
            yield from _audit(state.audit)


def _audit(audit: AuditState) -> Iterator[Metric]:
    yield _one("audit_queued_rows", "Results that are still in memory.", audit.queued)
    yield _one("audit_spilled_rows", "Rows in the spool folder, on their way.", audit.backlog.rows)
    yield CounterMetricFamily(
        "cascade_audit_dropped", "Results that were not recorded.", value=audit.dropped
    )
    yield CounterMetricFamily(
        "cascade_audit_refused", "Rows that the database would not take.", value=audit.refused
    )


def _one(name: str, text: str, value: float | None) -> Metric:
    family = GaugeMetricFamily(f"cascade_{name}", text)
    if value is not None:
        family.add_metric([], value)
    return family


def _by_tier(name: str, text: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"cascade_{name}", text, labels=["tier"])
    for tier, value in values.items():
        family.add_metric([tier], value)
    return family
