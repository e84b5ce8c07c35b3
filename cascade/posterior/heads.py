"""The arithmetic of one tier's probability: which numbers are looked at, and how they are weighed.

Fitting takes its numbers from here as well, so that what is applied is what was fitted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cascade.types import Verdict

EDGE = 0.002
"""Probabilities are held this far from 0 and 1 before their log-odds are taken."""


class Source(StrEnum):
    """Where a number comes from."""

    PRIOR = "prior"
    SCORE = "score"
    OTHER = "other"
    FEATURE = "feature"


class Rule(StrEnum):
    """What a tier's probability is.

    PRIOR: what it was before this verdict. VERDICT: what `update` makes of it. LOGISTIC: a logistic
    model of the head's inputs.
    """

    PRIOR = "prior"
    VERDICT = "verdict"
    LOGISTIC = "logistic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One number that a head looks at, and what it weighs.

    Attributes:
        source: log-odds of the prior, of a verdict's score or of what it says of another tier; or
            a feature of the verdict as it is.
        tier: whose prior, or whose answer the verdict is about.
        name: of the feature, or of the other tier.
        weight: log-odds per unit of the number.
        absent: the number that stands in where there is none.
    """

    source: Source
    tier: str
    name: str = ""
    weight: float = 0.0
    absent: float = 0.0

    def number(self, prior: Mapping[str, float], verdicts: Mapping[str, Verdict]) -> float | None:
        """The number of one request; None where there is none.

        Args:
            prior: by tier; after verdicts what was believed before them, before any the estimate.
            verdicts: by the tier that they are about.
        """
        if self.source is Source.PRIOR:
            return log_odds(prior.get(self.tier))
        verdict = verdicts.get(self.tier)
        if verdict is None:
            return None
        if self.source is Source.SCORE:
            return log_odds(verdict.score)
        if self.source is Source.OTHER:
            return log_odds(verdict.others.get(self.name))
        return verdict.features.get(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """P(a tier's answer is acceptable) once certain tiers were judged.

    Attributes:
        rule: see `Rule`.
        intercept: log-odds, of a logistic model.
        inputs: of a logistic model; empty for the same probability whatever the request.
    """

    rule: Rule
    intercept: float = 0.0
    inputs: Sequence[Input] = ()

    def chance(self, prior: Mapping[str, float], verdicts: Mapping[str, Verdict]) -> float:
        """The logistic model's probability."""
        total = self.intercept
        for each in self.inputs:
            number = each.number(prior, verdicts)
            total += each.weight * (each.absent if number is None else number)
        return sigmoid(total)


def log_odds(chance: float | None) -> float | None:
    """Of a probability that is held away from 0 and 1; None of None."""
    if chance is None:
        return None
    inside = min(1.0 - EDGE, max(EDGE, chance))
    return math.log(inside / (1.0 - inside))


def sigmoid(value: float) -> float:
    """The probability that belongs to log-odds, whatever their size."""
    if value >= 0.0:
        return 1.0 / (1.0 + math.exp(-value))
    odds = math.exp(value)
    return odds / (1.0 + odds)
