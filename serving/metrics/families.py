"""Every metric that is counted as results come in, declared in one place.

Labels hold names of the configuration only. What a client may make up, such as a tenant or a model
that is not there, never becomes one: each would be a series that is kept for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

BUCKETS_MS = (1, 5, 10, 25, 50, 100, 250, 500, 1e3, 2.5e3, 5e3, 1e4, 3e4, 6e4, 3e5, 1.8e6)
"""From what nobody notices up to half an hour, which a tool may take."""


_ATTEMPT = ("tier", "kind")

COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "requests": ("Requests that are over.", ("experiment", "policy", "status")),
        "attempts": ("Calls, by what for and what became of them.", (*_ATTEMPT, "outcome")),
        "escalations": (
            "Answers of one tier after which another tier was asked.",
            ("from_tier", "to_tier", "cause"),
        ),
        "cost_usd": ("Dollars spent, where the cost is known.", _ATTEMPT),
        "cost_unknown": ("Calls whose cost nobody knows.", _ATTEMPT),
        "cold_premium_usd": ("Dollars more than with every prompt warm.", ("tier",)),
        "prefill_tokens": ("Prompt tokens, cached or not, as reported.", ("tier",)),
        "decode_tokens": ("Tokens of answers, reasoning included, as reported.", ("tier",)),
        "prefix_cache_hit_tokens": ("Prompt tokens that were read from a cache.", ("tier",)),
        "prefix_cache_miss_tokens": ("Prompt tokens that were not.", ("tier",)),
        "prefix_cache_unreported": ("Calls whose cached tokens nobody reported.", ("tier",)),
        "shadow_dropped": (
            "Requests that were drawn for shadow calls and left out.",
            ("reason",),
        ),
        "evicted_before_next_turn": (
            "Turns whose prefix had not changed and was not in the cache any more.",
            ("tier",),
        ),
    }
)
HISTOGRAMS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        "ttft_ms": ("Milliseconds to the first piece of an answer, waiting included.", ("tier",)),
        "queue_wait_ms": ("Milliseconds that a call waited before it was sent.", ("tier",)),
        "tool_latency_ms": ("Milliseconds from a tool call to the request with its result.", ()),
        "recompute_prefill_ms": (
            "Milliseconds that computing what was warm before is expected to have taken.",
            ("tier",),
        ),
    }
)
"""What each is and its labels, by the name without the prefix."""


class Found:
    """A family whose series are found again at once.

    The library looks each up under a lock whenever it is counted, a dozen times a request.

    Args:
        family: one with labels.
    """

    def __init__(self, family: Any) -> None:
        self._family = family
        self._series: dict[tuple[str, ...], Any] = {}

    def labels(self, *values: str) -> Any:
        """The series with these labels."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = self._family.labels(*values)
        return series


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """The metrics of one service, each under its name without the prefix."""

    requests: Found
    requests_in_flight: Gauge
    attempts: Found
    escalations: Found
    cost_usd: Found
    cost_unknown: Found
    cold_premium_usd: Found
    prefill_tokens: Found
    decode_tokens: Found
    prefix_cache_hit_tokens: Found
    prefix_cache_miss_tokens: Found
    prefix_cache_unreported: Found
    shadow_dropped: Found
    ttft_ms: Found
    queue_wait_ms: Found
    tool_latency_ms: Histogram
    evicted_before_next_turn: Found
    recompute_prefill_ms: Found

    @classmethod
    def declared(cls, registry: CollectorRegistry) -> "Families":
        """All of them, for one registry."""
        made: dict[str, Any] = {
            name: Counter(f"cascade_{name}", text, labels, registry=registry)
            for name, (text, labels) in COUNTERS.items()
        }
        made |= {
            name: Histogram(f"cascade_{name}", text, labels, registry=registry, buckets=BUCKETS_MS)
            for name, (text, labels) in HISTOGRAMS.items()
        }
        for known in (COUNTERS, HISTOGRAMS):
            made |= {name: Found(made[name]) for name, (_, labels) in known.items() if labels}
        in_flight = "Requests for answers that are not over."
        made["requests_in_flight"] = Gauge(
            "cascade_requests_in_flight", in_flight, registry=registry
        )
        return cls(**made)
