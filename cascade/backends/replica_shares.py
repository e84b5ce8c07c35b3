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

    A server that cannot be asked keeps its share until it can: a request that another takes in its
    place leaves no debt, and after an outage it has nothing to make up for.
    """

    def __init__(self) -> None:
        self._weights: dict[str, float] = {}

    def among(self, names: Sequence[str]) -> "Among":
        """The shares of those servers that can be asked now, of which there is at least one."""
        weights = self._weights
        even = sum(weights.values()) / len(weights) if weights else REQUESTS / len(names)
        for name in names:
            weights.setdefault(name, even)
        return Among(weights, names)


class Among:
    """Shares among some of the servers; see Shares.

    Args:
        weights: of all servers; these change.
        names: those among which a share is fair.
    """

    def __init__(self, weights: dict[str, float], names: Sequence[str]) -> None:
        self._weights = weights
        self._names = names

    def count(self, name: str) -> None:
        """One more request for it."""
        for each in self._names:
            self._weights[each] *= _KEEP
        # Their sum stays what it is beside those that cannot be asked.
        self._weights[name] += len(self._names) / len(self._weights)

    def over_fair(self, name: str) -> float:
        """Its share over an even one: 1 is fair."""
        weights = self._weights
        return weights[name] * len(self._names) / sum(weights[each] for each in self._names)


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
