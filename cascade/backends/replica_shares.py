"""Shares of the latest requests: of each server, and of each prefix, in bounded memory.

Every request counts a little less than the one after it, so that what was popular is forgotten.
"""

import math
from collections.abc import Sequence

REQUESTS = 1_000
"""The memory: a request's weight falls by a factor e in so many."""
KEPT = 4_096
"""Prefixes that are remembered; any above a hundredth of the traffic is among them."""

_KEEP = math.exp(-1 / REQUESTS)


class Shares:
    """Shares of the requests that each of a few servers got; even to begin with.

    Args:
        names: the servers.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self._weights = dict.fromkeys(names, REQUESTS / len(names))

    def count(self, name: str) -> None:
        """One more request for it."""
        for each in self._weights:
            self._weights[each] *= _KEEP
        self._weights[name] += 1.0

    def over_fair(self, name: str) -> float:
        """Its share over an even one: 1 is fair."""
        weights = self._weights
        return weights[name] * len(weights) / sum(weights.values())


class Popularity:
    """Shares of the requests that each of many prefixes has."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, float]] = {}
        self._requests = 0
        self._total = 0.0

    def count(self, prefix: str) -> float:
        """One more request for it; its share of those before, from 0 to 1."""
        self._requests += 1
        before = self._weight(prefix)
        share = before / self._total if self._requests > REQUESTS else before / REQUESTS
        self._total = self._total * _KEEP + 1.0
        self._seen[prefix] = (self._requests, before + 1.0)
        if len(self._seen) > 2 * KEPT:
            self._forget()
        return share

    def __len__(self) -> int:
        return len(self._seen)

    def _weight(self, prefix: str) -> float:
        last, weight = self._seen.get(prefix, (self._requests, 0.0))
        return weight * _KEEP ** (self._requests - last)

    def _forget(self) -> None:
        weights = {prefix: self._weight(prefix) for prefix in self._seen}
        kept = sorted(weights, key=lambda each: weights[each], reverse=True)[:KEPT]
        self._seen = {each: (self._requests, weights[each]) for each in kept}
