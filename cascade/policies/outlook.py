"""What the calls that may still be made are worth: cascade routing, solved case by case.

In hand is an answer of quality `best` (0 without one). The worth of a state is the best of

    stopping          lambda best
    asking t unseen   lambda q(t) - c(t): its answer goes out as it comes and is what is given
    asking t judged   the mean, over what its judge may say, of the worth of what is then known,
                      less c(t) and the judge's cost

where a verdict on t also moves what is believed of the tiers not asked yet. The published rule
values every set of tiers as if all of it were always run; here a judge that is satisfied ends it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cascade.policies.chances import Judgement
from cascade.types import Beliefs

_AHEAD: Final = 2
"""Judged calls that are looked ahead; later ones are valued as if they were not judged."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tier that may be asked.

    Attributes:
        mean: probability that its answer is acceptable.
        price: of asking it, in dollars.
        judging: what judging its answer costs, in dollars; None without a judge.
    """

    tier: str
    mean: float
    price: float
    judging: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A call that may be made next, and what it is worth in dollars, later calls included."""

    candidate: Candidate
    judged: bool
    worth: float


class Outlook:
    """The calls that may still be made for one request.

    Args:
        candidates: the tiers that were not asked yet.
        beliefs: whose covariance says what a verdict on one tier tells of the others.
        quality_usd: lambda, the dollars that a unit of quality is worth.
    """

    __slots__ = ("_candidates", "_judgements", "_moves", "_usd")

    def __init__(
        self, candidates: Sequence[Candidate], beliefs: Beliefs, quality_usd: float
    ) -> None:
        self._usd = quality_usd
        self._candidates = candidates
        self._judgements: list[Judgement | None] = []
        self._moves: list[list[float]] = []
        known = beliefs.covariance or {}
        for one in candidates:
            revealed, moves = _shape(one, candidates, known)
            self._judgements.append(None if one.judging is None else Judgement(revealed))
            self._moves.append(moves)

    def choices(self, best: float) -> list[Choice]:
        """Every call that may be made next, with an answer of quality `best` in hand."""
        everyone = tuple(range(len(self._candidates)))
        means = [one.mean for one in self._candidates]
        found = []
        for i, one in enumerate(self._candidates):
            found.append(Choice(one, judged=False, worth=self._unseen(i, means)))
            if one.judging is not None:
                worth = self._judged(i, best, means, everyone, _AHEAD)
                found.append(Choice(one, judged=True, worth=worth))
        return found

    def _unseen(self, i: int, means: Sequence[float]) -> float:
        return self._usd * means[i] - self._candidates[i].price

    def _judged(
        self, i: int, best: float, means: Sequence[float], left: Sequence[int], ahead: int
    ) -> float:
        judgement, one = self._judgements[i], self._candidates[i]
        if judgement is None or one.judging is None:
            raise AssertionError("it is not judged")
        mean, moves = means[i], self._moves[i]
        rest = [j for j in left if j != i]
        expected = 0.0
        for weight, score in judgement.cases(mean):
            shift = score - mean
            if ahead == 1:
                worth = self._usd * (max(score, best))
                for j in rest:  # spelt out, as nearly all the time is spent here
                    moved_to = means[j] + moves[j] * shift
                    unseen = self._usd * min(moved_to, 1.0) - self._candidates[j].price
                    worth = max(worth, unseen)
            else:
                moved = list(means)
                for j in rest:
                    moved[j] = min(1.0, max(0.0, means[j] + moves[j] * shift))
                worth = self._worth(max(best, score), moved, rest, ahead - 1)
            expected += weight * worth
        return expected - one.price - one.judging

    def _worth(self, best: float, means: Sequence[float], left: Sequence[int], ahead: int) -> float:
        worth = self._usd * best
        for i in left:
            worth = max(worth, self._unseen(i, means))
            if self._judgements[i] is not None:
                worth = max(worth, self._judged(i, best, means, left, ahead))
        return worth


def _shape(
    one: Candidate, candidates: Sequence[Candidate], known: Mapping[tuple[str, str], float]
) -> tuple[float, list[float]]:
    """How much judging a tier reveals, and by how much that moves each tier."""
    variance = known.get((one.tier, one.tier))
    uncertain = one.mean * (1.0 - one.mean)
    if variance is None or variance <= 0.0 or uncertain <= 0.0:
        return 0.0, [0.0] * len(candidates)
    moves = [known.get((one.tier, other.tier), 0.0) / variance for other in candidates]
    return min(1.0, variance / uncertain), moves
