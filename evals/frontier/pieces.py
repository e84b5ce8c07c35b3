"""Finds every kink of convex piecewise linear functions, many rows at once, without a grid.

Where one line is best at both ends of an interval it is best in between. Where two are, either they
cross on the function, which is the kink, or a third line is found there that is better. M. J.
Eisner, D. G. Severance, Mathematical techniques for efficient record segmentation in large shared
databases, JACM 23 (1976). Each line costs two looks at most.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evals.frontier.outlook import Choices, Worth
from evals.frontier.sweep import Floats, Ints

_TIE: Final = 1e-12

Evaluate = Callable[[Ints, Floats], Choices]
"""The best choice at places, each at its own mu, with the line that it is worth."""


class Pieces(NamedTuple):
    """Intervals of mu in which a row has one best line."""

    row: Ints
    low: Floats
    high: Floats
    best: Choices

    def take(self, some: NDArray[np.bool_]) -> "Pieces":
        """Some of them."""
        return Pieces(self.row[some], self.low[some], self.high[some], _take(self.best, some))


def pieces(evaluate: Evaluate, low: Floats, high: Floats) -> Pieces:
    """All pieces of each row's function between its low and its high mu, in no order.

    Args:
        evaluate: asked about places, which pieces name as well.
        low: the lower end of each place's interval.
        high: its upper end.
    """
    place = np.arange(len(low))
    left, right = evaluate(place, low), evaluate(place, high)
    done: list[Pieces] = []
    while len(place):
        middle = _crossing(left, right)
        done += [
            Pieces(place, low, high, left).take(middle >= high),
            Pieces(place, low, high, right).take(middle <= low),
        ]
        split = (low < middle) & (middle < high)
        place, low, high, middle = place[split], low[split], high[split], middle[split]
        left, right = _take(left, split), _take(right, split)
        found = evaluate(place, middle)
        value = left.worth.at(middle)
        tied = found.worth.at(middle) <= value + _TIE * (1.0 + np.abs(middle * left.worth.cost))
        done += [
            Pieces(place, low, middle, left).take(tied),
            Pieces(place, middle, high, right).take(tied),
        ]
        more = ~tied
        place = np.concatenate([place[more], place[more]])
        low, high = (
            np.concatenate([low[more], middle[more]]),
            np.concatenate([middle[more], high[more]]),
        )
        new = _take(found, more)
        left, right = _joined(_take(left, more), new), _joined(new, _take(right, more))
    return joined(done)


def joined(parts: Sequence[Pieces]) -> Pieces:
    """All pieces of some parts."""
    row, low, high, best = zip(*parts, strict=True)
    return Pieces(np.concatenate(row), np.concatenate(low), np.concatenate(high), _joined(*best))


def _crossing(left: Choices, right: Choices) -> Floats:
    """Where two lines cross; infinite where they are one."""
    gain = left.worth.quality - right.worth.quality
    dearer = left.worth.cost - right.worth.cost
    same = (np.abs(gain) <= _TIE) & (np.abs(dearer) <= _TIE * (1.0 + np.abs(left.worth.cost)))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = gain / dearer
    return np.where(same | ~(dearer > 0.0), np.inf, found)


def _take(choices: Choices, some: NDArray[np.bool_]) -> Choices:
    worth = choices.worth
    return Choices(choices.call[some], Worth(worth.quality[some], worth.cost[some]))


def _joined(*some: Choices) -> Choices:
    calls, lines = zip(*some, strict=True)
    quality, cost = zip(*lines, strict=True)
    return Choices(np.concatenate(calls), Worth(np.concatenate(quality), np.concatenate(cost)))
