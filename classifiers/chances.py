"""From what a head foretells to probabilities that can be believed: calibration, and the target.

Calibration is fitted on rows that the head was not fitted on (`evals.training`) and is monotone, so
it never changes which of two requests is thought the harder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from classifiers.heads import sigmoid

Matrix = NDArray[np.float64]
Target = Literal["acceptable", "difference", "uplift"]

ROOM = 1e-3
"""Log-odds are taken of probabilities that stay this far from 0 and 1."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Platt(_Part):
    """A straight line through log-odds: for few labels. J. Platt, Probabilistic outputs (1999)."""

    kind: Literal["platt"] = "platt"
    slope: Annotated[float, Field(ge=0)]
    offset: float

    def __call__(self, values: Matrix) -> Matrix:
        """Probabilities of probabilities."""
        return sigmoid(self.slope * log_odds(values) + self.offset)


class Isotonic(_Part):
    """A monotone map, linear between its knots and flat outside."""

    kind: Literal["isotonic"] = "isotonic"
    x: list[float]
    y: list[float]

    def __call__(self, values: Matrix) -> Matrix:
        """Probabilities of values."""
        return np.interp(values, self.x, self.y)


class Line(_Part):
    """A straight line, for a difference of probabilities: what was overstated is shrunk."""

    kind: Literal["line"] = "line"
    slope: Annotated[float, Field(ge=0)]
    offset: float

    def __call__(self, values: Matrix) -> Matrix:
        """Differences of differences, from -1 to 1."""
        return np.clip(self.slope * values + self.offset, -1.0, 1.0)


Calibration = Annotated[Platt | Isotonic | Line, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True)
class Chances:
    """P(acceptable) of each tier, from a head's outputs.

    Attributes:
        target: what the outputs are. "acceptable" and "difference": one a tier, its probability.
            "uplift": the first is the cheapest tier's probability, the others say how much more
            each higher tier has.
        calibrations: one an output.
    """

    target: Target
    calibrations: Sequence[Platt | Isotonic | Line]

    def __call__(self, told: Matrix) -> Matrix:
        """Of shape (requests, tiers); an uplift's sum with the cheapest tier is cut to [0, 1]."""
        pairs = zip(self.calibrations, told.T, strict=True)
        columns = [calibrate(values) for calibrate, values in pairs]
        if self.target == "uplift":
            columns = [columns[0], *(columns[0] + more for more in columns[1:])]
        return np.clip(np.column_stack(columns), 0.0, 1.0)


def log_odds(values: Matrix) -> Matrix:
    """Of probabilities, which are first kept away from 0 and 1."""
    inside = np.clip(values, ROOM, 1.0 - ROOM)
    return np.asarray(np.log(inside / (1.0 - inside)))
