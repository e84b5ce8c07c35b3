"""Means of what was seen, newer values counting more: for what nobody states and traffic tells."""

from collections import OrderedDict
from collections.abc import Hashable

KEEP = 0.95
"""What a value is worth once there is a newer one: about twenty are remembered."""

MAX_KEYS = 10_000


class Averages:
    """Discounted means by key; what was heard of longest ago is forgotten first.

    Args:
        keep: what a value is worth once there is a newer one, in (0, 1).
        max_keys: how many keys are remembered.
    """

    def __init__(self, *, keep: float = KEEP, max_keys: int = MAX_KEYS) -> None:
        self._keep = keep
        self._max_keys = max_keys
        self._sums: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def observe(self, key: Hashable, value: float) -> None:
        """Another value."""
        total, weight = self._sums.pop(key, (0.0, 0.0))
        self._sums[key] = (self._keep * total + value, self._keep * weight + 1.0)
        if len(self._sums) > self._max_keys:
            self._sums.popitem(last=False)

    def of(self, key: Hashable, otherwise: float) -> float:
        """The mean; `otherwise` counts as one value that was there first."""
        total, weight = self._sums.get(key, (0.0, 0.0))
        return (total + otherwise) / (weight + 1.0)
