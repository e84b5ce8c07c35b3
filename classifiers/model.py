"""A fitted model of difficulty: inputs, head, calibration and the domain it knows, as one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from classifiers.chances import Chances
from classifiers.domain import Domain
from classifiers.heads import Head
from classifiers.inputs import Inputs

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifficultyModel:
    """Says of requests how likely each tier's answer is acceptable.

    Attributes:
        tiers: from the cheapest to the best; the columns of what is foretold.
        prior: of each tier, what is believed of a request that is out of the domain.
        domain: None where every request is taken to be inside.
    """

    tiers: Sequence[str]
    inputs: Inputs
    head: Head
    chances: Chances
    prior: Matrix
    domain: Domain | None = None

    def told(
        self, embeddings: NDArray[np.float32] | None, features: Sequence[Mapping[str, float]]
    ) -> Matrix:
        """What the head says before calibration, of shape (requests, outputs)."""
        return self.head(self.inputs(embeddings, features))

    def __call__(
        self, embeddings: NDArray[np.float32] | None, features: Sequence[Mapping[str, float]]
    ) -> tuple[Matrix, NDArray[np.bool_]]:
        """Probabilities of shape (requests, tiers), and which requests are out of the domain.

        Of the latter the probabilities are the prior.
        """
        rows = self.inputs(embeddings, features)
        means = self.chances(self.head(rows))
        out = np.zeros(len(rows), dtype=bool)
        if self.domain is not None:
            out = self.domain(embeddings, features)
        means[out] = self.prior
        return means, out
