"""Whether a simulated answer is acceptable, and what a classifier and a judge know of it.

A turn has a difficulty d that nobody sees. Tier t is right with probability

    1 / (1 + exp(-k (a_t - d)))

independently of the other tiers given d. The classifier sees d with noise. A judge sees a signal of
one answer, normal with variance delta^2 around +delta^2/2 for a right and -delta^2/2 for a wrong
one, so that it is the log of a likelihood ratio and its AUC is Phi(delta / sqrt(2)).

Everything that is believed follows by Bayes' rule on a grid of difficulties: classifier and judges
are as calibrated as fitted ones can be, and no policy is favoured by an estimate that is off.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from cascade.types import Beliefs

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_SIGNAL_NODES, _SIGNAL_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_SIGNAL_WEIGHTS = _SIGNAL_WEIGHTS / _SIGNAL_WEIGHTS.sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """What tiers, classifier and judge can do.

    Attributes:
        abilities: by tier, on the scale of difficulties.
        steepness: k.
        between: standard deviation of difficulty from conversation to conversation.
        within: the same from turn to turn of one conversation.
        noise: standard deviation of what the classifier sees.
        auc: of the judge, over answers of one tier and difficulty.
    """

    abilities: Mapping[str, float]
    steepness: float = 1.7
    between: float = 0.8
    within: float = 0.9
    noise: float = 1.0
    auc: float = 0.85

    @property
    def delta(self) -> float:
        """How far apart the judge's signals of right and of wrong answers lie."""
        return math.sqrt(2.0) * NormalDist().inv_cdf(self.auc)

    def right(self, difficulty: Floats | float) -> dict[str, Floats]:
        """P(right) by tier."""
        return {
            tier: 1.0 / (1.0 + np.exp(-self.steepness * (ability - np.asarray(difficulty))))
            for tier, ability in self.abilities.items()
        }


@dataclass(kw_only=True)
class Question:
    """What one turn asks, what its answers are worth, and what can be known of them.

    Attributes:
        seen: the difficulty as the classifier sees it.
        signals: what the judge would see of each tier's answer.
    """

    skill: Skill
    difficulty: float
    seen: float
    signals: Mapping[str, float]
    _after: dict[frozenset[str], dict[str, float]] = field(default_factory=dict)

    @classmethod
    def draw(cls, skill: Skill, of_conversation: float, random: np.random.Generator) -> "Question":
        """A turn of a conversation of that difficulty."""
        difficulty = of_conversation + skill.within * random.standard_normal()
        seen = difficulty + skill.noise * random.standard_normal()
        signals = {}
        for tier, chance in skill.right(difficulty).items():
            side = 0.5 if random.random() < chance else -0.5
            signals[tier] = skill.delta**2 * side + skill.delta * random.standard_normal()
        return cls(skill=skill, difficulty=difficulty, seen=seen, signals=signals)

    @cached_property
    def quality(self) -> Mapping[str, float]:
        """P(right) of each tier's answer, for who knows the difficulty and the signals."""
        found = {}
        for tier, each in self.skill.right(self.difficulty).items():
            chance = float(each)
            odds = chance * math.exp(self.signals[tier])
            found[tier] = odds / (odds + 1.0 - chance)
        return found

    @cached_property
    def beliefs(self) -> Beliefs:
        """Before any call."""
        means = self.after(frozenset())
        covariance = {}
        for tier, mean in means.items():
            for other, moved in self._moved(tier, mean).items():
                covariance[tier, other] = moved
        return Beliefs(mean=means, covariance=covariance)

    def after(self, judged: frozenset[str]) -> dict[str, float]:
        """P(right) by tier once the answers of some were judged."""
        if judged not in self._after:
            chances, weights = self._grid
            told = {t: chances[t] * math.exp(self.signals[t]) for t in judged}
            for t in judged:
                weights = weights * (told[t] + 1.0 - chances[t])
            weights = weights / weights.sum()
            self._after[judged] = {
                t: float(weights @ (told[t] / (told[t] + 1.0 - chance) if t in judged else chance))
                for t, chance in chances.items()
            }
        return self._after[judged]

    @cached_property
    def _grid(self) -> tuple[dict[str, Floats], Floats]:
        """P(right) by tier at difficulties that are likely, given what the classifier sees."""
        prior = self.skill.between**2 + self.skill.within**2
        share = prior / (prior + self.skill.noise**2)
        spread = math.sqrt(prior * (1.0 - share))
        return self.skill.right(share * self.seen + spread * _NODES), _WEIGHTS

    def _moved(self, tier: str, mean: float) -> dict[str, float]:
        """Covariance of the tier's score, once it is judged, with what is then believed of each."""
        chances, weights = self._grid
        delta, moved = self.skill.delta, dict.fromkeys(chances, 0.0)
        before = self.after(frozenset())
        for side, share in ((0.5, mean), (-0.5, 1.0 - mean)):
            for node, weight in zip(_SIGNAL_NODES, _SIGNAL_WEIGHTS, strict=True):
                ratio = math.exp(delta**2 * side + delta * node)
                told = chances[tier] * ratio
                seen = weights * (told + 1.0 - chances[tier])
                seen = seen / seen.sum()
                score = float(seen @ (told / (told + 1.0 - chances[tier])))
                for other, chance in chances.items():
                    after = score if other == tier else float(seen @ chance)
                    moved[other] += share * weight * (score - mean) * (after - before[other])
        return moved


def skills(abilities: Sequence[float], names: Sequence[str], auc: float) -> Skill:
    """The skill of tiers in order."""
    return Skill(abilities=dict(zip(names, abilities, strict=True)), auc=auc)
