"""How an embedding and the cheap features of a request become the row that a head looks at.

First comes the embedding as it is, for heads that look at the nearness of texts. After it, centred,
turned onto the main axes of the training rows and divided by one number, so that distances keep
their proportions. Then the features, each per its own standard deviation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classifiers.features import TAG

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was learned of the inputs on the training rows.

    Attributes:
        names: of the features, in order.
        means: of each; what stands in where a request lacks one.
        scales: standard deviation of each.
        centre: mean embedding, of shape (dimensions,); None: no embedding is looked at.
        axes: of shape (dimensions, components).
        spread: what the turned embedding is divided by.
    """

    names: Sequence[str] = ()
    means: Matrix | None = None
    scales: Matrix | None = None
    centre: Matrix | None = None
    axes: Matrix | None = None
    spread: float = 1.0

    @property
    def dimensions(self) -> int:
        """How many of the columns, the first, are the embedding as it is."""
        return 0 if self.centre is None else len(self.centre)

    @property
    def width(self) -> int:
        """Columns of a row."""
        turned = 0 if self.axes is None else int(self.axes.shape[1])
        return self.dimensions + turned + len(self.names)

    def __call__(
        self, embeddings: NDArray[np.float32] | None, features: Sequence[Mapping[str, float]]
    ) -> Matrix:
        """Rows of shape (requests, width).

        Args:
            embeddings: of shape (requests, dimensions); None only where none is looked at.
            features: of each request, by name.
        """
        parts = []
        if self.centre is not None and self.axes is not None:
            if embeddings is None:
                raise ValueError("these inputs need embeddings")
            vectors = np.asarray(embeddings, dtype=np.float64)
            parts += [vectors, (vectors - self.centre) @ self.axes / self.spread]
        if self.means is not None and self.scales is not None:
            parts.append((self._found(features, self.means) - self.means) / self.scales)
        return np.hstack(parts) if parts else np.zeros((len(features), 0))

    def _found(self, features: Sequence[Mapping[str, float]], means: Matrix) -> Matrix:
        absent = [0.0 if n.startswith(TAG) else m for n, m in zip(self.names, means, strict=True)]
        pairs = list(zip(self.names, absent, strict=True))
        rows = [[found.get(name, missing) for name, missing in pairs] for found in features]
        return np.array(rows, dtype=np.float64).reshape(len(features), len(self.names))
