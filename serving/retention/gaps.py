"""A distribution of gaps that takes the same memory however many there are."""

import math
from collections import Counter
from dataclasses import dataclass, field

RATIO = 1.05
"""Of neighbouring bounds: what is said of a gap is right to 5 %."""

_SHORTEST_SECONDS = 1e-3


@dataclass(slots=True)
class Gaps:
    """Counts of gaps by their logarithm."""

    _counts: Counter[int] = field(default_factory=Counter)

    def add(self, seconds: float) -> None:
        """One more; one below a millisecond counts as that."""
        self._counts[math.floor(math.log(max(seconds, _SHORTEST_SECONDS), RATIO))] += 1

    @property
    def number(self) -> int:
        """How many there are."""
        return self._counts.total()

    def quantile(self, share: float) -> float | None:
        """The gap that so large a share does not exceed (nearest rank); None of none."""
        rank, seen = math.ceil(share * self.number), 0
        for place in sorted(self._counts):
            seen += self._counts[place]
            if seen >= rank:
                return float(RATIO ** (place + 0.5))
        return None

    def share_within(self, seconds: float) -> float | None:
        """Share of the gaps that are over by then; None of none."""
        if not self.number:
            return None
        last = math.log(max(seconds, _SHORTEST_SECONDS), RATIO) - 0.5
        return sum(n for place, n in self._counts.items() if place <= last) / self.number
