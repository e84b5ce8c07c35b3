"""What a judge may say of an answer that is not there yet: a few cases with their probabilities.

A judge's calibrated score is taken to come from a signal that is normal with one variance for right
and for wrong answers (the binormal model of signal detection). Then the log odds move by L, with
L ~ N(d^2/2, d^2) for right answers and N(-d^2/2, d^2) for wrong ones, d being how far apart the two
lie. Each normal is represented by three Gauss-Hermite nodes.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

Case = tuple[float, float]
"""(probability, score)."""

_NODES: Final = ((1.0 / 6.0, -math.sqrt(3.0)), (2.0 / 3.0, 0.0), (1.0 / 6.0, math.sqrt(3.0)))
"""(weight, place) of a standard normal, exact for polynomials up to the fifth degree."""

_FARTHEST: Final = 8.0
_STEPS: Final = 160
_LEAST: Final = 1e-4
_CERTAIN: Final = 1e-6


class Judgement:
    """A judge that is yet to speak.

    Args:
        revealed: variance of its score as a share of mean (1 - mean), where mean is the probability
            that the answer is acceptable: 0 for a judge that says nothing, 1 for one that knows. It
            is met where mean is one half; the surer an answer is, the less of what little is open
            does the same judge reveal.
    """

    __slots__ = ("_right", "_wrong")

    def __init__(self, revealed: float) -> None:
        distance = _distance(revealed) if revealed > _LEAST else 0.0
        self._right = _factors(distance, distance**2 / 2.0) if distance else ()
        self._wrong = _factors(distance, -(distance**2) / 2.0) if distance else ()

    @property
    def odds(self) -> tuple[Sequence[Case], Sequence[Case]]:
        """Of right and of wrong answers: (weight, what their odds are multiplied by)."""
        return self._right, self._wrong

    def cases(self, mean: float) -> Sequence[Case]:
        """What the score of an answer may be; the mean over the cases is the mean given."""
        if not self._right or not _CERTAIN < mean < 1.0 - _CERTAIN:
            return ((1.0, mean),)
        wrong, found, center = 1.0 - mean, [], 0.0
        for share, nodes in ((mean, self._right), (wrong, self._wrong)):
            for weight, factor in nodes:
                odds = mean * factor
                score = odds / (wrong + odds)
                center += share * weight * score
                found.append((share * weight, score))
        if center > mean:
            return [(weight, score * mean / center) for weight, score in found]
        rest = wrong / (1.0 - center)
        return [(weight, 1.0 - (1.0 - score) * rest) for weight, score in found]


def _factors(distance: float, shift: float) -> tuple[Case, ...]:
    """(weight, what the odds are multiplied by) of each node."""
    return tuple((weight, math.exp(shift + distance * place)) for weight, place in _NODES)


def _revealed(distance: float) -> float:
    """The share that a judge reveals of an answer that is as likely right as not."""
    total = 0.0
    for shift in (distance**2 / 2.0, -(distance**2) / 2.0):
        for weight, factor in _factors(distance, shift):
            total += weight / 2.0 * (factor / (1.0 + factor) - 0.5) ** 2
    return 4.0 * total


_REVEALED: Final = tuple(_revealed(_FARTHEST * i / _STEPS) for i in range(_STEPS + 1))


def _distance(revealed: float) -> float:
    """The distance at which a judge reveals so much, from a table."""
    return _FARTHEST * min(bisect_left(_REVEALED, revealed), _STEPS) / _STEPS
