"""Fits the model of a panel: from the features of judged answers to who would have been right.

One head for the tier that answered and one for each higher tier, all on the same rows, so that
their difference (what going up is worth) is learned and not put together from two experiments.
Rows are used once: "fit" rows fit the heads and, cross-fitted, their calibration; "calibrate" rows
are left for certificates; "test" rows are only measured on.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedGroupKFold, cross_val_score

from cascade.errors import CascadeError
from evals.isotonic import fit_map
from judges.fitted import LEAF, Feature, Head, Isotonic, Platt, Tree, calibrated, sigmoid

ISOTONIC_FROM = 300
"""Labels from which an isotonic map may be better than Platt's line."""
BINS = 15
FOLDS = 5
KINDS = ("logistic", "boosted", "blend")
PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3)
MIN_LABELS = 40
MIN_OF_EACH = 10
ROOM = 1e-3
"""Log-odds are taken of probabilities that stay this far from 0 and 1."""

Matrix = NDArray[np.float64]
Labels = NDArray[np.bool_]


class FitError(CascadeError):
    """A panel cannot be fitted on these rows; says why."""

    code = "not_fitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRow:
    """One answer as the panel's members saw it, and what became of it.

    Attributes:
        prompt: id of the prompt.
        kind: of task.
        group: prompts made alike share one, and are never on both sides of a fold.
        split: "fit", "calibrate" or "test".
        features: `member.feature` to value, as on the panel's verdict.
        right: by tier, whether its answer to the prompt is acceptable.
        length: characters of the judged answer, for the length-only baseline.
    """

    prompt: str
    kind: str
    group: str
    split: str
    features: Mapping[str, float]
    right: Mapping[str, bool]
    length: float


@dataclass(frozen=True, slots=True)
class Table:
    """Rows as a matrix.

    Attributes:
        features: the columns, described.
        raw: rows by values, the means where optional ones are missing, then which were missing.
        standard: the same per standard deviation.
        groups: of the rows.
    """

    features: Sequence[Feature]
    raw: Matrix
    standard: Matrix
    groups: NDArray[np.str_]


def tabulate(rows: Sequence[JudgedRow]) -> Table:
    """Rows to fit on as a matrix of every feature that varies.

    Raises:
        FitError: no feature varies.
    """
    names = sorted({name for row in rows for name in row.features})
    features = [feature for name in names if (feature := _feature(rows, name)) is not None]
    if not features:
        raise FitError("no feature differs between the rows, so there is nothing to fit")
    optional = [feature for feature in features if feature.optional]
    raw = np.array(
        [
            [row.features.get(f.name, f.mean) for f in features]
            + [float(f.name not in row.features) for f in optional]
            for row in rows
        ]
    )
    standard = raw.copy()
    for column, feature in enumerate(features):
        standard[:, column] = (raw[:, column] - feature.mean) / feature.scale
    return Table(features, raw, standard, np.array([row.group for row in rows]))


def fit_heads(
    rows: Sequence[JudgedRow], tiers: Sequence[str], *, kind: str = "blend", seed: int = 0
) -> tuple[list[Feature], dict[str, Head]]:
    """Fit a head for each tier on rows that are nobody's test rows.

    Args:
        rows: at least 40, with ten right and ten wrong for each tier.
        tiers: the judged one and those above it.
        kind: "logistic" (L2, its penalty chosen by cross-validation), "boosted" (trees of depth 2)
            or "blend" (the mean of both in log-odds, which on few rows is steadier than either).
        seed: of the folds and of the trees.

    Raises:
        FitError: too few rows or labels, or no such kind.
    """
    if kind not in KINDS:
        raise FitError(f"no kind of model {kind!r}; there are: {', '.join(KINDS)}")
    table = tabulate(rows)
    heads = {}
    for tier in tiers:
        labels = _labels(rows, tier)
        heads[tier] = _head(table, labels, kind, seed)
    return list(table.features), heads


def _labels(rows: Sequence[JudgedRow], tier: str) -> Labels:
    if lacking := [row.prompt for row in rows if tier not in row.right]:
        raise FitError(f"{len(lacking)} rows have no answer of tier {tier}, first {lacking[0]}")
    labels = np.array([row.right[tier] for row in rows], dtype=bool)
    least = min(int(labels.sum()), int((~labels).sum()))
    if len(labels) < MIN_LABELS or least < MIN_OF_EACH:
        raise FitError(
            f"tier {tier}: {len(labels)} labels, {int(labels.sum())} of them right; it takes at "
            f"least {MIN_LABELS}, with {MIN_OF_EACH} right and {MIN_OF_EACH} wrong"
        )
    return labels


def _feature(rows: Sequence[JudgedRow], name: str) -> Feature | None:
    """The column's description; None when it says nothing."""
    found = [row.features[name] for row in rows if name in row.features]
    if not all(map(math.isfinite, found)):
        raise FitError(f"feature {name} is not finite on some row")
    optional = len(found) < len(rows)
    scale = float(np.std(found))
    if scale == 0.0:
        if not optional:
            return None
        scale = 1.0
    return Feature(name=name, mean=float(np.mean(found)), scale=scale, optional=optional)


def _head(table: Table, labels: Labels, kind: str, seed: int) -> Head:
    models = _models(table, labels, kind, seed)
    held_out = np.zeros(len(labels))
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(table.standard, labels, table.groups):
        part = Table(table.features, table.raw[train], table.standard[train], table.groups[train])
        for model in models:
            model.fit(part, labels[train])
            held_out[test] += model.log_odds(table.raw[test], table.standard[test]) / len(models)
    parts: dict[str, Any] = {}
    for model in models:
        model.fit(table, labels)
        parts |= model.part()
    return Head(**parts, calibration=_calibration(held_out, labels, table.groups))


def _models(table: Table, labels: Labels, kind: str, seed: int) -> list["_Logistic | _Boosted"]:
    models: list[_Logistic | _Boosted] = []
    if kind != "boosted":
        models.append(_Logistic(_penalty(table, labels, seed)))
    if kind != "logistic":
        models.append(_Boosted(seed))
    return models


class _Logistic:
    """L2-penalised logistic regression on standardised values."""

    def __init__(self, c: float) -> None:
        self._model = LogisticRegression(C=c, max_iter=5000)

    def fit(self, table: Table, labels: Labels) -> None:
        self._model.fit(table.standard, labels)

    def log_odds(self, raw: Matrix, standard: Matrix) -> Matrix:
        del raw
        return np.asarray(self._model.decision_function(standard))

    def part(self) -> dict[str, Any]:
        return {
            "weights": [_short(weight) for weight in self._model.coef_[0]],
            "intercept": _short(self._model.intercept_[0]),
        }


class _Boosted:
    """Gradient-boosted trees of depth 2: interactions of two features, and no more."""

    def __init__(self, seed: int) -> None:
        self._model = GradientBoostingClassifier(
            n_estimators=150,
            learning_rate=0.05,
            max_depth=2,
            min_samples_leaf=10,
            subsample=0.6,
            max_features=0.5,
            random_state=seed,
        )

    def fit(self, table: Table, labels: Labels) -> None:
        self._model.fit(table.raw, labels)

    def log_odds(self, raw: Matrix, standard: Matrix) -> Matrix:
        del standard
        return np.asarray(self._model.decision_function(raw))

    def part(self) -> dict[str, Any]:
        rate = self._model.learning_rate
        share = float(self._model.init_.class_prior_[1])
        trees = [self._tree(each.tree_, rate) for (each,) in self._model.estimators_]
        return {"trees": trees, "base": _short(math.log(share / (1 - share)))}

    @staticmethod
    def _tree(tree: Any, rate: float) -> Tree:
        leaf = tree.children_left == -1
        return Tree(
            feature=[
                LEAF if is_leaf else int(f) for f, is_leaf in zip(tree.feature, leaf, strict=True)
            ],
            threshold=[
                0.0 if is_leaf else float(t)
                for t, is_leaf in zip(tree.threshold, leaf, strict=True)
            ],
            left=[max(0, int(node)) for node in tree.children_left],
            right=[max(0, int(node)) for node in tree.children_right],
            value=[
                _short(value * rate) if is_leaf else 0.0
                for value, is_leaf in zip(tree.value[:, 0, 0], leaf, strict=True)
            ],
        )


def _penalty(table: Table, labels: Labels, seed: int) -> float:
    """The C of `PENALTIES` with the best cross-validated log loss."""
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)

    def loss(c: float) -> float:
        model = LogisticRegression(C=c, max_iter=5000)
        scores = cross_val_score(
            model,
            table.standard,
            labels,
            groups=table.groups,
            cv=folds,
            scoring="neg_log_loss",
        )
        return float(-scores.mean())

    return min(PENALTIES, key=loss)


def _calibration(log_odds: Matrix, labels: Labels, groups: NDArray[np.str_]) -> Platt | Isotonic:
    """The map from log-odds of rows that were held out to probabilities.

    Of the two kinds the one with the smaller cross-validated log loss: a line for few labels or
    where the log-odds are straight, steps where there are enough labels to see that they are not.
    """
    if len(labels) < ISOTONIC_FROM:
        return _line(log_odds, labels)
    kinds = (_line, _steps)
    losses = [0.0 for _ in kinds]
    for train, test in StratifiedGroupKFold(FOLDS).split(log_odds, labels, groups):
        for at, kind in enumerate(kinds):
            apply = calibrated(kind(log_odds[train], labels[train]))
            chances = [apply(float(x)) for x in log_odds[test]]
            losses[at] += float(log_loss(labels[test], chances, labels=[False, True]))
    return kinds[losses.index(min(losses))](log_odds, labels)


def _steps(log_odds: Matrix, labels: Labels) -> Platt | Isotonic:
    """Isotonic regression of the probabilities."""
    fitted = fit_map([sigmoid(float(x)) for x in log_odds], [bool(y) for y in labels], bins=BINS)
    return Isotonic(x=[_short(x) for x in fitted.x], y=[_short(y) for y in fitted.y])


def _line(log_odds: Matrix, labels: Labels) -> Platt | Isotonic:
    """Logistic regression of the log-odds alone."""
    line = LogisticRegression(C=1e6, max_iter=5000).fit(log_odds.reshape(-1, 1), labels)
    slope, offset = float(line.coef_[0][0]), float(line.intercept_[0])
    if slope <= 0:
        # What was learned does not carry over to rows it has not seen: everything gets the rate.
        rate = float(labels.mean())
        return Platt(slope=ROOM, offset=math.log(rate / (1 - rate)))
    return Platt(slope=_short(slope), offset=_short(offset))


def _short(value: float) -> float:
    """Six significant digits: an artifact is to be read."""
    return float(f"{value:.6g}")
