"""Replayed requests as columns of numbers: what a week's log takes in memory is bounded by these.

A request takes about 25 numbers. Texts, which are few apart from the sessions' names, are codes.
"""

from array import array
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from evals.logged.estimate import Rows
from evals.logged.requests import Replayed, Value

Vector = NDArray[np.float64]

_VALUES: Final[dict[str, Callable[[Replayed], Value]]] = {
    "cost": lambda row: row.cost,
    "quality_before": lambda row: row.quality_before,
    "quality": lambda row: row.quality,
    "tier": lambda row: row.tier,
}
"""Of each its value, its chance and its stratum are kept."""
_NAMES: Final = (
    "cluster",
    "cost_before",
    "quoted",
    "tier_before",
    "answered_by",
    "missing",
    *(f"{name}.{part}" for name in _VALUES for part in ("value", "chance", "stratum")),
)


class Columns:
    """Replayed requests, in the order in which they were added."""

    def __init__(self) -> None:
        self._numbers = array("d")
        self._codes: dict[str, int] = {}
        self._clusters: dict[str, int] = {}
        self._width = 0

    def __len__(self) -> int:
        return len(self._numbers) // self._width if self._width else 0

    def add(self, row: Replayed) -> None:
        """Take in one more."""
        numbers = [
            self._clusters.setdefault(row.cluster, len(self._clusters)),
            row.cost_before,
            row.quoted,
            *map(self._code, (row.tier_before, row.answered_by, row.missing or "")),
        ]
        for value_of in _VALUES.values():
            value = value_of(row)
            numbers += [value.value, value.chance, self._code(value.stratum)]
        numbers += row.features
        self._width = len(numbers)
        self._numbers.extend(numbers)

    def column(self, name: str) -> Vector:
        """One of the numbers, of shape (requests,)."""
        return self._matrix()[:, _NAMES.index(name)]

    def texts(self, name: str) -> list[str]:
        """One of the texts; empty where there was none."""
        known = list(self._codes)
        return [known[int(code)] for code in self.column(name)]

    def is_text(self, name: str, text: str) -> NDArray[np.bool_]:
        """Where it is that text."""
        return np.asarray(self.column(name) == self._codes.get(text, -1))

    def rows(self, name: str) -> Rows:
        """One of the values, with what an estimate takes."""
        return self._rows(*(self.column(f"{name}.{p}") for p in ("value", "chance", "stratum")))

    def answers_of(self, tier: str) -> Rows:
        """Whether the answer is that tier's, where it is known whose it is."""
        whole = self.rows("tier")
        is_its = self.is_text("answered_by", tier).astype(float)
        values = np.where(np.isnan(whole.values), np.nan, is_its)
        return self._rows(values, whole.chance, whole.strata)

    def known(self, name: str) -> Rows:
        """A number that is known of every request."""
        values = self.column(name)
        return self._rows(values, np.ones(len(self)), np.zeros(len(self)))

    def _rows(self, values: Vector, chance: Vector, strata: Vector) -> Rows:
        return Rows(
            values=values,
            chance=chance,
            strata=strata,
            clusters=self.column("cluster"),
            features=self._matrix()[:, len(_NAMES) :],
        )

    def _matrix(self) -> NDArray[np.float64]:
        return np.frombuffer(self._numbers, dtype=np.float64).reshape(-1, self._width)

    def _code(self, text: str) -> int:
        return self._codes.setdefault(text, len(self._codes))
