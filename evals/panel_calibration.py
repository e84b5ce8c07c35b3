"""Which map brings a fitted head's log-odds to probabilities, if any does.

A head that was fitted to log loss is a probability already, and on a few hundred rows a map can
easily make it worse. So a map is only used where it is better on rows it has not seen, by more than
chance would be: a line near the identity, or steps where there are labels enough to see them.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.model_selection import StratifiedGroupKFold

from evals.isotonic import fit_map
from evals.panel_choice import FOLDS, clearly, losses
from evals.panel_models import Labels, Matrix, short
from judges.fitted import Isotonic, Platt, calibrated, sigmoid

ISOTONIC_FROM: Final = 300
"""Labels from which steps may be better than a line."""
BINS: Final = 15
SPREAD: Final = 0.5
"""Standard deviation of the line's offset and of its slope's logarithm that is expected before any
label is seen, which draws both towards the identity."""
FLATTEST: Final = 1e-3
NEAR: Final = 1e-9

Calibration = Platt | Isotonic | None


def calibration(log_odds: Matrix, labels: Labels, groups: NDArray[np.str_]) -> Calibration:
    """The map from log-odds of rows that were held out to probabilities; None for none.

    Args:
        log_odds: one a row.
        labels: of both classes.
        groups: rows of a group are never on both sides of a fold.
    """
    kinds = [line] if len(labels) < ISOTONIC_FROM else [line, steps]
    before = losses(log_odds, labels)
    tried = {kind: _held_out(kind, log_odds, labels, groups) for kind in kinds}
    best = min(kinds, key=lambda kind: float(tried[kind].mean()))
    return best(log_odds, labels) if clearly(before - tried[best], groups) else None


def steps(log_odds: Matrix, labels: Labels) -> Platt | Isotonic:
    """Isotonic regression of the probabilities."""
    fitted = fit_map([sigmoid(float(x)) for x in log_odds], [bool(y) for y in labels], bins=BINS)
    return Isotonic(x=[short(x) for x in fitted.x], y=[short(y) for y in fitted.y])


def line(log_odds: Matrix, labels: Labels) -> Platt | Isotonic:
    """Logistic regression of the log-odds alone, drawn towards leaving them as they are."""

    def loss(at: Any) -> float:
        slope, offset = np.exp(at[0]), at[1]
        drawn = float(at @ at) / (2 * SPREAD**2)
        return float(losses(slope * log_odds + offset, labels).sum()) + drawn

    found = minimize(loss, np.zeros(2), method="Nelder-Mead").x
    return Platt(slope=short(max(FLATTEST, float(np.exp(found[0])))), offset=short(float(found[1])))


def _held_out(kind: Any, log_odds: Matrix, labels: Labels, groups: NDArray[np.str_]) -> Matrix:
    """Log loss of each row under a map that was fitted without its group."""
    found = np.zeros(len(labels))
    for train, test in StratifiedGroupKFold(FOLDS).split(log_odds, labels, groups):
        apply = calibrated(kind(log_odds[train], labels[train]))
        chances = np.array([apply(float(x)) for x in log_odds[test]])
        chances = np.clip(chances, NEAR, 1 - NEAR)
        found[test] = losses(np.log(chances / (1 - chances)), labels[test])
    return found
