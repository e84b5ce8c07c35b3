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
        "prefix_cache_unreported": ("Answers whose cached tokens nobody reported.", ("tier",)),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """The metrics of one service, each under its name without the prefix."""

    requests: Counter
    requests_in_flight: Gauge
    attempts: Counter
    escalations: Counter
    cost_usd: Counter
    cost_unknown: Counter
    cold_premium_usd: Counter
    prefill_tokens: Counter
    decode_tokens: Counter
    prefix_cache_hit_tokens: Counter
    prefix_cache_miss_tokens: Counter
    prefix_cache_unreported: Counter
    shadow_dropped: Counter
    ttft_ms: Histogram
    queue_wait_ms: Histogram
    tool_latency_ms: Histogram
    evicted_before_next_turn: Counter
    recompute_prefill_ms: Histogram

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
        in_flight = "Requests for answers that are not over."
        made["requests_in_flight"] = Gauge(
            "cascade_requests_in_flight", in_flight, registry=registry
        )
        return cls(**made)
