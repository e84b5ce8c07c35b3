"""Fits the model of a panel: from the features of judged answers to who would have been right.

The judged tier has one head. A higher tier has one for each case, the judged answer being right and
being wrong: what going up is worth depends on who mends what the small model breaks, and that is
learned from the broken answers alone. Where nothing tells, the head is the bare rate.
Rows are used once: "fit" rows choose and fit the heads and, cross-fitted, their calibration;
"calibrate" rows are left for certificates; "test" rows are only measured on.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cascade.errors import CascadeError
from evals.panel_calibration import Calibration, calibration
from evals.panel_choice import KINDS, Chosen, choose
from evals.panel_models import Labels, Rate, Table
from judges.fitted import Feature, Head, calibrated

MIN_LABELS = 40
MIN_OF_EACH = 10
RAREST = 20
"""Rows of the rarer kind from which a higher tier's head can be more than the bare rate."""


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
class FittedPanel:
    """What was fitted.

    Attributes:
        features: the inputs, in order.
        heads: by tier, the judged one first.
        held_out: P(acceptable) of each row's judged answer by heads that had not seen its group,
            to choose a threshold by.
    """

    features: list[Feature]
    heads: dict[str, Head]
    held_out: list[float]


def tabulate(rows: Sequence[JudgedRow]) -> Table:
    """Rows to fit on as a matrix of every feature that varies.

    Raises:
        FitError: no feature varies, or one is not finite.
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


def fit_panel(
    rows: Sequence[JudgedRow],
    tiers: Sequence[str],
    *,
    kind: str = "auto",
    aside: Collection[str] = (),
    seed: int = 0,
) -> FittedPanel:
    """Fit the heads on rows that are nobody's test rows.

    Args:
        rows: at least 40, with ten right and ten wrong answers of the judged tier.
        tiers: the judged one, then those above it.
        kind: one of `KINDS`; "auto" takes what does best on rows it has not seen.
        aside: members that do not look at the answer; each head tries to do without them.
        seed: of the folds.

    Raises:
        FitError: too few rows or labels, or no such kind.
    """
    if kind not in KINDS:
        raise FitError(f"no kind of model {kind!r}; there are: {', '.join(KINDS)}")
    table = tabulate(rows)
    judged, *higher = tiers
    right = _labels(rows, judged)
    _enough(right, judged)
    way = _Way(kind, _choices(table, aside), seed)
    head, held_out = _head(table, right, way, MIN_OF_EACH)
    heads = {judged: head}
    for tier in higher:
        labels = _labels(rows, tier)
        spared, _ = _head(table.only(right), labels[right], way, RAREST)
        mended, _ = _head(table.only(~right), labels[~right], way, RAREST)
        heads[tier] = mended.model_copy(update={"if_right": spared})
    return FittedPanel(list(table.features), heads, held_out)


def cross_fitted(
    rows: Sequence[JudgedRow],
    tiers: Sequence[str],
    folds: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]],
    *,
    kind: str = "auto",
    aside: Collection[str] = (),
    done: Callable[[], None] = lambda: None,
) -> list[dict[str, float]]:
    """P(acceptable) of each row by tier, by heads that were not fitted on the row's group.

    What the heads are like is chosen once, on all rows, as `fit_panel` chooses it; only their fit
    leaves a fold out. Choosing anew in each fold would say what a panel of fewer rows is worth.

    Args:
        rows: at least 40, with ten right and ten wrong answers of the judged tier.
        tiers: the judged one, then those above it.
        folds: rows to fit on and rows to tell, a group never on both sides.
        kind: one of `KINDS`.
        aside: members that do not look at the answer; each head tries to do without them.
        done: called after each head.

    Raises:
        FitError: too few rows or labels.
    """
    table = tabulate(rows)
    judged, *higher = tiers
    right = _labels(rows, judged)
    _enough(right, judged)
    way = _Way(kind, _choices(table, aside), 0)

    def told(tier: str, among: Labels, least: int) -> NDArray[np.float64]:
        labels = _labels(rows, tier)
        chosen, map_ = _chosen(table.only(among), labels[among], way, least)
        found, apply = np.zeros(len(rows)), calibrated(map_)
        for train, test in folds:
            inside = train[among[train]]
            model = chosen if _rarest(labels[inside]) else _bare(0)
            model.fit(table.only(inside), labels[inside])
            found[test] = [apply(float(x)) for x in model.log_odds(table.only(test))]
        done()
        return found

    chances = {judged: told(judged, np.ones(len(rows), dtype=bool), MIN_OF_EACH)}
    for tier in higher:
        spared, mended = told(tier, right, RAREST), told(tier, ~right, RAREST)
        chances[tier] = chances[judged] * spared + (1.0 - chances[judged]) * mended
    return [{tier: float(each[at]) for tier, each in chances.items()} for at in range(len(rows))]


def _labels(rows: Sequence[JudgedRow], tier: str) -> Labels:
    if lacking := [row.prompt for row in rows if tier not in row.right]:
        raise FitError(f"{len(lacking)} rows have no answer of tier {tier}, first {lacking[0]}")
    return np.array([row.right[tier] for row in rows], dtype=bool)


def _enough(labels: Labels, tier: str) -> None:
    if len(labels) < MIN_LABELS or _rarest(labels) < MIN_OF_EACH:
        raise FitError(
            f"tier {tier}: {len(labels)} labels, {int(labels.sum())} of them right; it takes at "
            f"least {MIN_LABELS}, with {MIN_OF_EACH} right and {MIN_OF_EACH} wrong"
        )


def _rarest(labels: Labels) -> int:
    return min(int(labels.sum()), int((~labels).sum()))


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


class _Way(NamedTuple):
    """How a head is fitted: see `choose`."""

    kind: str
    choices: Sequence[Sequence[int]]
    seed: int


def _choices(table: Table, aside: Collection[str]) -> list[Sequence[int]]:
    """All columns; and those of the members that look at the answer, where others do not."""
    optional = [feature for feature in table.features if feature.optional]
    members = [feature.name.partition(".")[0] for feature in (*table.features, *optional)]
    looking = [at for at, member in enumerate(members) if member not in aside]
    everything = range(len(members))
    return [everything, looking] if 0 < len(looking) < len(members) else [everything]


def _head(table: Table, labels: Labels, way: _Way, least_of_each: int) -> tuple[Head, list[float]]:
    """A head, and what it says of rows whose group it has not seen."""
    chosen, map_ = _chosen(table, labels, way, least_of_each)
    held_out = chosen.held_out.mean(axis=0) if len(chosen.held_out) else []
    chosen.fit(table, labels)
    apply = calibrated(map_)
    return (
        Head(**chosen.part(table.raw.shape[1]), calibration=map_),
        [apply(float(log_odds)) for log_odds in held_out],
    )


def _chosen(
    table: Table, labels: Labels, way: _Way, least_of_each: int
) -> tuple[Chosen, Calibration]:
    """What a head is like, and the map that its log-odds need; not yet fitted to all rows."""
    if _rarest(labels) < least_of_each:
        return _bare(len(labels)), None
    chosen = choose(table, labels, way.kind, way.seed, way.choices)
    if isinstance(chosen.model, Rate):
        return chosen, None
    return chosen, calibration(chosen.held_out.mean(axis=0), labels, table.groups)


def _bare(count: int) -> Chosen:
    """The rate alone, for too few rows to try it out."""
    return Chosen(Rate(), (), np.zeros((0, count)))
