"""What a routing order is worth, as plain numbers; pure functions over arrays.

PGR is the share of the gap between the weak and the strong model that is won back, APGR its mean
over the share of calls sent to the strong one, CPT the smallest share that reaches a PGR (I. Ong et
al., RouteLLM, 2024). The curve has a knot at every request; equal values share theirs, so the order
of a file decides nothing.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from evals.training.measure import apgr, calibration_error
from evals.training.rows import Matrix

COLUMNS: Final = (
    "apgr",
    "cpt50",
    "cpt80",
    "auc_weak_wrong",
    "auc_gain",
    "brier",
    "ece",
)
_RIGHT = 0.5


def of_beliefs(means: Matrix, labels: Matrix) -> dict[str, float]:
    """All columns for two tiers' probabilities, the difference of which is the order.

    Brier score and calibration error (15 bins of equal count) are the mean of both tiers'.
    """
    weak, strong = labels[:, 0], labels[:, -1]
    wrong = weak < _RIGHT
    order = means[:, -1] - means[:, 0]
    return {
        **of_order(order, labels),
        "auc_weak_wrong": area(-means[:, 0], wrong),
        "auc_gain": area(order, wrong & (strong >= _RIGHT)),
        "brier": float(((means - labels) ** 2).mean()),
        "ece": float(
            np.mean([calibration_error(m, y) for m, y in zip(means.T, labels.T, strict=True)])
        ),
    }


def of_order(order: Matrix, labels: Matrix) -> dict[str, float]:
    """The columns that an order alone has."""
    weak, strong = labels[:, 0], labels[:, -1]
    return {
        "apgr": apgr(order, weak, strong),
        "cpt50": calls_for(order, weak, strong, 0.5),
        "cpt80": calls_for(order, weak, strong, 0.8),
    }


def calls_for(order: Matrix, weak: Matrix, strong: Matrix, won: float) -> float:
    """Smallest share of strong calls with which that share of the gap is won; NaN without a gap."""
    gain = strong - weak
    total = float(gain.sum())
    if total <= 0.0:
        return float("nan")
    _, tied, count = np.unique(-order, return_inverse=True, return_counts=True)
    shares = np.concatenate([[0.0], np.cumsum(count) / len(gain)])
    levels = np.concatenate([[0.0], np.cumsum(np.bincount(tied, weights=gain))]) / total
    at = int(np.argmax(levels >= won - 1e-12))
    if at == 0:
        return 0.0
    part = (won - levels[at - 1]) / (levels[at] - levels[at - 1])
    return float(shares[at - 1] + part * (shares[at] - shares[at - 1]))


def area(value: Matrix, positive: NDArray[np.bool_]) -> float:
    """Chance that a positive row has the higher value; a half where there is only one kind."""
    if positive.all() or not positive.any():
        return 0.5
    return float(roc_auc_score(positive, value))


def closed(means: Matrix, labels: Matrix, costs: Matrix, price: float) -> Mapping[str, float]:
    """The best q - price * c of each row against the best single model and the oracle.

    Args:
        means: what is believed of each model, of shape (rows, models).
        labels: its scores.
        costs: of a call of each, of shape (models,).
        price: quality that a unit of cost must bring.

    Returns:
        Mean score and cost of what was chosen, and the share of the gap in score less price that is
        closed between the best single model and an oracle, both at the same price.
    """
    rows = np.arange(len(labels))
    chosen = (means - price * costs).argmax(axis=1)
    worth = labels - price * costs
    single, best = float(worth.mean(axis=0).max()), float(worth.max(axis=1).mean())
    got = float(worth[rows, chosen].mean())
    return {
        "score": float(labels[rows, chosen].mean()),
        "cost": float(costs[chosen].mean()),
        "closed": (got - single) / (best - single) if best > single else float("nan"),
    }
