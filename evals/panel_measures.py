"""What a fitted panel is worth on rows that nothing was chosen on, beside what it must beat.

Plain values in nested mappings, because they are kept in the artifact's manifest, printed by the
command, drawn as a picture and held against the documentation.
"""

from collections.abc import Sequence
from typing import Any, Final

from evals.escalation import (
    Scored,
    accuracy,
    calibration_error,
    calibration_noise,
    interval,
    lead,
)
from evals.metrics import auroc, bootstrap, mean
from evals.panel_fit import JudgedRow
from judges.fitted import PanelModel

SHARES: Final = (0.2, 0.4, 0.6)
ORDERS: Final = ("random", "length", "doubt", "uplift", "oracle")
RIVALS: Final = ("random", "length", "doubt")
RESAMPLES: Final = 500
SCORE: Final = ".score"
THRESHOLDS: Final = tuple(step / 20 for step in range(1, 20))


def measured(
    model: PanelModel, rows: Sequence[JudgedRow], fitted_on: Sequence[JudgedRow]
) -> dict[str, Any]:
    """Ranking, calibration and gain on the rows.

    Args:
        model: of the panel.
        rows: answers that nothing was fitted or chosen on.
        fitted_on: the others, which say whether long or short answers are the better ones.
    """
    judged = model.manifest.judged
    scores = scored(model, rows, fitted_on)
    right = [row.small_right for row in scores]
    chances = [row.small for row in scores]
    return {
        "n": len(rows),
        "groups": len({row.group for row in rows}),
        "right": {tier: _short(mean([row.right[tier] for row in rows])) for tier in model.heads},
        "auc": _area(scores, lambda row: row.small),
        "auc_length_only": _area(scores, lambda row: -row.length),
        "auc_of_members": _members(rows, judged),
        "calibration_error": _short(calibration_error(chances, right)),
        "calibration_error_before": _short(
            calibration_error([model.uncalibrated(row.features) for row in rows], right)
        ),
        "calibration_noise": [_short(value) for value in calibration_noise(chances)],
        "escalated": list(SHARES),
        "accuracy": {order: [_accuracy(scores, order, s) for s in SHARES] for order in ORDERS},
        "uplift_over": {
            other: [[_short(end) for end in lead(scores, "uplift", other, s)] for s in SHARES]
            for other in RIVALS
        },
    }


def scored(
    model: PanelModel, rows: Sequence[JudgedRow], fitted_on: Sequence[JudgedRow]
) -> list[Scored]:
    """The rows as the panel sees them: the judged tier and the highest."""
    judged, strong = model.manifest.judged, list(model.heads)[-1]
    sign = _against(fitted_on, judged)
    found = []
    for row in rows:
        chances = model(row.features)
        found.append(
            Scored(
                small=chances[judged],
                large=chances[strong],
                length=sign * row.length,
                small_right=row.right[judged],
                large_right=row.right[strong],
                group=row.group,
            )
        )
    return found


def threshold(held_out: Sequence[float], rows: Sequence[JudgedRow], tiers: Sequence[str]) -> float:
    """The accept_at with the largest lead over sending up as many at random; the lowest of equals.

    Where the small model is always paid, a random mix of the models that costs the same sends up
    about as many, so this is the threshold that does most for the money, whatever the prices.

    Args:
        held_out: the score of each row by a model that had not seen it.
        rows: the same rows.
        tiers: the judged one first, the highest last.
    """
    small, large = ([row.right[tier] for row in rows] for tier in (tiers[0], tiers[-1]))
    gain = mean(large) - mean(small)

    def led(at: float) -> float:
        ups = [score < at for score in held_out]
        kept = mean([b if up else a for a, b, up in zip(small, large, ups, strict=True)])
        return round(kept - mean(small) - gain * mean(ups), 9)

    return max(THRESHOLDS, key=led)


def at_threshold(scores: Sequence[Scored], at: float) -> dict[str, Any]:
    """What a ladder does on rows with that accept_at."""

    def right(rows: Sequence[Scored]) -> float:
        return mean([row.large_right if row.small < at else row.small_right for row in rows])

    def above_random(rows: Sequence[Scored]) -> float:
        share = mean([row.small < at for row in rows])
        return right(rows) - accuracy(rows, "random", share)

    return {
        "accept_at": at,
        "sent_up": _short(mean([row.small < at for row in scores])),
        "right": [_short(right(scores)), *map(_short, interval(scores, right, RESAMPLES))],
        "over_random": [
            _short(above_random(scores)),
            *map(_short, interval(scores, above_random, RESAMPLES)),
        ],
    }


def _against(rows: Sequence[JudgedRow], tier: str) -> float:
    """1 where long answers are more often wrong, -1 where short ones are."""
    area = auroc([row.length for row in rows], [row.right[tier] for row in rows])
    return 1.0 if area is None or area < 0.5 else -1.0  # noqa: PLR2004  # a coin


def _members(rows: Sequence[JudgedRow], tier: str) -> dict[str, Any]:
    """Of each member that gives scores, on how many rows, and their area under the ROC curve."""
    found = {}
    for name in sorted({name for row in rows for name in row.features if name.endswith(SCORE)}):
        told = [row for row in rows if name in row.features]
        found[name.removesuffix(SCORE)] = ranked(
            [(row.features[name], row.right[tier], row.group) for row in told]
        )
    return found


def ranked(told: Sequence[tuple[float, bool, str]]) -> dict[str, Any]:
    """Of scores, whether the answer was right, and its group: how many, and the ROC area."""
    pairs = [(score, ok) for score, ok, _ in told]
    ends = bootstrap(pairs, _roc, groups=[group for *_, group in told], resamples=RESAMPLES)
    return {"n": len(told), "auc": [_short(_roc(pairs)), *map(_short, ends)]}


def _roc(pairs: Sequence[tuple[float, bool]]) -> float:
    area = auroc([score for score, _ in pairs], [ok for _, ok in pairs])
    return 0.5 if area is None else area


def _area(scores: Sequence[Scored], score: Any) -> list[float]:
    """Area under the ROC curve, and the ends of its interval."""

    def area(rows: Sequence[Scored]) -> float:
        return _roc([(score(row), row.small_right) for row in rows])

    return [_short(area(scores)), *map(_short, interval(scores, area, RESAMPLES))]


def _accuracy(scores: Sequence[Scored], order: str, share: float) -> list[float]:
    ends = interval(scores, lambda rows: accuracy(rows, order, share), RESAMPLES)
    return [_short(accuracy(scores, order, share)), *map(_short, ends)]


def _short(value: float) -> float:
    return round(value, 4)
