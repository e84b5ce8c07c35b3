"""A text as a vector: what an estimate was made from, and what may be learned from later."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedding:
    """A text as a vector of unit length; vectors of different models do not compare."""

    model: str
    vector: Sequence[float]
