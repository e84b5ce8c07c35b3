"""What a model of difficulty is worth on rows it was not fitted on, beside what needs no model.

PGR is the share of the gap between the weakest and the best tier that is won back; APGR its mean
over the share of requests sent to the best, from 0 to 1 (I. Ong et al., RouteLLM, 2024). Sending
requests up at random has 0.5. The curve is taken at every request, ties in equal parts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from evals.metrics import Interval
from evals.training.rows import Matrix, Rows

BINS = 15
RESAMPLES = 400
RIGHT = 0.5
"""Labels from this on are right where only right and wrong can be told apart."""


def measured(
    rows: Rows, means: Matrix, out: NDArray[np.bool_], lookup: Matrix | None = None
) -> dict[str, Any]:
    """Everything that is told of a model, in plain values.

    Args:
        rows: what it was not fitted on.
        means: what it says, of shape (rows, tiers).
        out: rows that are out of its domain.
        lookup: of each row, what a table of the kinds' mean gains says of it.
    """
    found: dict[str, Any] = {
        "n": len(rows),
        "out_of_domain": _short(out.mean()),
        "tiers": {
            tier: _of_tier(means[:, at], rows.labels[:, at]) for at, tier in enumerate(rows.tiers)
        },
    }
    both = np.flatnonzero(~np.isnan(rows.labels[:, [0, -1]]).any(axis=1))
    if len(both) > 1:
        found |= _of_routing(rows.take(both), means[both], None if lookup is None else lookup[both])
    return found


def apgr(value: Matrix, weak: Matrix, strong: Matrix) -> float:
    """Mean share of the gap won back when the highest values go up first; NaN without a gap."""
    gain = strong - weak
    if gain.sum() <= 0.0:
        return float("nan")
    _, tied, count = np.unique(-value, return_inverse=True, return_counts=True)
    shared = (np.bincount(tied, weights=gain) / count)[np.sort(tied)]
    won = np.concatenate([[0.0], np.cumsum(shared)])
    return float((won[1:] + won[:-1]).mean() / 2.0 / gain.sum())


def calibration_error(chances: Matrix, labels: Matrix, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal count; equal chances share their rate."""
    _, tied = np.unique(chances, return_inverse=True)
    labels = (np.bincount(tied, weights=labels) / np.bincount(tied))[tied]
    order = np.argsort(chances, kind="stable")
    gaps = [
        len(some) * abs(chances[some].mean() - labels[some].mean())
        for some in np.array_split(order, min(bins, len(order)))
    ]
    return float(sum(gaps) / len(chances))


def kind_gains(train: Rows, test: Rows) -> Matrix | None:
    """The baseline that only looks a request's kind up: the mean gain of that kind in training."""
    if train.kinds is None or test.kinds is None or len(np.unique(train.kinds)) < 2:  # noqa: PLR2004
        return None
    gain = train.labels[:, -1] - train.labels[:, 0]
    known = ~np.isnan(gain)
    overall = float(gain[known].mean()) if known.any() else 0.0
    table = {
        kind: float(gain[known & (train.kinds == kind)].mean())
        for kind in np.unique(train.kinds[known])
    }
    return np.array([table.get(kind, overall) for kind in test.kinds])


def by_kind(rows: Rows, means: Matrix) -> dict[str, dict[str, Any]]:
    """Of each kind: how many rows, how right each tier is, and what was expected of it."""
    if rows.kinds is None:
        return {}
    found = {}
    for kind in sorted(set(rows.kinds.tolist())):
        some = rows.kinds == kind
        labels = rows.labels[some]
        found[kind or "(none)"] = {
            "n": int(some.sum()),
            "right": dict(zip(rows.tiers, map(_mean, labels.T), strict=True)),
            "expected": dict(zip(rows.tiers, map(_mean, means[some].T), strict=True)),
            "apgr": _short(apgr(means[some, -1] - means[some, 0], labels[:, 0], labels[:, -1])),
        }
    return found


def spread(
    statistic: Callable[[NDArray[np.intp]], float], groups: NDArray[np.str_], seed: int = 0
) -> Interval:
    """Bootstrap interval of a statistic of row indices, whole groups drawn with replacement.

    Draws without a value are left out; NaN where no draw has one.
    """
    _, member = np.unique(groups, return_inverse=True)
    order = np.argsort(member, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(member[order])) + 1)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(RESAMPLES):
        chosen = rng.integers(0, len(parts), len(parts))
        drawn.append(statistic(np.concatenate([parts[at] for at in chosen])))
    known = [value for value in drawn if not np.isnan(value)] or [np.nan]
    low, high = np.quantile(known, [0.025, 0.975])
    return Interval(float(low), float(high))


def _of_tier(chances: Matrix, labels: Matrix) -> dict[str, Any]:
    known = ~np.isnan(labels)
    chances, labels = chances[known], labels[known]
    if not len(labels):
        return {"n": 0}
    return {
        "n": len(labels),
        "right": _short(labels.mean()),
        "auc": _short(_auc(chances, labels >= RIGHT)),
        "brier": _short(((chances - labels) ** 2).mean()),
        "calibration_error": _short(calibration_error(chances, labels)),
    }


def _of_routing(rows: Rows, means: Matrix, lookup: Matrix | None) -> dict[str, Any]:
    weak, strong = rows.labels[:, 0], rows.labels[:, -1]
    orders: Mapping[str, Matrix | None] = {
        "model": means[:, -1] - means[:, 0],
        "length": rows.lengths,
        "kind": lookup,
        "oracle": strong - weak,
    }
    gains = {name: order for name, order in orders.items() if order is not None}
    wrong = weak < RIGHT
    return {
        "apgr": {"random": 0.5}
        | {name: _apgr(order, weak, strong, rows.groups) for name, order in gains.items()},
        "auc_weak_wrong": _areas(-means[:, 0], wrong, rows.groups),
        "auc_gain": _areas(gains["model"], wrong & (strong >= RIGHT), rows.groups),
    }


def _apgr(
    value: Matrix, weak: Matrix, strong: Matrix, groups: NDArray[np.str_]
) -> Sequence[float | None]:
    ends = spread(lambda at: apgr(value[at], weak[at], strong[at]), groups)
    return [_short(apgr(value, weak, strong)), *map(_short, ends)]


def _areas(
    value: Matrix, positive: NDArray[np.bool_], groups: NDArray[np.str_]
) -> Sequence[float | None]:
    ends = spread(lambda at: _auc(value[at], positive[at]), groups)
    return [_short(_auc(value, positive)), *map(_short, ends)]


def _auc(value: Matrix, positive: NDArray[np.bool_]) -> float:
    if positive.all() or not positive.any():
        return 0.5
    return float(roc_auc_score(positive, value))


def _mean(values: Matrix) -> float | None:
    known = values[~np.isnan(values)]
    return _short(known.mean()) if len(known) else None


def _short(value: Any) -> float | None:
    """Four digits; None for what cannot be told."""
    return None if np.isnan(value) else round(float(value), 4)
