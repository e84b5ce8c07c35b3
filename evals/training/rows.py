"""Outcomes as arrays: what a model of difficulty is fitted and measured on."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade.errors import CascadeError

Matrix = NDArray[np.float64]
Index = NDArray[Any]

MIN_LABELS = 40
MIN_OF_EACH = 10.0


class TrainingError(CascadeError):
    """A model cannot be trained on these rows; says why, and where they come from a file, where."""

    code = "not_trained"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One row a prompt.

    Attributes:
        tiers: from the cheapest to the best.
        features: cheap features of each, by name.
        labels: how acceptable each tier's answer was, in [0, 1], of shape (rows, tiers); NaN where
            it is not known.
        groups: rows that are alike share one, and are never on both sides of a fold.
        embeddings: of shape (rows, dimensions); None where there are none.
        kinds: what metrics are told apart by; empty texts where there is nothing to tell.
        splits: "test" for rows that are only measured on, "calibrate" for those left alone.
    """

    tiers: Sequence[str]
    features: Sequence[Mapping[str, float]]
    labels: Matrix
    groups: NDArray[np.str_]
    embeddings: NDArray[np.float32] | None = None
    kinds: NDArray[np.str_] | None = None
    splits: NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Matrix:
        """Of the texts, in any unit that grows with their characters."""
        return np.array([found.get("log_characters", 0.0) for found in self.features])

    def take(self, index: Index) -> "Rows":
        """Some of the rows."""
        at = np.arange(len(self))[index]
        return replace(
            self,
            features=[self.features[i] for i in at],
            labels=self.labels[at],
            groups=self.groups[at],
            embeddings=None if self.embeddings is None else self.embeddings[at],
            kinds=None if self.kinds is None else self.kinds[at],
            splits=None if self.splits is None else self.splits[at],
        )

    def check(self) -> None:
        """Refuse what nothing can be learned from.

        Raises:
            TrainingError: too few labels of a tier, or too few right or wrong ones.
        """
        for tier, labels in zip(self.tiers, self.labels.T, strict=True):
            known = labels[~np.isnan(labels)]
            right = float(known.sum())
            if len(known) < MIN_LABELS or min(right, len(known) - right) < MIN_OF_EACH:
                raise TrainingError(
                    f"tier {tier}: {len(known)} labels, {right:g} of them right; it takes at least "
                    f"{MIN_LABELS}, with {MIN_OF_EACH:g} right and {MIN_OF_EACH:g} wrong"
                )

    def digest(self) -> str:
        """A hash of what is learned from."""
        hashed = hashlib.blake2b(digest_size=8)
        parts = [list(self.tiers), list(map(dict, self.features)), self.groups.tolist()]
        hashed.update(
            json.dumps(parts, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")
        )
        hashed.update(np.ascontiguousarray(self.labels).tobytes())
        if self.embeddings is not None:
            hashed.update(np.ascontiguousarray(self.embeddings, dtype=np.float16).tobytes())
        return hashed.hexdigest()
