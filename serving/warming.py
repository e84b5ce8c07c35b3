"""Puts around a tier's backend what keeps its cache warm and whole, where its keys ask for it.

A part of the composition root. Outermost is the wait for the first of many: who waits is not being
asked yet. Then the hints, once a call, however often it is tried.
"""

from collections.abc import Iterator
from functools import partial

from cascade.backends.wrappers.cache_hints import CacheKeys, Hint, HintedBackend
from cascade.backends.wrappers.single_flight import (
    FanOut,
    RecentPrefixes,
    SharedPrefix,
    SingleFlightBackend,
)
from cascade.caches import CacheCard
from cascade.protocols import Backend
from cascade.tiers.breakpoints import Breakpoints, marked
from serving import tier_config as cfg
from serving.factories import at

LEAST_MINIMUM_TOKENS = 512
"""The smallest of any model's; a mark on a prefix that turns out too short costs nothing."""

USUAL_TTL_SECONDS = 300.0
HOUR_SECONDS = 3600.0


def keeping_warm(
    backend: Backend,
    entry: cfg.Tier,
    cache: CacheCard | None,
    shared_prefix: SharedPrefix | None = None,
) -> Backend:
    """The backend with what the tier's keys ask for; the same one when they ask for nothing.

    Args:
        backend: with its guards.
        entry: the tier's keys.
        cache: how the tier's cache works, if that is known.
        shared_prefix: says what requests share and how much of it is cold; without one the tools
            and system prompts that this tier was asked for are remembered.

    Raises:
        ConfigError: it cannot work; `param` is the key at fault.
    """
    hints = list(_hints(entry, cache))
    if hints:
        backend = HintedBackend(backend, *hints)
    if entry.fan_out is None:
        return backend
    fan_out = FanOut(**entry.fan_out.model_dump())
    if shared_prefix is not None:
        return SingleFlightBackend(backend, fan_out, shared_prefix=shared_prefix)
    recent = RecentPrefixes(ttl_seconds=_lifetime(entry, cache))
    return SingleFlightBackend(backend, fan_out, shared_prefix=recent, began=recent.began)


def _lifetime(entry: cfg.Tier, cache: CacheCard | None) -> float:
    """How long tools and system prompt are kept after their last use."""
    if entry.breakpoints is not None and entry.breakpoints.ttl == "1h":
        return HOUR_SECONDS
    return (cache and cache.ttl_seconds) or USUAL_TTL_SECONDS


def _hints(entry: cfg.Tier, cache: CacheCard | None) -> Iterator[Hint]:
    if entry.breakpoints is not None:
        least = cache.minimum_tokens if cache else 0
        with at("breakpoints"):
            rule = Breakpoints(
                minimum_tokens=least or LEAST_MINIMUM_TOKENS, **entry.breakpoints.model_dump()
            )
        yield partial(marked, rule=rule)
    if entry.cache_key is not None:
        yield CacheKeys(per_minute=entry.cache_key.per_minute)
