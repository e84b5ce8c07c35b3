"""Tells requests that are unlike the training data: of them a learned model knows nothing.

In a domain that it has not seen, a learned router is often no better than chance, and as sure of
itself as ever. A request is told by its distance to the nearest training rows, as in Y. Sun et al.,
Out-of-distribution detection with deep nearest neighbors (2022), twice: in meaning, by its
embedding, and in shape, by the cheap features of its text. The one misses what is about the same
things in another form, the other what has the same form and is about other things. The limits are
such that a share of the training rows themselves would pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from classifiers.features import TEXT
from classifiers.heads import distances

Matrix = NDArray[np.float64]

MOST_APART = 6.0
"""Standard deviations from the mean beyond which a feature is no further away."""


@dataclass(frozen=True, slots=True)
class Near:
    """Some of the training rows, and how far from them is too far.

    Attributes:
        seen: of shape (rows, columns).
        nearest: distance is the mean to so many of the nearest.
        limit: distance above which a row is out of the domain.
    """

    seen: NDArray[Any]
    nearest: int
    limit: float

    def distance(self, rows: NDArray[Any]) -> Matrix:
        """Mean distance to the nearest training rows."""
        return nearest_mean(distances(rows, self.seen), self.nearest)


@dataclass(frozen=True, slots=True)
class Domain:
    """What the training rows were like, in meaning and in shape.

    Attributes:
        meaning: by embedding; None where none is looked at.
        shape: by the features of the text, per their scales.
        means: of those features.
        scales: standard deviation of each.
    """

    meaning: Near | None
    shape: Near
    means: Matrix
    scales: Matrix

    def __call__(
        self, embeddings: NDArray[np.float32] | None, features: Sequence[Mapping[str, float]]
    ) -> NDArray[np.bool_]:
        """Which requests are out of the domain."""
        rows = shaped(features, self.means, self.scales)
        out = self.shape.distance(rows) > self.shape.limit
        if self.meaning is not None and embeddings is not None:
            out |= self.meaning.distance(embeddings) > self.meaning.limit
        return np.asarray(out)


def shaped(features: Sequence[Mapping[str, float]], means: Matrix, scales: Matrix) -> Matrix:
    """Features of texts per their scales, each cut to where more says no more."""
    pairs = list(zip(TEXT, means, strict=True))
    found = np.array([[each.get(name, mean) for name, mean in pairs] for each in features])
    return np.clip((found.reshape(-1, len(TEXT)) - means) / scales, -MOST_APART, MOST_APART)


def nearest_mean(apart: Matrix, nearest: int) -> Matrix:
    """Of squared distances, the mean distance to the nearest."""
    count = min(nearest, apart.shape[1])
    return np.asarray(np.sqrt(np.partition(apart, count - 1, axis=1)[:, :count]).mean(axis=1))
