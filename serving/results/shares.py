"""Whether the arms got the share of units that they were to get.

When they did not, something loses or moves units, and what was lost is seldom like the rest: no
other number of the experiment can be trusted then. The test may be asked at any time and as often
as one likes: against the configured shares it holds the mixture of all other shares, each as likely
as the next (Lindon and Malek, "Anytime-valid inference for multinomial count data", NeurIPS 2022).
The chance that one over its Bayes factor ever falls below alpha, though the shares are right, is at
most alpha.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

ALPHA = 0.001
"""A broken assignment shows in this number by many powers of ten, so a small one costs little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What was configured and what came.

    Attributes:
        expected: by arm, its share of the units, adding up to 1.
        units: by arm, how many came.
        p: always-valid: how likely such counts are at any time, if the shares are right.
    """

    expected: Mapping[str, float]
    units: Mapping[str, int]
    p: float

    @property
    def broken(self) -> bool:
        """Whether something loses or moves units."""
        return self.p < ALPHA


def shares(weights: Mapping[str, float], units: Mapping[str, int]) -> Shares:
    """Compare counts of units with the weights of their arms.

    Args:
        weights: by arm, at least 0 and not all of them 0.
        units: by arm; one that is not among the weights had none.
    """
    total = sum(weights.values())
    expected = {name: weight / total for name, weight in weights.items()}
    counts = {name: units.get(name, 0) for name in {**expected, **units}}
    evidence = _log_bayes_factor(expected, counts)
    return Shares(expected=expected, units=counts, p=min(1.0, math.exp(min(0.0, -evidence))))


def _log_bayes_factor(expected: Mapping[str, float], counts: Mapping[str, int]) -> float:
    """Log of the probability of the counts' order under any shares, over that under these."""
    if any(count and not expected.get(name) for name, count in counts.items()):
        return math.inf
    able = [name for name, share in expected.items() if share > 0]
    if len(able) == 1:
        return 0.0
    number = sum(counts[name] for name in able)
    mixed = math.lgamma(len(able)) - math.lgamma(len(able) + number)
    mixed += sum(math.lgamma(1 + counts[name]) for name in able)
    told = sum(counts[name] * math.log(expected[name]) for name in able)
    return mixed - told
