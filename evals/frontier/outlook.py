"""What a call may be worth, for many rows at once: `cascade.policies.outlook` on arrays.

Dollars are weighed the other way round: with mu = 1 / lambda, the quality that a dollar must bring,
the worth of anything that may be done is a line quality - mu * cost of what is then expected. The
best of several things is convex in mu, and so are means of that, which is what makes exact sweeps
possible.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from cascade.policies.chances import Judgement
from evals.frontier.sweep import Floats, Ints

_AHEAD: Final = 2
_CERTAIN: Final = 1e-6
"""As in `cascade.policies`, which a test holds this to."""

NONE: Final = -1
"""No choice is left."""


class Worth(NamedTuple):
    """Lines, one a row: quality - mu * cost."""

    quality: Floats
    cost: Floats

    def at(self, mu: Floats) -> Floats:
        """Their values."""
        return self.quality - mu * self.cost

    def or_else(self, other: "Worth", mu: Floats) -> "Worth":
        """The better of two at each row's mu."""
        more = other.at(mu) > self.at(mu)
        return Worth(
            np.where(more, other.quality, self.quality), np.where(more, other.cost, self.cost)
        )


class Choices(NamedTuple):
    """The best call of each row: 2 * tier, and one more where it is judged; NONE without any."""

    call: Ints
    worth: Worth


_State = tuple[Floats, Sequence[int], int]
"""Quality of the best answer in hand, tiers that are left, judged calls that are looked ahead."""


class Outlooks:
    """What may be done about some rows, beliefs being those of `cascade.posterior.Unfitted`.

    Args:
        means: P(acceptable) before any call, of shape (tiers, rows).
        prices: expected dollars of a call, of the same shape.
        judging: expected dollars of judging an answer, of shape (tiers,); NaN without a judge.
        kappa: how much of an answer's variance a verdict is expected to explain.
        hold: quality that a judge must add before an answer is held for it.
    """

    def __init__(
        self, *, means: Floats, prices: Floats, judging: Floats, kappa: float, hold: float
    ) -> None:
        self._means, self._prices, self._judging, self._hold = means, prices, judging, hold
        judgement = Judgement(kappa)
        self._cases = [
            None if np.isnan(dollars) else _cases(mean, judgement)
            for mean, dollars in zip(means, judging, strict=True)
        ]

    def best(self, rows: Ints, mu: Floats, in_hand: Floats, left: Sequence[int]) -> Choices:
        """The call that is worth most, a judged one less what holding an answer for it must add.

        Args:
            rows: which they are.
            mu: the quality that a dollar must bring, of each.
            in_hand: quality of the best answer so far; 0 without one.
            left: tiers that were not asked yet.
        """
        call = np.full(len(rows), NONE)
        best = Worth(np.full(len(rows), -np.inf), np.zeros(len(rows)))
        for tier in left:
            unseen = self._unseen(tier, rows)
            # Taken unseen it is the answer that is given: never a lesser one than is in hand.
            lesser = unseen.quality < in_hand
            unseen = Worth(np.where(lesser, -np.inf, unseen.quality), unseen.cost)
            options = [(2 * tier, unseen)]
            if self._cases[tier] is not None:
                judged = self._judged(tier, rows, mu, (in_hand, left, _AHEAD))
                options.append((2 * tier + 1, Worth(judged.quality - self._hold, judged.cost)))
            for number, worth in options:
                call = np.where(worth.at(mu) > best.at(mu), number, call)
                best = best.or_else(worth, mu)
        return Choices(call, Worth(np.where(call == NONE, 0.0, best.quality), best.cost))

    def _unseen(self, tier: int, rows: Ints) -> Worth:
        return Worth(self._means[tier][rows], self._prices[tier][rows])

    def _judged(self, tier: int, rows: Ints, mu: Floats, state: _State) -> Worth:
        """The mean, over what the judge may say, of the best that can be done then."""
        in_hand, left, ahead = state
        cases = self._cases[tier]
        if cases is None:
            raise AssertionError("it is not judged")
        rest = [other for other in left if other != tier]
        quality, cost = np.zeros(len(rows)), np.zeros(len(rows))
        unseen = self._best_unseen(rest, rows, mu)
        for weights, scores in cases:
            weight = weights[rows]
            said = np.maximum(in_hand, scores[rows])
            then = Worth(said, np.zeros(len(rows)))
            if unseen is not None:
                then = then.or_else(unseen, mu)
            if ahead > 1:
                for other in rest:
                    if self._cases[other] is not None:
                        later = self._judged(other, rows, mu, (said, rest, ahead - 1))
                        then = then.or_else(later, mu)
            quality += weight * then.quality
            cost += weight * then.cost
        return Worth(quality, cost + self._prices[tier][rows] + self._judging[tier])

    def _best_unseen(self, tiers: Sequence[int], rows: Ints, mu: Floats) -> Worth | None:
        found = None
        for tier in tiers:
            one = self._unseen(tier, rows)
            found = one if found is None else found.or_else(one, mu)
        return found


def _cases(mean: Floats, judgement: Judgement) -> list[tuple[Floats, Floats]]:
    """`Judgement.cases` of many means: (weights, scores) of each case."""
    wrong = 1.0 - mean
    open_ = (mean > _CERTAIN) & (wrong > _CERTAIN)
    found: list[tuple[Floats, Floats]] = []
    center = np.zeros_like(mean)
    for share, nodes in zip((mean, wrong), judgement.odds, strict=True):
        for weight, factor in nodes:
            odds = mean * factor
            score = odds / (wrong + odds)
            center += share * weight * score
            found.append((share * weight, score))
    if not found:
        return [(np.ones_like(mean), mean)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        down, up = mean / center, wrong / (1.0 - center)
        over = center > mean
        moved = [np.where(over, score * down, 1.0 - (1.0 - score) * up) for _, score in found]
    return [
        (weights, np.where(open_, score, mean))
        for (weights, _), score in zip(found, moved, strict=True)
    ]
