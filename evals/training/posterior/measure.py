"""What a posterior is worth on rows that it was not fitted on, beside what needs no fit.

The baselines are the estimate alone ("prior"), and the estimate with every verdict taken at its
word ("verdict"), which is what happens without a fitted posterior. Intervals are over groups.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cascade.posterior import Model, update
from cascade.posterior.model import Tried
from cascade.types import Beliefs
from evals.training.measure import spread
from evals.training.posterior.candidates import Index, Matrix, log_loss
from evals.training.posterior.fit import Means, kappa
from evals.training.posterior.rows import JudgedPrompt, Labels, groups_of, labels_of

WAYS = ("prior", "verdict", "model")


def told(model: Model, rows: Sequence[JudgedPrompt], sets: Collection[Tried]) -> Means:
    """What a model says of rows after each set of verdicts."""
    tiers = list(model.manifest.models)
    found = {}
    for tried in sets:
        order = [tier for tier in tiers if tier in tried]
        before = [model.before(Beliefs(mean=row.estimate)) for row in rows]
        after = [
            model.after(beliefs, [(tier, row.verdicts.get(tier)) for tier in order]).mean
            for beliefs, row in zip(before, rows, strict=True)
        ]
        found[tried] = np.array([[mean[tier] for tier in tiers] for mean in after])
    return found


def measured(
    rows: Sequence[JudgedPrompt], tiers: Sequence[str], means: Means, sets: Collection[Tried]
) -> dict[str, Any]:
    """Everything that is told of a posterior, in plain values.

    Args:
        rows: what the means were not fitted on.
        tiers: the columns of the means.
        means: by set of tiers judged, for the kappas.
        sets: those that something was fitted for.
    """
    groups = groups_of(rows)
    return {
        "n": len(rows),
        "groups": len(np.unique(groups)),
        "sets": [_of_set(rows, tiers, tried, means[tried]) for tried in sets],
        "kappas": [each for tried in sets for each in _moves(means, tried, tiers, groups)],
    }


def _of_set(
    rows: Sequence[JudgedPrompt], tiers: Sequence[str], tried: Tried, means: Matrix
) -> dict[str, Any]:
    """Of the rows that have all of these verdicts, final ones included."""
    has = np.array([tried <= row.verdicts.keys() for row in rows], dtype=bool)
    some = [row for row, it_has in zip(rows, has, strict=True) if it_has]
    order = [tier for tier in tiers if tier in tried]
    found: dict[str, Any] = {"tried": order, "n": len(some)}
    if not some:
        return found
    groups = groups_of(some)
    at_their_word = [_at_their_word(row, order) for row in some]
    found["groups"] = len(np.unique(groups))
    found["tiers"] = {}
    for column, tier in enumerate(tiers):
        chances = {
            "prior": np.array([row.estimate[tier] for row in some]),
            "verdict": np.array([mean[tier] for mean in at_their_word]),
            "model": means[has, column],
        }
        found["tiers"][tier] = _of_tier(chances, labels_of(some, tier), groups)
    return found


def _at_their_word(row: JudgedPrompt, order: Sequence[str]) -> Mapping[str, float]:
    beliefs = Beliefs(mean=row.estimate)
    for tier in order:
        beliefs = update(beliefs, tier, row.verdicts[tier])
    return beliefs.mean


def _of_tier(chances: Mapping[str, Matrix], y: Labels, groups: NDArray[np.str_]) -> dict[str, Any]:
    lost = {way: log_loss(chances[way], y) for way in WAYS}
    gains = {way: lost[way] - lost["model"] for way in WAYS[:-1]}
    return {
        "right": _short(y.mean()),
        "log_loss": {way: _short(lost[way].mean()) for way in WAYS},
        "brier": {way: _short(((chances[way] - y) ** 2).mean()) for way in WAYS},
        "auc": {way: _short(_area(chances[way], y)) for way in WAYS}
        | {"interval": _area_ends(chances["model"], y, groups)},
        "gain_over": {
            way: [_short(gain.mean()), *_ends(lambda at, gain=gain: gain[at].mean(), groups)]
            for way, gain in gains.items()
        },
    }


def _moves(
    means: Means, tried: Tried, tiers: Sequence[str], groups: NDArray[np.str_]
) -> list[dict[str, Any]]:
    found = []
    for i, judged in enumerate(tiers):
        after = means.get(tried | {judged})
        if judged in tried or after is None:
            continue
        for j, moved in enumerate(tiers):

            def value(at: Index | slice, i: int = i, j: int = j, after: Matrix = after) -> float:
                return kappa(means[tried], after, i, j, at)

            found.append(
                {
                    "tried": [tier for tier in tiers if tier in tried],
                    "judged": judged,
                    "moved": moved,
                    "kappa": [_short(value(slice(None))), *_ends(value, groups)],
                }
            )
    return found


def _area(chances: Matrix, y: Labels) -> float:
    """Area under the ROC curve by mid-ranks; NaN where all are right or all are wrong."""
    right, wrong = int(y.sum()), int((~y).sum())
    if not right or not wrong:
        return float("nan")
    _, tied, count = np.unique(chances, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2.0)[tied]
    return float((rank[y].sum() - right * (right + 1) / 2.0) / (right * wrong))


def _area_ends(chances: Matrix, y: Labels, groups: NDArray[np.str_]) -> list[float | None]:
    if y.all() or not y.any():
        return [None, None]
    return _ends(lambda at: _area(chances[at], y[at]), groups)


def _ends(statistic: Any, groups: NDArray[np.str_]) -> list[float | None]:
    if len(np.unique(groups)) < 2:  # noqa: PLR2004 - nothing to resample
        return [None, None]
    return [_short(end) for end in spread(statistic, groups)]


def _short(value: Any) -> float | None:
    """Four decimals; None for what cannot be said."""
    return None if np.isnan(value) else round(float(value), 4)
