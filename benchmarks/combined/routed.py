"""What each way of routing costs and wins back, over all its settings.

The strong call costs 1, the weak one the price ratio, and judging by text nothing. The area is the
share of the gap between the two models that is won back, averaged over cost from the ratio, where
the weak model answers everything, to 1, the price of always asking the strong one.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.combined.told import JUDGE, STRONG, TIERS, WEAK, Told
from cascade.policies.utility import Option, UtilityPolicy
from cascade.quote import Quote
from cascade.types import Attempt, Beliefs, ChatRequest, Choice, Completion, Kind, Verdict
from evals.training.rows import Matrix

RATIOS: Final = (0.0097, 0.25, 0.5)
"""What a weak call costs of a strong one: the first is the table's source's own."""
WORTHS: Final = np.geomspace(0.02, 200.0, 121)
"""Settings of the utility rule: what a right answer is worth, in strong calls."""
RESAMPLES: Final = 400
CONFIDENCE: Final = 0.95

Routes = NDArray[np.int8]
"""Of each row and setting: ALONE (the weak model answers), STRAIGHT (the strong one) or BOTH."""
ALONE, STRAIGHT, BOTH = 0, 1, 2

_REQUEST: Final = ChatRequest(id="row", messages=())
_ANSWER: Final = Completion(choices=(Choice(text="", finish_reason="stop"),), tier=WEAK)


def pre_call(found: Told, ratio: float) -> Routes:
    """One model or the other, by what the estimator says of their difference."""
    del ratio
    return _by_order(found.estimate[:, 1] - found.estimate[:, 0], STRAIGHT)


def by_doubt(found: Told, ratio: float) -> Routes:
    """The weak model first, and up where its answer is believed least: the ladder."""
    del ratio
    return _by_order(-found.verdict[:, 0], BOTH)


def by_gain(found: Told, ratio: float) -> Routes:
    """The weak model first, and up where the panel says that this gains most."""
    del ratio
    return _by_order(found.verdict[:, 1] - found.verdict[:, 0], BOTH)


def combined(found: Told, ratio: float) -> Routes:
    """The utility rule as it serves, with the estimate, the verdict and the posterior."""
    return np.array([_rule(found, ratio, float(worth)) for worth in WORTHS], dtype=np.int8).T


WAYS: Final[Mapping[str, Callable[[Told, float], Routes]]] = {
    "pre-call only": pre_call,
    "judge only, by doubt": by_doubt,
    "judge only, by gain": by_gain,
    "combined": combined,
}
RIVALS: Final = ("pre-call only", "judge only, by doubt", "judge only, by gain")


def areas(routes: Routes, labels: Matrix, ratio: float, weights: Matrix) -> Matrix:
    """The area for each set of weights.

    Between two settings a mix of both is taken, so a curve is linear there; beyond the dearest
    setting nothing more is bought. NaN where the strong model is no better.

    Args:
        routes: of shape (rows, settings).
        labels: whether the answers are right, of shape (rows, 2).
        ratio: what a weak call costs.
        weights: of the rows, of shape (sets, rows).
    """
    total = weights.sum(axis=1, keepdims=True)
    prices = np.array([ratio, 1.0, 1.0 + ratio])
    cost = weights @ prices[routes] / total
    right = weights @ np.where(routes == ALONE, labels[:, :1], labels[:, 1:]) / total
    weak, strong = (weights @ labels / total).T[:, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        won = np.where(strong > weak, (right - weak) / (strong - weak), np.nan)
    return np.array([_area(c, w, ratio) for c, w in zip(cost, won, strict=True)])


def drawn(groups: NDArray[np.str_], seed: int = 0) -> Matrix:
    """Weights of rows in bootstrap draws of whole groups, of shape (RESAMPLES, rows)."""
    _, member = np.unique(groups, return_inverse=True)
    count = int(member.max()) + 1
    rng = np.random.default_rng(seed)
    times = rng.multinomial(count, np.full(count, 1.0 / count), size=RESAMPLES)
    return times[:, member].astype(np.float64)


def _by_order(value: Matrix, up: int) -> Routes:
    """Every setting of a threshold; equal values go together."""
    steps = np.concatenate([[np.inf], np.unique(value)[::-1]])
    return np.where(value[:, None] >= steps[None, :], up, ALONE).astype(np.int8)


def _rule(found: Told, ratio: float, worth: float) -> list[int]:
    policy = UtilityPolicy(
        name="combined",
        tiers=[Option(tier=WEAK, judge=JUDGE), Option(tier=STRONG)],
        quality_usd=worth,
    )
    quotes = {
        WEAK: Quote(tier=WEAK, dollars=Decimal(repr(ratio))),
        STRONG: Quote(tier=STRONG, dollars=Decimal(1)),
    }
    return [_route(policy, quotes, found, at) for at in range(len(found))]


def _route(policy: UtilityPolicy, quotes: Mapping[str, Quote], found: Told, at: int) -> int:
    moves = {(WEAK, tier): float(found.moves[at, i]) for i, tier in enumerate(TIERS)}
    before = Beliefs(mean=_means(found.before[at]), covariance=moves)
    first = policy.decide(_REQUEST, before, quotes, ()).steps[0]
    if first.tier == STRONG:
        return STRAIGHT
    if first.judge is None:
        return ALONE
    verdict = Verdict(judge=JUDGE, score=float(found.verdict[at, 0]))
    answer = Attempt(index=0, kind=Kind.ANSWER, step=first, completion=_ANSWER, verdict=verdict)
    after = Beliefs(mean=_means(found.after[at]), covariance={})
    return BOTH if policy.decide(_REQUEST, after, quotes, (answer,)).steps else ALONE


def _means(row: Matrix) -> Mapping[str, float]:
    return dict(zip(TIERS, map(float, row), strict=True))


def _area(cost: Matrix, won: Matrix, ratio: float) -> float:
    order = np.lexsort((won, cost))
    cost, won = np.r_[ratio, cost[order]], np.r_[0.0, won[order]]
    inside = cost < 1.0
    ends, levels = np.r_[cost[inside], 1.0], np.r_[won[inside], np.interp(1.0, cost, won)]
    return float(np.trapezoid(levels, ends) / (1.0 - ratio))
