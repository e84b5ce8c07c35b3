"""Fits a model of difficulty: inputs, head, calibration on held-out folds, domain, prior."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from classifiers.chances import Chances, Target
from classifiers.domain import Domain, Near, nearest_mean, shaped
from classifiers.features import TAG, TEXT
from classifiers.heads import distances
from classifiers.inputs import Inputs
from classifiers.model import DifficultyModel
from evals.training.calibrate import calibration, line
from evals.training.fitters import (
    BlendFitter,
    ColumnsFitter,
    Fitter,
    LinearFitter,
    NeighboursFitter,
    TopicsFitter,
    folds,
    in_parts,
    sample,
    without_fold,
)
from evals.training.rows import Matrix, Rows, TrainingError
from evals.training.trees import BoostedFitter, ForestFitter

HeadName = Literal["blend", "linear", "neighbours", "topics", "boosted", "forest", "network"]

DOMAIN_ROWS = 2_000
DOMAIN_NEAREST = 5
LEAST_SCALE = 0.1
"""Standard deviation below which a feature's is not believed: it hardly varied in training."""
SMALLEST_LIMIT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a model is fitted.

    Attributes:
        head: the kind of head; "blend" is the mean of topics, boosted trees and a forest.
        target: "acceptable": each tier's probability by its likelihood; "difference": each tier's
            by least squares; "uplift": how much more acceptable each higher tier is.
        components: main axes of the embeddings that most heads look at; 0: no embedding is looked
            at. Topics and neighbours look at the embedding as it is.
        features: look at the cheap features.
        folds: of the held-out calibration.
        inside: share of requests of the training rows' kind that count as inside the domain, by
            how far each training row is from those of other groups.
        seed: of everything drawn.
    """

    head: HeadName = "blend"
    target: Target = "difference"
    components: int = 30
    features: bool = True
    folds: int = 5
    inside: float = 0.95
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


def fit(rows: Rows, recipe: Recipe | None = None) -> DifficultyModel:
    """Fit on all rows; calibrated on what folds of them say of rows they have not seen.

    Raises:
        TrainingError: too few rows, labels or groups.
    """
    recipe = recipe or Recipe()
    rows.check()
    inputs = _inputs(rows, recipe)
    x, y = inputs(rows.embeddings, rows.features), outputs_of(rows.labels, recipe.target)
    fitter = _fitter(recipe, inputs)
    head = fitter.fit(x, y, rows.groups).head_  # settings are chosen here, once, on all rows
    told = np.zeros_like(y)
    parts = folds(rows.groups, recipe.folds, recipe.seed)
    for number, (train, test) in enumerate(parts, 1):
        with without_fold(number, len(parts)):
            _refuse_unlabelled(y[train], rows.tiers)
            told[test] = fitter.fit(x[train], y[train], rows.groups[train]).predict(x[test])
    return DifficultyModel(
        tiers=list(rows.tiers),
        inputs=inputs,
        head=head,
        chances=_chances(told, y, recipe.target),
        prior=np.nanmean(rows.labels, axis=0),
        domain=_domain(rows, recipe),
    )


def held_out(
    rows: Rows,
    recipe: Recipe | None = None,
    *,
    count: int = 5,
    seed: int = 0,
    done: Callable[[], None] = lambda: None,
) -> tuple[Matrix, NDArray[np.bool_]]:
    """Grouped cross-validation: of each row, what a model says that was fitted without its fold.

    Args:
        rows: all of them.
        recipe: how each fold's model is fitted; calibration is inside it.
        count: folds.
        seed: of the folds.
        done: called after each fold.

    Returns:
        Probabilities of shape (rows, tiers), not replaced by the prior where out of the domain; and
        which rows are.
    """
    means = np.zeros_like(rows.labels)
    out = np.zeros(len(rows), dtype=bool)
    parts = folds(rows.groups, count, seed)
    for number, (train, test) in enumerate(parts, 1):
        with without_fold(number, len(parts)):
            model = fit(rows.take(train), recipe)
        means[test], out[test] = apply(model, rows.take(test))
        done()
    return means, out


def apply(model: DifficultyModel, rows: Rows) -> tuple[Matrix, NDArray[np.bool_]]:
    """What a model says of rows, domain or not; and which are out of its domain."""
    x = model.inputs(rows.embeddings, rows.features)
    out = np.zeros(len(x), dtype=bool)
    if model.domain is not None:
        out = model.domain(rows.embeddings, rows.features)
    return model.chances(in_parts(model.head, x)), out


def outputs_of(labels: Matrix, target: Target) -> Matrix:
    """What a head is to foretell, from how acceptable each tier's answer was."""
    if target != "uplift":
        return labels
    more = labels[:, 1:] - labels[:, :1]
    if np.isnan(more).all(axis=0).any():
        raise TrainingError(
            "uplift needs rows where the cheapest tier's answer and a higher one's are both "
            'labelled; there are none for some tier, so use the target "difference"'
        )
    return np.hstack([labels[:, :1], more])


def _refuse_unlabelled(y: Matrix, tiers: Sequence[str]) -> None:
    for tier, labels in zip(tiers, y.T, strict=True):
        if np.isnan(labels).all():
            raise TrainingError(
                f"tier {tier}: no row has a label that it needs: its labels must be in several "
                "groups; give more rows"
            )


def _inputs(rows: Rows, recipe: Recipe) -> Inputs:
    names, means, scales = _scaled(rows.features) if recipe.features else ([], [], [])
    centre = axes = None
    spread = 1.0
    if rows.embeddings is not None and recipe.components:
        vectors = rows.embeddings.astype(np.float64)
        centre = vectors.mean(axis=0)
        count = min(recipe.components, *vectors.shape)
        found = PCA(count, svd_solver="covariance_eigh").fit(vectors).components_.T
        axes = found.astype(np.float32).astype(np.float64)  # as they are stored
        spread = float(np.sqrt(((vectors - centre) @ axes).var(axis=0).mean()))
    if not names and centre is None:
        raise TrainingError("there is nothing to learn from: no embeddings and no features")
    return Inputs(
        names=names,
        means=np.array(means) if names else None,
        scales=np.array(scales) if names else None,
        centre=centre,
        axes=axes,
        spread=spread,
    )


def _scaled(found: Sequence[Mapping[str, float]]) -> tuple[list[str], list[float], list[float]]:
    """Names of the features that vary, their means and standard deviations."""
    names, means, scales = [], [], []
    for name in sorted({name for each in found for name in each}):
        absent = 0.0 if name.startswith(TAG) else np.nan
        values = np.array([each.get(name, absent) for each in found])
        mean, scale = float(np.nanmean(values)), float(np.nanstd(values))
        if scale > 1e-9:  # noqa: PLR2004 - does not vary
            names.append(name)
            means.append(mean)
            scales.append(scale)
    return names, means, scales


def _fitter(recipe: Recipe, inputs: Inputs) -> Fitter:
    log_odds, seed = recipe.target == "acceptable", recipe.seed
    whole = inputs.dimensions  # columns of the embedding as it is, which come first

    def rest(part: Fitter) -> Fitter:
        return ColumnsFitter(part, whole, inputs.width)

    def meaning(part: Fitter) -> Fitter:
        return ColumnsFitter(part, 0, whole or inputs.width)

    if recipe.head == "network":
        try:
            from evals.training.network import NetworkFitter  # noqa: PLC0415 - torch takes seconds
        except ModuleNotFoundError:
            raise TrainingError(
                "the head `network` needs the package torch: pip install 'cascade-router[train]'"
            ) from None
        return rest(NetworkFitter(log_odds=log_odds, seed=seed))
    seeds = [seed, seed + 1, seed + 2]
    made: dict[str, Fitter] = {
        "linear": rest(LinearFitter(log_odds=log_odds, seed=seed)),
        "neighbours": meaning(NeighboursFitter(seed=seed)),
        "topics": meaning(TopicsFitter(seed=seed)),
        "boosted": rest(BoostedFitter(log_odds=log_odds, seeds=seeds)),
        "forest": rest(ForestFitter(seed=seed)),
    }
    parts = ("topics", "boosted", "forest") if whole else ("boosted", "forest")
    return made.get(recipe.head) or BlendFitter([made[name] for name in parts])


def _chances(told: Matrix, y: Matrix, target: Target) -> Chances:
    made = []
    for output in range(y.shape[1]):
        known = ~np.isnan(y[:, output])
        values, labels = told[known, output], y[known, output]
        is_difference = target == "uplift" and output > 0
        made.append(line(values, labels) if is_difference else calibration(values, labels))
    return Chances(target, made)


def _domain(rows: Rows, recipe: Recipe) -> Domain | None:
    """Limits that a share of the training rows keep, each with its own group left out."""
    some = sample(len(rows), DOMAIN_ROWS, recipe.seed)
    groups, features = rows.groups[some], [rows.features[at] for at in some]
    if recipe.inside >= 1.0 or len(np.unique(groups)) <= DOMAIN_NEAREST:
        return None
    found = np.array([[each[name] for name in TEXT] for each in features])
    means, scales = found.mean(axis=0), np.maximum(found.std(axis=0), LEAST_SCALE)
    inside = 1.0 - (1.0 - recipe.inside) / 2.0  # either may flag, so each gets half of the share
    meaning = None
    if rows.embeddings is not None and recipe.components:
        meaning = _near(rows.embeddings[some].astype(np.float32), groups, inside)
    shape = _near(shaped(features, means, scales).astype(np.float32), groups, inside)
    return Domain(meaning, shape, means, scales)


def _near(seen: NDArray[np.float32], groups: NDArray[np.str_], inside: float) -> Near:
    seen = seen.astype(np.float16).astype(np.float32)  # as they are stored
    apart = distances(seen, seen)
    apart[groups[:, None] == groups[None, :]] = np.inf
    far = nearest_mean(apart, DOMAIN_NEAREST)
    limit = float(np.quantile(far[np.isfinite(far)], inside))
    return Near(seen, DOMAIN_NEAREST, max(limit, SMALLEST_LIMIT))
