"""How many prompts differ before the conversation begins, and how well tenants keep to one cache.

Both are kept in bounded memory and have no label for a tenant, whose name a client may make up.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from cascade.prefix import Fingerprint

LATELY_SECONDS: Final = 3600.0
MAX_PREFIXES: Final = 10_000
MAX_TENANTS: Final = 1_000
KEEP: Final = 0.98
"""What a call's tokens are worth once the tenant has made another: about fifty calls count."""

_STABLE: Final = frozenset({"tools", "system", "pack"})

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class DistinctPrefixes:
    """Counts the stable parts of prompts that were seen lately: exactly, in a bounded set.

    Args:
        max_prefixes: how many are remembered, the latest used; no more are ever counted.
        clock: seconds that only go up.
    """

    def __init__(
        self, *, max_prefixes: int = MAX_PREFIXES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_prefixes = max_prefixes
        self._clock = clock
        self._seen: OrderedDict[int, float] = OrderedDict()

    def note(self, fingerprint: Fingerprint | None) -> None:
        """A prompt was sent; one without tools, system prompt and documents has no stable part."""
        stable = (
            tuple(s.raw for s in fingerprint.segments if s.name in _STABLE) if fingerprint else ()
        )
        if stable:
            _put(self._seen, hash(stable), self._clock(), self._max_prefixes)

    def count(self) -> int:
        """How many different ones there were within the last hour."""
        seen, oldest = self._seen, self._clock() - LATELY_SECONDS
        while seen and next(iter(seen.values())) < oldest:
            seen.popitem(last=False)
        return len(seen)


class Affinity:
    """Which share of a tenant's prompt tokens went to the server that got most of them.

    Args:
        max_tenants: how many are remembered, those heard of last.
    """

    def __init__(self, *, max_tenants: int = MAX_TENANTS) -> None:
        self._max_tenants = max_tenants
        self._tenants: OrderedDict[str, dict[tuple[str, str | None], float]] = OrderedDict()

    def note(self, tenant: str, tier: str, replica: str | None, tokens: int) -> None:
        """A call's prompt of so many tokens went to a replica of a tier."""
        places = self._tenants.get(tenant, {})
        places = {place: KEEP * held for place, held in places.items()}
        places[tier, replica] = places.get((tier, replica), 0.0) + tokens
        _put(self._tenants, tenant, places, self._max_tenants)

    def share(self) -> float | None:
        """The mean over the tenants, by their tokens, in (0, 1]; None while there are none."""
        held = [places.values() for places in self._tenants.values()]
        total = sum(map(sum, held))
        return sum(map(max, held)) / total if total else None


def _put(known: "OrderedDict[_Key, _Value]", key: _Key, value: _Value, most: int) -> None:
    """Keep a value as the latest, and forget the oldest beyond the bound."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)
